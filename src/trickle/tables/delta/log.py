"""The log of a Delta table, read commit by commit.

A Delta table's versions are files ``_delta_log/%020d.json``, one JSON action a line. Asking Spark for them costs jobs;
reading them is microseconds on a local path and one request each elsewhere. ``DeltaLogFiles`` gives typed commits and
keeps the newest ones parsed: a commit never changes once written, unless the table was dropped and made anew or put back
from a backup, which is noticed by the newest known file being gone or another. What is in a log that is not the format's
ends in ``UNREADABLE_LOG``: to pass over it would be to lose rows.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import HISTORY_EXPIRED
from trickle.tables.delta.actions import Commit, MalformedCommitError, parse_commit
from trickle.tables.delta.driver.fit import unknown_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trickle.tables.delta.jvm import DeltaHandle

UNREADABLE_LOG: Final = "UNREADABLE_LOG"
UNSUPPORTED_PROTOCOL: Final = "UNSUPPORTED_PROTOCOL"
_UNSUPPORTED_BY_DELTA: Final = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION")


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

    def __init__(self, handle: DeltaHandle, options: Options = DEFAULT, name: str = "") -> None:
        """Look at the log of a table, called ``name`` in messages; reads nothing yet."""
        self.lock = RLock()
        self._handle = handle
        self._options = options
        self._called = f"'{name}' at {handle.location}" if name else handle.location
        folder = local_path(handle.location)
        self._log = folder / "_delta_log" if folder is not None else None
        self._coordinated: bool | None = None
        self._head = -1
        self._head_mark: tuple[int, ...] | str | None = None
        self._commits: OrderedDict[int, Commit] = OrderedDict()
        self._marks: dict[int, tuple[int, ...] | None] = {}
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
            self._read_by_store(since + 1, upto)
        found = []
        for version in range(since + 1, upto + 1):
            commit = self.commit(version)
            if commit is None:
                raise SourceError(
                    HISTORY_EXPIRED,
                    f"Version {version} is gone from the log of {self._called}.",
                    hint="Raise delta.logRetentionDuration on the source, or refresh more often.",
                )
            found.append(commit)
        return tuple(found)

    def commit(self, version: int) -> Commit | None:
        """Give one commit, None if the log no longer has (or does not yet have) it.

        Raises:
            SourceError: ``UNREADABLE_LOG``, what is there is not a commit.
        """
        with self.lock:
            return self._read_commit(version)

    def _read_commit(self, version: int) -> Commit | None:
        if version in self._commits:
            return self._commits[version]
        if version < 0:
            return None
        if self._by_store():
            self._read_by_store(version, version)
            return self._commits.get(version)
        mark = self._mark(version)  # before it is read: what is written after this is another file
        try:
            text = self._file(version).read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise self._unreadable(version, str(error)) from error
        commit = self._parsed(version, text)
        self._marks[version] = mark
        return commit

    def digest(self, version: int) -> str | None:
        """Give what tells the commit of a version from another of the same number, None if the log no longer has it."""
        with self.lock:
            known = self._marks.get(version)
            if known is not None and self._mark(version) not in (known, None):
                self._forget()
                self._handle.forget()
            commit = self._read_commit(version)
            return None if commit is None else commit.digest

    def _read_by_store(self, start: int, end: int) -> None:
        with self.errors_named():
            texts = list(self._handle.read_commits(start, end))
        for version, text in texts:
            self._parsed(version, text)

    def _parsed(self, version: int, text: str) -> Commit:
        try:
            return self._keep(parse_commit(version, text))
        except MalformedCommitError as error:
            raise self._unreadable(version, str(error)) from error

    def _unreadable(self, version: int, what: str) -> SourceError:
        return SourceError(
            UNREADABLE_LOG,
            f"Version {version} of the Delta table {self._called} cannot be read from {version:020d}.json: {what}.",
            hint="If it is still being copied, wait; else put the file back from a backup. Nothing was written.",
        )

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn what Delta says of a log that it cannot read (a gap, a feature it does not know) into our errors."""
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            said = str(text).partition("\n")[0]
            if any(code in said for code in _UNSUPPORTED_BY_DELTA):
                raise self._unsupported(said) from error
            raise SourceError(
                UNREADABLE_LOG,
                f"Delta cannot read the log of the table {self._called}: {said}",
                hint="Put back what is missing in its folder _delta_log, from a backup.",
            ) from error

    def _unsupported(self, what: str) -> SourceError:
        return SourceError(
            UNSUPPORTED_PROTOCOL,
            f"The Delta table {self._called} needs a reader that knows more than this one: {what}.",
            hint="Drop that feature from the table, or use a version of Trickle and Delta Lake that knows it.",
        )

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Give the table's metadata (id, schema, partition columns, properties) at a version.

        Raises:
            SourceError: ``UNSUPPORTED_PROTOCOL``, a reader of that version must know what is not known here.
        """
        with self.lock:
            if version not in self._kept_actions["metadata"]:
                self._in_force("protocol", version)
            return self._in_force("metadata", version)

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Give the features that readers and writers of a version must know.

        Raises:
            SourceError: ``UNSUPPORTED_PROTOCOL``, readers must know one that neither the driver nor Delta does.
        """
        with self.lock:
            return self._in_force("protocol", version)

    def _in_force(self, kind: Literal["metadata", "protocol"], version: int) -> Mapping[str, Any]:
        kept = self._kept_actions[kind]
        known = kept.get(version)
        if known is None:
            known = self._search(kind, version)
            if known is None:
                with self.errors_named():
                    known = self._handle.metadata(version) if kind == "metadata" else self._handle.protocol(version)
            if kind == "protocol" and (unknown := unknown_reading(known)) is not None:
                raise self._unsupported(unknown)
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
            self._handle.forget()
        if self._head < 0:
            self._head = self._newest_listed()
        if self._head < 0:
            return -1
        while self._file(self._head + 1).exists() or self._file(self._head + 2).exists():
            if not self._file(self._head + 1).exists():
                # A commit is missing: to stop before it would be to take what came after for nothing.
                self._head = self._newest_listed()
                break
            self._head += 1
        self._head_mark = mark = self._mark(self._head)
        if self._marks.get(self._head, mark) != mark:
            self._forget()
            self._handle.forget()
            return self._local_head()
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
        with self.errors_named():
            version, table_id = self._handle.head()
        if version < self._head or self._head_mark not in (None, table_id) or self._is_other(version):
            self._forget()
            self._handle.forget()
        self._head, self._head_mark = version, table_id
        return version

    def _is_other(self, version: int) -> bool:
        """Tell, when the head has moved on, whether the commit that was the head is another by now."""
        known = self._commits.pop(self._head, None) if version > self._head else None
        return known is not None and self.digest(self._head) != known.digest

    def _keep(self, commit: Commit) -> Commit:
        self._commits[commit.version] = commit
        while len(self._commits) > self._options.log_commits_kept:
            self._marks.pop(self._commits.popitem(last=False)[0], None)
        return commit

    def _forget(self) -> None:
        self._head, self._head_mark, self._coordinated = -1, None, None
        self._commits.clear()
        self._marks.clear()
        for kept in self._kept_actions.values():
            kept.clear()
        self.generation += 1
