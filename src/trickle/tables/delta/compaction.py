"""Writes wasteful files of a table anew: many small ones, and big ones of which many rows are masked. No row changes.

Delta's own OPTIMIZE writes every file below a gigabyte anew; here a file that does no harm stays, so that what compaction costs
goes with what was changed since.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from trickle._version import __version__
from trickle.tables.delta.commit import Transaction, commit_lock, conflict
from trickle.tables.delta.driver.fit import is_committable, is_stamped
from trickle.tables.delta.driver.write import now_ms
from trickle.tables.delta.log import commit_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.model.options import Options
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.table import DeltaTable


def wasteful_files(files: Sequence[FileAction], options: Options) -> list[FileAction]:
    """Return the files that are worth writing anew: the small ones if there are many, and those with many masked rows."""
    small = [file for file in files if file.size < options.small_file_bytes]
    some = small if len(small) > options.small_files else []
    worn = [file for file in files if file.masked * options.masked_share > (file.records or 0)]
    chosen = {file.key for file in (*some, *worn)}
    return [file for file in files if file.key in chosen]


def compact(table: DeltaTable) -> bool:
    """Write the wasteful files of a table anew; False if only Delta can.

    Raises:
        ConflictError: Another commit came first.
    """
    log = table.log
    transaction = Transaction(table, log.name)
    read = transaction.version
    metadata, protocol = log.metadata(read), log.protocol(read)
    if table.folder is None or not log.is_plain or not is_committable(protocol, metadata):
        return False
    if metadata.get("partitionColumns") or is_stamped(metadata) or _is_clustered(protocol):
        return False
    known = transaction.files()
    chosen = {file.key for file in wasteful_files([file for file, _ in known], table.options)}
    some = [(file, action) for file, action in known if file.key in chosen]
    rows = table.handle.files(transaction.snapshot, [action for _, action in some])
    left = sum(file.size * (1 - file.masked / max(file.records or 1, 1)) for file, _ in some)
    may_be_committed = False
    try:
        written = transaction.write(rows.coalesce(int(left // table.options.compacted_bytes) + 1))
        lines = [*(action.remove() for _, action in some), *written]
        text = _commit_text([json.loads(str(action.json())) for action in lines], read, transaction.metrics())
        with commit_lock(table.location):
            may_be_committed = True
            try:
                table.folder.storage.put_if_absent(commit_file(table.folder, read + 1), text.encode())
            except FileExistsError as error:
                may_be_committed = False
                raise conflict(log.name) from error
    finally:
        if not may_be_committed:
            transaction.abandon()
    return True


def _is_clustered(protocol: Mapping[str, Any]) -> bool:
    return "clustering" in (protocol.get("writerFeatures") or ())


def _commit_text(actions: Sequence[dict[str, Any]], read: int, metrics: dict[str, int]) -> str:
    """Return the text of the commit: to readers of changes it says that there are none."""
    for action in actions:
        for body in action.values():
            body["dataChange"] = False
    info = {
        "timestamp": now_ms(),
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]"},
        "readVersion": read,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "engineInfo": f"Trickle/{__version__}",
        "txnId": str(uuid.uuid4()),
    }
    lines = [{"commitInfo": info}, *actions]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
