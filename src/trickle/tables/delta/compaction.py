"""Writes wasteful files of a table anew: many small ones, and big ones of which many rows are masked. No row changes.

Delta's own OPTIMIZE writes every file below a gigabyte anew; here a file that does no harm stays, so that what compaction costs
goes with what was changed since. Partitioned, clustered and stamped tables are left to it, unless its commit has no condition.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn

from trickle.errors import StorageError
from trickle.model.names import quote
from trickle.tables.delta.commit import Transaction, commit_lock, conflict
from trickle.tables.delta.driver.fit import is_stamped
from trickle.tables.delta.driver.housekeeping import commit_text, may_commit, needs_conditions, next_stamp
from trickle.tables.delta.log import commit_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from trickle.model.options import Options
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.table import DeltaTable


def wasteful_files(files: Sequence[FileAction], options: Options) -> list[FileAction]:
    """Return the files that are worth writing anew: the small ones if there are many, and those with many masked rows.

    A small file that is alone in its partition is not one too many.
    """
    small = [file for file in files if file.size < options.small_file_bytes]
    shared = Counter(map(_partition, small))
    small = [file for file in small if shared[_partition(file)] > 1 or not _partition(file)]
    some = small if len(small) > options.small_files else []
    worn = [file for file in files if file.masked * options.masked_share > (file.records or 0)]
    chosen = {file.key for file in (*some, *worn)}
    return [file for file in files if file.key in chosen]


def _partition(file: FileAction) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((file.body.get("partitionValues") or {}).items()))


def compact(table: DeltaTable) -> bool:
    """Write the wasteful files of a table anew; False if only Delta can, or does it better.

    Raises:
        ConflictError: Another commit came first.
    """
    log = table.log
    transaction = Transaction(table, log.name)
    read = transaction.version
    metadata = log.metadata(read)
    if table.folder is None or not may_commit(table, read):
        return False
    order = table.handle.clustering(transaction.snapshot) if _is_clustered(log.protocol(read)) else []
    is_plain = not metadata.get("partitionColumns") and not order and not is_stamped(metadata)
    if not is_plain and not needs_conditions(table.location):
        return False
    known = transaction.files()
    chosen = {file.key for file in wasteful_files([file for file, _ in known], table.options)}
    some = [(file, action) for file, action in known if file.key in chosen]
    if not some:
        return True
    rows = table.handle.files(transaction.snapshot, [action for _, action in some])
    left = sum(file.size * (1 - file.masked / max(file.records or 1, 1)) for file, _ in some)
    rows = _laid_out(
        rows, int(left // table.options.compacted_bytes) + 1, metadata.get("partitionColumns") or [], order
    )
    may_be_committed = False
    try:
        lines = [*(action.remove() for _, action in some), *transaction.write(rows)]
        stamp = next_stamp(log, read) if is_stamped(metadata) else None
        actions = _without_changes([json.loads(str(action.json())) for action in lines])
        text = commit_text("OPTIMIZE", {"predicate": "[]"}, actions, read, transaction.metrics(), stamp)
        with commit_lock(table.location):
            may_be_committed = True
            try:
                table.folder.storage.put_if_absent(commit_file(table.folder, read + 1), text.encode())
            except FileExistsError as error:
                may_be_committed = False
                raise conflict(log.name) from error
            except StorageError as error:
                may_be_committed = error.code != "NO_CONDITIONAL_PUT"
                if may_be_committed:
                    raise
                return False
    finally:
        if not may_be_committed:
            transaction.abandon()
    return True


def _laid_out(rows: DataFrame, files: int, partitions: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Return rows as they are to be written: each partition by one task, and rows that are close by their order together."""
    if partitions:
        return rows.repartition(*(fn.col(quote(name)) for name in partitions))
    if order:
        columns = [fn.col(quote(name)) for name in order]
        return rows.repartitionByRange(files, *columns).sortWithinPartitions(*columns)
    return rows.coalesce(files)


def _is_clustered(protocol: Mapping[str, Any]) -> bool:
    return "clustering" in (protocol.get("writerFeatures") or ())


def _without_changes(actions: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return actions that tell readers of changes that there are none."""
    for action in actions:
        for body in action.values():
            body["dataChange"] = False
    return actions
