"""Commits by the driver that change no row: other metadata, a new table without rows, files written anew.

Delta's own commits on S3 have no condition. So the driver makes these there too, wherever it knows how.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from trickle._version import __version__
from trickle.errors import StorageError
from trickle.tables import looks
from trickle.tables.delta.commit import commit_lock, conflict
from trickle.tables.delta.driver.fit import is_committable, is_stamped
from trickle.tables.delta.driver.write import now_ms
from trickle.tables.delta.log import commit_file
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trickle.tables.delta.driver.write import Action
    from trickle.tables.delta.log import DeltaLogFiles
    from trickle.tables.delta.table import DeltaTable
    from trickle.tables.storage.schemes import Folder

_TRIES: Final = 20
_NO_CONDITIONS: Final = "NO_CONDITIONAL_PUT"


def needs_conditions(location: str) -> bool:
    """Return whether Delta's own commits to a table may overwrite others, so that the driver is to make them."""
    folder = folder_at(location)
    return folder is not None and folder.storage.overwrites_late


def next_stamp(log: DeltaLogFiles, read: int) -> int | None:
    """Return the time, in milliseconds, that a commit after a version of a stamped table has to say; None if unknown."""
    commit = log.commit(read)
    stamp = None if commit is None else commit.info.get("inCommitTimestamp")
    return None if stamp is None else max(now_ms(), int(stamp) + 1)


def may_commit(table: DeltaTable, read: int) -> bool:
    """Return whether the driver may commit to a table at a version."""
    log = table.log
    if table.folder is None or not log.is_plain:
        return False
    metadata = log.metadata(read)
    if not is_committable(log.protocol(read), metadata):
        return False
    return not is_stamped(metadata) or next_stamp(log, read) is not None


def commit_text(
    operation: str,
    parameters: Mapping[str, str],
    actions: Sequence[Action],
    read: int | None = None,
    metrics: Mapping[str, int] | None = None,
    stamp: int | None = None,
) -> str:
    """Return the text of a commit that is not a refresh's."""
    info: dict[str, Any] = {
        "timestamp": now_ms(),
        "operation": operation,
        "operationParameters": dict(parameters),
        **({} if read is None else {"readVersion": read}),
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {name: str(value) for name, value in (metrics or {}).items()},
        "engineInfo": f"Trickle/{__version__}",
        "txnId": str(uuid.uuid4()),
    }
    if stamp is not None:
        info["inCommitTimestamp"] = stamp
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in ({"commitInfo": info}, *actions))


def commit_metadata(
    table: DeltaTable,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    operation: str,
    parameters: Mapping[str, str],
) -> bool:
    """Set the metadata of a table to what ``change`` makes of it; False if only Delta can.

    Raises:
        ConflictError: Others committed again and again meanwhile.
    """
    for _ in range(_TRIES):
        looks.look_again()
        read = table.log.head()
        if table.folder is None or not may_commit(table, read):
            return False
        before = table.log.metadata(read)
        after = change(before)
        if after == before:
            return True
        stamp = next_stamp(table.log, read) if is_stamped(before) else None
        text = commit_text(operation, parameters, [{"metaData": dict(after)}], read, stamp=stamp)
        with commit_lock(table.location):
            try:
                mark = table.folder.storage.put_if_absent(commit_file(table.folder, read + 1), text.encode())
            except FileExistsError:
                continue
            except StorageError as error:
                if error.code == _NO_CONDITIONS:
                    return False
                raise
            table.log.committed(read + 1, text, mark)
        looks.look_again()
        return True
    raise conflict(table.log.name or table.location)


def commit_first(folder: Folder, protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Make a table without rows, unless there is one; False if only Delta can."""
    actions: list[Action] = [{"protocol": dict(protocol)}, {"metaData": dict(metadata)}]
    try:
        folder.storage.put_if_absent(commit_file(folder, 0), commit_text("CREATE TABLE", {}, actions).encode())
    except FileExistsError:
        pass  # another refresh made it first
    except StorageError as error:
        if error.code == _NO_CONDITIONS:
            return False
        raise
    return True
