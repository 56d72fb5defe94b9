"""The log of a Delta table as an observer needs it, with Spark or without.

Without Spark a table's metadata comes from the commits; if these begin too late, from the checksum beside a version, or from
a checkpoint. Commits that only a catalog or another storage knows need Spark, and are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from trickle.errors import SourceError, StorageError
from trickle.model.options import Options
from trickle.tables.delta import LOG_FOLDER
from trickle.tables.delta.actions import (
    APPLICATION,
    MalformedCommitError,
    checked_metadata,
    checked_protocol,
    parse_commit,
)
from trickle.tables.delta.checkpoint_files import UNREADABLE, Kind, find_checkpoint
from trickle.tables.delta.log import DeltaLogFiles, commit_file, unreadable
from trickle.tables.logs import CommitFacts
from trickle.tables.storage.schemes import Folder, folder_at

if TYPE_CHECKING:
    from trickle.tables.delta.actions import Commit


class DeltaTableLog:
    """What observers ask of a Delta table."""

    def __init__(self, log: DeltaLogFiles, location: str) -> None:
        """Look at a log; reads nothing yet."""
        self._log = log
        self.location = location

    def head(self) -> int:
        """Return the newest version."""
        return self._log.head()

    def commit(self, version: int) -> CommitFacts | None:
        """Return what is known of a version, None if the log no longer has it."""
        commit = self._log.commit(version)
        return None if commit is None else _facts(commit)

    def identity(self) -> str:
        """Return the table's id."""
        return str(self._log.metadata(self.head())["id"])

    def properties(self) -> Mapping[str, str]:
        """Return the properties at the newest version."""
        return dict(self._log.metadata(self.head()).get("configuration") or {})


def open_delta_log(location: str) -> DeltaTableLog:
    """Return the log of the Delta table at a location, to be read without Spark."""
    # Here metadata is found without parsing commits: in the checksum beside a version, or by its name in the text.
    return DeltaTableLog(DeltaLogFiles(NoSpark(location), Options(log_steps_back=1)), location)


def _facts(commit: Commit) -> CommitFacts:
    info = commit.info
    is_ours = APPLICATION in commit.transactions and info.get("userMetadata") is not None
    metrics = info.get("operationMetrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    return CommitFacts(
        version=commit.version,
        time=_moment(info.get("inCommitTimestamp") or info.get("timestamp")),
        operation=commit.operation,
        changes_data=commit.changes_data,
        record=str(info["userMetadata"]) if is_ours else None,
        rows_inserted=_number(metrics.get("numInsertedRows")),
        rows_deleted=_number(metrics.get("numDeletedRows")),
    )


def _moment(milliseconds: object) -> datetime | None:
    number = _number(milliseconds)
    try:
        return None if number is None else datetime.fromtimestamp(number / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _number(text: object) -> int | None:
    try:
        return None if text is None else int(str(text))
    except ValueError:
        return None


_CHECKED: Final[Mapping[Kind, Callable[[Mapping[str, Any]], Mapping[str, Any]]]] = {
    "metaData": checked_metadata,
    "protocol": checked_protocol,
}


class NoSpark:
    """Stands for Delta where there is no Spark: what only Delta knows is refused."""

    def __init__(self, location: str) -> None:
        """Bind to a location; reads nothing yet."""
        self.location = location

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Return the ``metaData`` action in force at a version."""
        return self._in_force("metaData", version)

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Return the ``protocol`` action in force at a version."""
        return self._in_force("protocol", version)

    def head(self) -> NoReturn:
        """Refuse: only Delta knows."""
        raise self._refused("its versions are not files that can be listed here")

    def read_commits(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Refuse: only Delta knows."""
        raise self._refused(f"versions {start} to {end} are not files that can be read here")

    def exists(self, path: str) -> NoReturn:
        """Refuse: only Delta knows."""
        raise self._refused(f"{path} lies on another storage")

    def forget(self) -> None:
        """Do nothing: nothing is kept."""

    def _in_force(self, kind: Kind, version: int) -> Mapping[str, Any]:
        folder = folder_at(self.location)
        if folder is None:
            raise self._refused("its storage is not known here")
        found = _from_checksum(folder, kind, version)
        if found is None:
            found = _from_log(folder, kind, version)
        if found is None:
            raise self._refused(f"the log does not tell its {kind} at version {version}")
        return found

    def _refused(self, why: str) -> SourceError:
        hint = "Ask in a Spark session: Trickle(spark).status() and history() do."
        return SourceError("NEEDS_SPARK", f"The log of {self.location} cannot be read without Spark: {why}.", hint=hint)


def _from_checksum(folder: Folder, kind: Kind, version: int) -> Mapping[str, Any] | None:
    """Read the file beside a version that repeats its metadata; it may be missing."""
    try:
        text = folder.storage.get(commit_file(folder, version).removesuffix(".json") + ".crc")
        return _CHECKED[kind](json.loads(text)["metadata" if kind == "metaData" else kind])
    except (LookupError, OSError, TypeError, ValueError, RecursionError):
        return None


def _from_log(folder: Folder, kind: Kind, version: int) -> Mapping[str, Any] | None:
    """Read the commits back to the newest checkpoint up to a version, or to the first commit, then the checkpoint."""
    checkpoint = find_checkpoint(Folder(folder.storage, folder / LOG_FOLDER), version)
    for later in range(version, -1 if checkpoint is None else checkpoint.version, -1):
        found = _from_commit(folder, kind, later, is_needed=checkpoint is not None)
        if found is not None:
            return found
    if checkpoint is None:
        return None
    try:
        body = checkpoint.action(kind)
        return None if body is None else _CHECKED[kind](body)
    except StorageError:
        raise
    except UNREADABLE as error:
        raise unreadable(folder.address, checkpoint.version, ", ".join(checkpoint.names), error) from error


def _from_commit(folder: Folder, kind: Kind, version: int, *, is_needed: bool) -> Mapping[str, Any] | None:
    """Read one commit, whose absence is a gap if there is a checkpoint before it, else the beginning of the log."""
    file = commit_file(folder, version)
    try:
        text = folder.storage.get(file)
        # Reading a line's JSON is dear. A commit that was cut short may have lost the action, so it is read whatever it says.
        if f'"{kind}"'.encode() not in text and text.startswith(b"{") and text.rstrip().endswith(b"}"):
            return None
        commit = parse_commit(version, text.decode())
    except StorageError:
        raise
    except (OSError, ValueError, MalformedCommitError) as error:
        if isinstance(error, FileNotFoundError) and not is_needed:
            return None
        raise unreadable(folder.address, version, f"{version:020d}.json", error) from error
    return commit.metadata if kind == "metaData" else commit.protocol
