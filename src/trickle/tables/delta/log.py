"""The log of a Delta table, read commit by commit.

A Delta table's versions are files ``_delta_log/%020d.json``, one JSON action a line. Asking Spark for them costs jobs;
reading them is microseconds on a local path and one request each elsewhere. ``DeltaLogFiles`` gives typed commits and
keeps the newest ones parsed: a commit never changes once written, unless the table was dropped and created again or put back
from a backup, which is noticed by the newest known file being gone or another. What is in a log that is not the format's
ends in ``UNREADABLE_LOG``: to pass over it would be to lose rows.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from urllib.parse import unquote

from trickle.errors import SourceError, StorageError, TrickleError
from trickle.model.cache import Cache
from trickle.model.digests import digest_of_chain
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import HISTORY_EXPIRED
from trickle.tables import looks
from trickle.tables.delta import LOG_FOLDER
from trickle.tables.delta.actions import Commit, MalformedCommitError, parse_commit
from trickle.tables.delta.driver.fit import unknown_reading
from trickle.tables.storage.protocol import LATE_COMMITS
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trickle.tables.storage.protocol import Mark
    from trickle.tables.storage.schemes import Folder

UNREADABLE_LOG: Final = "UNREADABLE_LOG"
UNSUPPORTED_PROTOCOL: Final = "UNSUPPORTED_PROTOCOL"
_UNSUPPORTED_BY_DELTA: Final = ("DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION")
_ANEW: Final = (
    "A stream table may be dropped, by drop() or DROP TABLE, and created again: its rows follow from its sources."
)


def unreadable(table: str, version: int, file: str, what: object) -> SourceError:
    """Return the error of a file of a log that is not of the format."""
    return SourceError(
        UNREADABLE_LOG,
        f"Version {version} of the Delta table {table} cannot be read from {file}: {what}.",
        hint=f"If it is still being copied, wait; else restore the file from a backup. {_ANEW} Nothing was written.",
    )


class LogHandle(Protocol):
    """What reads of a table's log that commits alone do not tell: Delta itself, or as much as goes without Spark."""

    location: str

    def head(self) -> tuple[int, str]:
        """Return the newest version and the table's id."""
        ...

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Return the ``metaData`` action in force at a version."""
        ...

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Return the ``protocol`` action in force at a version."""
        ...

    def read_commits(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Return the texts of commits, as far as they are there."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file, named as the log names it, is there."""
        ...

    def forget(self) -> None:
        """Look anew the next time: the table is another."""
        ...


def commit_file(folder: Folder, version: int) -> str:
    """Return the address of a version's commit, in the folder of its table."""
    return folder / f"{LOG_FOLDER}/{version:020d}.json"


def last_checkpoint(folder: Folder | None) -> int:
    """Return the version of a table's newest checkpoint, -1 if there is none or only Spark knows."""
    if folder is None:
        return -1
    try:
        return int(json.loads(folder.storage.get(folder / f"{LOG_FOLDER}/_last_checkpoint"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1


@dataclass(frozen=True, slots=True)
class _Read:
    """A commit that was read, and the mark of its file."""

    commit: Commit
    mark: Mark | None


class DeltaLogFiles:
    """Reads a table's commits, and its newest version, with as little as the storage allows.

    A log on a storage that the driver knows is read by Python; any other, and one whose commits a catalog coordinates, by
    Delta's own log store.
    Thread-safe: what is remembered is read and changed under ``lock``. Whoever holds it sees one generation.
    """

    def __init__(self, handle: LogHandle, options: Options = DEFAULT, name: str = "") -> None:
        """Look at the log of a table, called ``name`` in messages; reads nothing yet."""
        self.lock = RLock()
        self._handle = handle
        self._options = options
        self.name = name
        self.folder = folder_at(handle.location)
        self._coordinated: bool | None = None
        self._head = -1
        self._head_mark: Mark | None = None
        self._marks: Mapping[int, Mark] = {}
        limit = options.log_commits_kept
        self._commits: Cache[int, _Read] = Cache("log commits", limit)
        self._in_force: dict[str, Cache[int, Mapping[str, Any]]] = {
            "metadata": Cache("table metadata", limit),
            "protocol": Cache("table protocols", limit),
        }
        self.generation = 0

    def take_name(self, name: str) -> None:
        """Be called so in messages, unless there is a name already."""
        self.name = self.name or name

    @property
    def _called(self) -> str:
        return f"'{self.name}' at {self._handle.location}" if self.name else self._handle.location

    def head(self) -> int:
        """Return the newest version.

        Raises:
            SourceError: ``SOURCE_MISSING``, no table is there.
        """
        with self.lock:
            known = looks.seen(self, self.generation)
            if known is not None:
                return known
            self._find_folder()
            before = self._head
            head = self._remote_head() if self._by_store() else self._local_head()
            if head < 0:
                self._forget()
            elif self._is_far:
                looks.note(self, self.generation, head)
                if 0 <= before < head <= before + self._options.log_steps_back:
                    self._fetch(range(before + 1, head + 1))  # that is what will be asked for next
        if head < 0:
            raise SourceError(
                "SOURCE_MISSING",
                f"There is no Delta table at {self._handle.location}.",
                hint="Was it dropped or moved? Create it again, or change the definition.",
            )
        return head

    def _find_folder(self) -> None:
        """Look again for the folder of a table on a storage that only Spark could reach."""
        if self.folder is None and (found := folder_at(self._handle.location)) is not None:
            self.folder = found
            self._forget()
            self._handle.forget()

    def is_there(self) -> bool:
        """Return whether one look, which is made anyway, shows the log; False where asking for its folder takes less."""
        try:
            return self._is_far and self.head() >= 0
        except SourceError:
            return False

    @property
    def _is_far(self) -> bool:
        """Whether each look at the log is a request that the driver makes."""
        return self.folder is not None and self.folder.storage.path(self.folder.address) is None

    def committed(self, version: int, text: str, mark: Mark | None) -> None:
        """Take note of a commit of ours, which then need not be read; without its mark it is."""
        with self.lock:
            if mark is None or self._head != version - 1:
                looks.look_again()
                return
            self._parsed(version, text, mark)
            self._head, self._head_mark, self._marks = version, mark, {**self._marks, version: mark}
            looks.note(self, self.generation, version)

    def commits(self, since: int, upto: int) -> tuple[Commit, ...]:
        """Return the commits after ``since`` up to and including ``upto``, oldest first.

        Raises:
            SourceError: ``HISTORY_EXPIRED``, the log does not reach back that far.
        """
        with self.lock:
            return self._read_commits(since, upto)

    def _read_commits(self, since: int, upto: int) -> tuple[Commit, ...]:
        if self._by_store() and not {*range(since + 1, upto + 1)} <= {*self._commits.keys()}:
            self._read_by_store(since + 1, upto)
        elif self._is_far:
            self._fetch(range(since + 1, upto + 1))
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
        """Return one commit, None if the log no longer has (or does not yet have) it.

        Raises:
            SourceError: ``UNREADABLE_LOG``, what is there is not a commit.
        """
        with self.lock:
            return self._read_commit(version)

    def _read_commit(self, version: int) -> Commit | None:
        known = self._commits.known(version)
        if known is not None:
            return known.commit
        if version < 0:
            return None
        if self._by_store() or self.folder is None:
            self._read_by_store(version, version)
            known = self._commits.known(version)
            return None if known is None else known.commit
        try:
            data, mark = self.folder.storage.get_marked(self._file(version), self._marks.get(version))
            text = data.decode()
        except FileNotFoundError:
            return None
        except StorageError:
            raise
        except (OSError, ValueError) as error:
            raise self._unreadable(version, str(error)) from error
        return self._parsed(version, text, mark)

    def _fetch(self, versions: Sequence[int]) -> None:
        """Read commits at once; what is wrong with one is said when it is asked for."""
        if self.folder is None or self._by_store():
            return
        versions = [version for version in versions if self._commits.known(version) is None]
        for part in range(0, len(versions), self._options.log_commits_kept):
            some = versions[part : part + self._options.log_commits_kept]
            files = list(map(self._file, some))
            seen = {
                file: self._marks[version] for version, file in zip(some, files, strict=True) if version in self._marks
            }
            for version, read in zip(some, self.folder.storage.get_many(files, seen), strict=True):
                with suppress(ValueError, TrickleError):
                    if read is not None:
                        self._parsed(version, read[0].decode(), read[1])

    def digest(self, version: int, before: int = 0) -> str | None:
        """Return what distinguishes a version from another of the same number, None if the log no longer has it.

        Where a late commit may overwrite one that others have built on, those before it are told too; on a file system, where
        a log may be copied bit by bit, so many ``before`` it.
        """
        with self.lock:
            is_here = self.folder is not None and not self._is_far and not self._by_store()
            copied = range(version - 1, max(version - before, 0) - 1, -1) if is_here else ()
            if any(map(self._is_changed, (version, *copied))):
                self._forget()
                self._handle.forget()
            late = self._overwritable(version)
            self._fetch([*late, version] if late else [])
            commit = self._read_commit(version)
            if commit is None:
                return None
            return digest_of_chain(
                [commit.digest, *map(self._digest_if_known, late), *map(self._digest_if_readable, copied)]
            )

    def _is_changed(self, version: int) -> bool:
        """Return whether a commit that was read is another by now."""
        known = self._commits.known(version)
        return known is not None and known.mark is not None and self._mark_seen(version) not in (known.mark, None)

    def _overwritable(self, version: int) -> list[int]:
        """Return the versions before one, newest first, that a late commit may overwrite: those that are known to be there."""
        if self.folder is None or not self.folder.storage.overwrites_late or self._by_store():
            return []
        before = range(version - 1, max(version - LATE_COMMITS, 0) - 1, -1)
        return [v for v in before if v in self._marks or self._commits.known(v) is not None]

    def _digest_if_known(self, version: int) -> str | None:
        known = self._commits.known(version)
        return None if known is None else known.commit.digest

    def _digest_if_readable(self, version: int) -> str | None:
        try:
            commit = self._read_commit(version)
        except SourceError:
            return None  # whoever needs it is told
        return None if commit is None else commit.digest

    def _read_by_store(self, start: int, end: int) -> None:
        with self.errors_named():
            texts = list(self._handle.read_commits(start, end))
        for version, text in texts:
            self._parsed(version, text)

    def _parsed(self, version: int, text: str, mark: Mark | None = None) -> Commit:
        try:
            commit = parse_commit(version, text)
        except MalformedCommitError as error:
            raise self._unreadable(version, str(error)) from error
        self._commits.put(version, _Read(commit, mark))
        return commit

    def _unreadable(self, version: int, what: str) -> SourceError:
        return unreadable(self._called, version, f"{version:020d}.json", what)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn Delta's errors about unreadable logs (a gap, an unknown feature) into ours."""
        try:
            yield
        except Exception as error:
            said = _said_by_delta(error)
            if said is None:
                raise
            if any(code in said for code in _UNSUPPORTED_BY_DELTA):
                raise self._unsupported(said) from error
            raise SourceError(
                UNREADABLE_LOG,
                f"Delta cannot read the log of the table {self._called}: {said}",
                hint=f"Restore what is missing in its folder _delta_log from a backup. {_ANEW}",
            ) from error

    def _unsupported(self, what: str) -> SourceError:
        return SourceError(
            UNSUPPORTED_PROTOCOL,
            f"The Delta table {self._called} needs a reader that knows more than this one: {what}.",
            hint="Drop that feature from the table, or use a version of Trickle and Delta Lake that knows it.",
        )

    def metadata(self, version: int) -> Mapping[str, Any]:
        """Return the table's metadata (id, schema, partition columns, properties) at a version.

        Raises:
            SourceError: ``UNSUPPORTED_PROTOCOL``, a reader of that version must know what is not known here.
        """
        with self.lock:
            if self._in_force["metadata"].known(version) is None:
                self._find_action("protocol", version)
            return self._find_action("metadata", version)

    def protocol(self, version: int) -> Mapping[str, Any]:
        """Return the features that readers and writers of a version must know.

        Raises:
            SourceError: ``UNSUPPORTED_PROTOCOL``, readers must know one that neither the driver nor Delta does.
        """
        with self.lock:
            return self._find_action("protocol", version)

    def _find_action(self, kind: Literal["metadata", "protocol"], version: int) -> Mapping[str, Any]:
        known = self._in_force[kind].known(version)
        if known is None:
            known = self._search(kind, version)
            if known is None:
                with self.errors_named():
                    known = self._handle.metadata(version) if kind == "metadata" else self._handle.protocol(version)
            if kind == "protocol" and (unknown := unknown_reading(known)) is not None:
                raise self._unsupported(unknown)
            self._in_force[kind].put(version, known)
        return known

    def _search(self, kind: Literal["metadata", "protocol"], version: int) -> Mapping[str, Any] | None:
        for back in range(version, max(version - self._options.log_steps_back, -1), -1):
            if (known := self._in_force[kind].known(back)) is not None:
                return known
            commit = self.commit(back)
            if commit is None:
                return None
            found = commit.metadata if kind == "metadata" else commit.protocol
            if found is not None:
                return found
        return None

    def missing(self, paths: set[str]) -> list[str]:
        """Return those of the files (paths as the log writes them) that storage no longer has."""
        addresses = {path: self.address_of(path) for path in sorted(paths)}
        known = [address for address in addresses.values() if address is not None]
        gone = set(self.folder.storage.missing(known)) if self.folder is not None else set()
        return [p for p, address in addresses.items() if (address in gone if address else not self._handle.exists(p))]

    def address_of(self, path: str) -> str | None:
        """Return the address of a file, named as the log names it, None if it is not on the table's storage."""
        if self.folder is None:
            return None
        if not path.startswith("/") and ":" not in path.split("/", 1)[0]:
            return self.folder / unquote(path)
        found = folder_at(unquote(path))
        return found.address if found is not None and found.storage is self.folder.storage else None

    @property
    def is_plain(self) -> bool:
        """Return whether the log is a folder with every commit that the driver reads: then commits may be put there."""
        return not self._by_store()

    def _by_store(self) -> bool:
        """Return whether Delta must be asked: of an unknown storage, or of commits that wait in a folder of their own."""
        if self.folder is None:
            return True
        if self._coordinated is None:
            # Every table has the folder; only coordinated ones use it.
            self._coordinated = bool(self.folder.storage.names(self.folder / f"{LOG_FOLDER}/_staged_commits"))
        return self._coordinated

    def _file(self, version: int) -> str:
        return commit_file(self.folder, version) if self.folder is not None else ""

    def _local_head(self) -> int:
        seen, self._marks = self._marks, self._look(self._head)
        if self._head >= 0 and (self._marks.get(self._head) != self._head_mark or self._has_other(seen)):
            self._forget()
            self._handle.forget()
            self._marks = self._look(-1)
        # If a commit is missing, later ones still count: stopping before it would ignore them.
        self._head = max(self._marks, default=-1)
        if self._head < 0:
            return -1
        self._head_mark = mark = self._marks[self._head]
        known = self._commits.known(self._head)
        if known is not None and known.mark != mark:
            self._forget()
            self._handle.forget()
            return self._local_head()
        return self._head

    def _has_other(self, seen: Mapping[int, Mark]) -> bool:
        """Return whether a commit is another than at the last look, or than the one that was read."""
        for version, mark in self._marks.items():
            read = self._commits.known(version)
            if seen.get(version, mark) != mark or (read is not None and read.mark not in (mark, None)):
                return True
        return False

    def _look(self, known: int) -> Mapping[int, Mark]:
        return {} if self.folder is None else self.folder.storage.versions(self.folder / LOG_FOLDER, known)

    def _mark_seen(self, version: int) -> Mark | None:
        """Return the mark of a version at the last look at the head, which may have told it."""
        if version in self._marks or self.folder is None:
            return self._marks.get(version)
        return self.folder.storage.mark(self._file(version))

    def _remote_head(self) -> int:
        with self.errors_named():
            version, table_id = self._handle.head()
        if version < self._head or self._head_mark not in (None, table_id) or self._is_other(version):
            self._forget()
            self._handle.forget()
        self._head, self._head_mark = version, table_id
        return version

    def _is_other(self, version: int) -> bool:
        """Say, when the head has moved on, whether the commit that was the head is another by now."""
        known = self._commits.pop(self._head) if version > self._head else None
        return known is not None and self.digest(self._head) != known.commit.digest

    def _forget(self) -> None:
        self._head, self._head_mark, self._coordinated, self._marks = -1, None, None, {}
        self._commits.clear()
        for known in self._in_force.values():
            known.clear()
        self.generation += 1


def _said_by_delta(error: Exception) -> str | None:
    """Return the first line of an error of Delta or Spark, None if it is none."""
    if isinstance(error, TrickleError):
        return None
    # Here, because a log is also read where there is no Spark.
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not isinstance(error, (Py4JJavaError, PySparkException)):
        return None
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
    return str(text).partition("\n")[0]
