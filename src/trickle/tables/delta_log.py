"""The log of a Delta table, read commit by commit.

A Delta table's versions are files ``_delta_log/%020d.json``, one JSON action a line. Asking Spark for them costs jobs;
reading them is microseconds on a local path and one request each elsewhere. ``DeltaLogFiles`` gives typed commits and
keeps the newest ones parsed: a commit never changes once written, unless the whole table was dropped and made anew,
which is noticed by the newest known file being gone or another.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import HISTORY_EXPIRED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.tables.delta_jvm import DeltaHandle


@dataclass(frozen=True, slots=True)
class FileAction:
    """A data or change file that a commit names.

    Attributes:
        action: ``add``, ``remove`` or ``cdc``.
        body: The action's JSON object as the log has it.
        vector: What tells this file's deletion vector from another of the same file, empty if it has none.
    """

    action: str
    body: Mapping[str, Any] = field(compare=False, hash=False)
    path: str
    vector: str
    size: int
    records: int | None

    @property
    def key(self) -> tuple[str, str]:
        """Name the rows: a file and the rows that are masked in it."""
        return self.path, self.vector

    @property
    def masked(self) -> int:
        """Count the rows that the deletion vector masks."""
        vector = self.body.get("deletionVector")
        return int(vector["cardinality"]) if vector else 0


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a Delta table, as its log tells it."""

    version: int
    adds: tuple[FileAction, ...]
    removes: tuple[FileAction, ...]
    feed: tuple[FileAction, ...]
    metadata: Mapping[str, Any] | None
    info: Mapping[str, Any]
    transactions: Mapping[str, int]
    changes_data: bool
    protocol: Mapping[str, Any] | None = None

    @property
    def operation(self) -> str:
        """Give the name of what was done, as ``DESCRIBE HISTORY`` shows it."""
        return str(self.info.get("operation", "UNKNOWN"))


def parse_commit(version: int, text: str) -> Commit:
    """Read the lines of one log file.

    ``changes_data`` is false for compaction: its adds and removes all say ``dataChange: false``.
    """
    files: dict[str, list[FileAction]] = {"add": [], "remove": [], "cdc": []}
    metadata: Mapping[str, Any] | None = None
    protocol: Mapping[str, Any] | None = None
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    changes_data = False
    for line in text.splitlines():
        if not line.strip():
            continue
        ((kind, body),) = json.loads(line).items()
        if kind in files:
            files[kind].append(_file_action(kind, body))
            changes_data = changes_data or (kind != "cdc" and bool(body.get("dataChange", True)))
        elif kind == "metaData":
            metadata = body
        elif kind == "protocol":
            protocol = body
        elif kind == "commitInfo":
            info = body
        elif kind == "txn":
            transactions[body["appId"]] = int(body["version"])
    return Commit(
        version=version,
        adds=tuple(files["add"]),
        removes=tuple(files["remove"]),
        feed=tuple(files["cdc"]),
        metadata=metadata,
        info=info,
        transactions=transactions,
        changes_data=changes_data,
        protocol=protocol,
    )


def _file_action(kind: str, body: Mapping[str, Any]) -> FileAction:
    vector = body.get("deletionVector")
    stats = body.get("stats")
    records = json.loads(stats).get("numRecords") if isinstance(stats, str) and stats else None
    return FileAction(
        action=kind,
        body=body,
        path=body["path"],
        vector=f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else "",
        size=int(body.get("size") or 0),
        records=records,
    )


def local_path(location: str) -> Path | None:
    """Give the folder of a table on a local file system, None for any other storage.

    >>> local_path("file:/data/orders"), local_path("s3a://bucket/orders")
    (PosixPath('/data/orders'), None)
    """
    if location.startswith("file:"):
        return Path("/" + location[len("file:") :].lstrip("/"))
    return Path(location) if location.startswith("/") else None


class DeltaLogFiles:
    """Reads a table's commits, and its newest version, with as little as the storage allows.

    A local log is read by Python; any other, and one whose commits a catalog coordinates, by Delta's own log store.
    Several threads may ask: what is remembered is read and changed under ``lock``. Whoever holds it sees one generation.
    """

    def __init__(self, handle: DeltaHandle, options: Options = DEFAULT) -> None:
        """Look at a table's log; reads nothing yet."""
        self.lock = RLock()
        self._handle = handle
        self._options = options
        folder = local_path(handle.location)
        self._log = folder / "_delta_log" if folder is not None else None
        self._coordinated: bool | None = None
        self._head = -1
        self._head_mark: tuple[int, ...] | str | None = None
        self._commits: OrderedDict[int, Commit] = OrderedDict()
        self._kept_actions: dict[str, dict[int, Mapping[str, Any]]] = {"metadata": {}, "protocol": {}}
        self.generation = 0

    def head(self) -> int:
        """Give the newest version.

        Raises:
            SourceError: ``SOURCE_MISSING``, no table is there.
        """
        with self.lock:
            head = self._remote_head() if self._by_store() else self._local_head()
            if head < 0:
                self._forget()
        if head < 0:
            raise SourceError(
                "SOURCE_MISSING",
                f"There is no Delta table at {self._handle.location}.",
                hint="Was it dropped or moved? Create it again, or change the definition.",
            )
        return head

    def commits(self, since: int, upto: int) -> tuple[Commit, ...]:
        """Give the commits after ``since`` up to and including ``upto``, oldest first.

        Raises:
            SourceError: ``HISTORY_EXPIRED``, the log does not reach back that far.
        """
        with self.lock:
            return self._read_commits(since, upto)

    def _read_commits(self, since: int, upto: int) -> tuple[Commit, ...]:
        if self._by_store() and any(v not in self._commits for v in range(since + 1, upto + 1)):
            for version, text in self._handle.read_commits(since + 1, upto):
                self._keep(parse_commit(version, text))
        found = []
        for version in range(since + 1, upto + 1):
            commit = self.commit(version)
            if commit is None:
                raise SourceError(
                    HISTORY_EXPIRED,
                    f"Version {version} is gone from the log of {self._handle.location}.",
                    hint="Raise delta.logRetentionDuration on the source, or refresh more often.",
                )
            found.append(commit)
        return tuple(found)

    def commit(self, version: int) -> Commit | None:
        """Give one commit, None if the log no longer has (or does not yet have) it."""
        with self.lock:
            return self._read_commit(version)

    def _read_commit(self, version: int) -> Commit | None:
        if version in self._commits:
            return self._commits[version]
        if self._by_store():
            for number, text in self._handle.read_commits(version, version):
                self._keep(parse_commit(number, text))
            return self._commits.get(version)
        try:
            text = self._file(version).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return self._keep(parse_commit(version, text))

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Give the table's metadata (id, schema, partition columns, properties) at a version."""
        with self.lock:
            return self._in_force("metadata", version)

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Give the features that readers and writers of a version must know."""
        with self.lock:
            return self._in_force("protocol", version)

    def _in_force(self, kind: Literal["metadata", "protocol"], version: int) -> Mapping[str, Any]:
        kept = self._kept_actions[kind]
        known = kept.get(version)
        if known is None:
            known = self._search(kind, version)
            if known is None:
                known = self._handle.metadata(version) if kind == "metadata" else self._handle.protocol(version)
            if len(kept) > self._options.log_commits_kept:
                kept.clear()
            kept[version] = known
        return known

    def _search(self, kind: Literal["metadata", "protocol"], version: int) -> Mapping[str, Any] | None:
        kept = self._kept_actions[kind]
        for back in range(version, max(version - self._options.log_steps_back, -1), -1):
            if back in kept:
                return kept[back]
            commit = self.commit(back)
            if commit is None:
                return None
            found = commit.metadata if kind == "metadata" else commit.protocol
            if found is not None:
                return found
        return None

    def missing(self, paths: set[str]) -> list[str]:
        """Give those of the files (paths as the log writes them) that storage no longer has."""
        return [path for path in sorted(paths) if not self._has(path)]

    def _has(self, path: str) -> bool:
        file = self.path_of(path)
        return file.exists() if file is not None else self._handle.exists(path)

    def path_of(self, path: str) -> Path | None:
        """Give the place of a file, named as the log names it, None if it is not on a local file system."""
        root = local_path(self._handle.location)
        is_absolute = path.startswith("/") or ":" in path.split("/", 1)[0]
        return local_path(unquote(path)) if is_absolute else root and root / unquote(path)

    @property
    def is_plain(self) -> bool:
        """Tell whether the log is a local folder that holds every commit: then commits may be put there."""
        return not self._by_store()

    def _by_store(self) -> bool:
        """Tell whether Delta must be asked: the log is not local, or its newest commits wait in a folder of their own."""
        if self._log is None:
            return True
        if self._coordinated is None:
            staged = self._log / "_staged_commits"  # every table has the folder; only coordinated ones use it
            self._coordinated = staged.is_dir() and any(staged.iterdir())
        return self._coordinated

    def _file(self, version: int) -> Path:
        return (self._log or Path()) / f"{version:020d}.json"

    def _local_head(self) -> int:
        if self._head >= 0 and self._mark(self._head) != self._head_mark:
            self._forget()
        if self._head < 0:
            self._head = self._newest_listed()
        if self._head < 0:
            return -1
        while self._file(self._head + 1).exists():
            self._head += 1
        self._head_mark = self._mark(self._head)
        return self._head

    def _newest_listed(self) -> int:
        try:
            names = [entry.name for entry in self._file(0).parent.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return -1
        commits = (name[:20] for name in names if len(name) == 25 and name.endswith(".json"))
        return max((int(number) for number in commits if number.isdigit()), default=-1)

    def _mark(self, version: int) -> tuple[int, ...] | None:
        try:
            stat = self._file(version).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _remote_head(self) -> int:
        version, table_id = self._handle.head()
        if version < self._head or self._head_mark not in (None, table_id):
            self._forget()
        self._head, self._head_mark = version, table_id
        return version

    def _keep(self, commit: Commit) -> Commit:
        self._commits[commit.version] = commit
        while len(self._commits) > self._options.log_commits_kept:
            self._commits.popitem(last=False)
        return commit

    def _forget(self) -> None:
        self._head, self._head_mark, self._coordinated = -1, None, None
        self._commits.clear()
        for kept in self._kept_actions.values():
            kept.clear()
        self.generation += 1
