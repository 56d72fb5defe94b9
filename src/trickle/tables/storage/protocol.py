"""What the driver needs from a storage to read and write tables without Spark.

Files go by their *address*: what the storage itself calls them (on a local disk a path), whole and unquoted. Every method may
be called by several threads. A file that is not there is ``FileNotFoundError``; anything else that fails is an ``OSError``,
``StorageError`` among them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Protocol, TypeAlias

from trickle.errors import StorageError

Mark: TypeAlias = Hashable
"""What distinguishes a file from another put in its place: an inode and its times, or an ETag."""


@dataclass(slots=True)
class Sink:
    """A file that is being written.

    Attributes:
        file: What a writer of Parquet takes: a path, or a file that is open.
        size: Its bytes, known once it is written.
        wait: What waits until it is there, and raises what went wrong; call it before the file is named in a commit.
    """

    file: str | BinaryIO
    size: int = 0
    wait: Callable[[], object] = lambda: None

    def finish(self, size: int, wait: Callable[[], object] | None = None) -> None:
        """Say that the file is written; only the storage calls this."""
        self.size = size
        if wait is not None:
            self.wait = wait


@dataclass(frozen=True, slots=True)
class Scannable:
    """Files as polars takes them.

    Attributes:
        files: Paths or URIs, or the bytes of the files, or open files that may have holes where nothing was asked for.
        options: The other arguments of ``scan_parquet`` and ``read_parquet`` that it needs to read them.
    """

    files: Any
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


NOTHING_SEEN: Final[Mapping[str, Mark]] = MappingProxyType({})


class UncertainPutError(StorageError):
    """A file was put, and nobody said whether it arrived: it may come to be there later."""

    def __init__(self, address: str, why: str) -> None:
        """Say which one, and what the store said."""
        text = f"Nobody said whether {address} was written ({why})"
        super().__init__("STORAGE_FAILED", text, hint="Refresh again: it finds out whether that commit was made.")


class TooLargeError(OSError):
    """Files would have to be copied to be searched, and are too large: Spark searches them where they are."""


LATE_COMMITS: Final = 8
"""Commits before the newest that a late one may still overwrite: writers on S3 look whether a file is there, then write it."""


class Storage(Protocol):
    """Files by their addresses.

    Attributes:
        overwrites_late: True if a writer of another kind may overwrite a commit that others have read and built on.
    """

    @property
    def overwrites_late(self) -> bool:
        """See above."""
        ...

    def versions(self, log: str, known: int) -> Mapping[int, Mark]:
        """Return commits of a log (files ``%020d.json``) by their numbers, with their marks: the known one and the newest.

        ``known`` is -1 if none is. One that is no longer there is left out; those between the two may be left out too. Where
        a number is missing, those beyond it still count. Where commits may be overwritten late, ``LATE_COMMITS`` before the
        known one are told too.
        """
        ...

    def mark(self, address: str) -> Mark | None:
        """Return what distinguishes a file from another of the same address, None if it is not there."""
        ...

    def size(self, address: str) -> int:
        """Return the bytes of a file."""
        ...

    def get(self, address: str) -> bytes:
        """Read a file."""
        ...

    def get_marked(self, address: str, seen: Mark | None = None) -> tuple[bytes, Mark | None]:
        """Read a file, with a mark that a later write does not have.

        If the caller has just ``seen`` its mark, the file of that mark will do, wherever it is kept.
        """
        ...

    def get_many(
        self, addresses: Sequence[str], seen: Mapping[str, Mark] = NOTHING_SEEN
    ) -> list[tuple[bytes, Mark | None] | None]:
        """Read files at once, as ``get_marked`` does; None for each that is not there."""
        ...

    def get_ranges(self, address: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read parts of a file, each given by its first byte and its length."""
        ...

    def missing(self, addresses: Iterable[str]) -> list[str]:
        """Return those of some files that are not there, in order."""
        ...

    def names(self, folder: str) -> list[str]:
        """List the names in a folder; nothing if there is no folder."""
        ...

    def is_folder(self, address: str) -> bool:
        """Return whether there is a folder, or files under that address."""
        ...

    def make_folder(self, address: str, *, parents: bool = False) -> None:
        """Make a folder if there is none, where the storage has folders; with ``parents`` those above it too."""
        ...

    def clear(self, folder: str) -> None:
        """Delete anything at the address of a folder that is not a folder."""
        ...

    def put(self, address: str, data: bytes) -> None:
        """Write a file, whatever was there; readers see the old one or the new one. It may be lost in a crash."""
        ...

    def put_if_absent(self, address: str, data: bytes) -> Mark | None:
        """Write a file that is not there yet, all or nothing: of two writers one wins. It outlives a crash.

        Returns its mark if the answer tells it.

        No two callers may put the same bytes: a file that has them is this one, and an answer was lost.

        Raises:
            FileExistsError: There is one.
            UncertainPutError: It may come to be there yet.
        """
        ...

    def delete(self, *addresses: str) -> None:
        """Delete files that may be there."""
        ...

    def sweep(self, folder: str) -> None:
        """Delete unfinished files that killed processes left in a folder."""
        ...

    def fetch(self, addresses: Sequence[str]) -> None:
        """Get ready for reading files, all at once, where that takes less time."""
        ...

    def later(self, work: Callable[[], object]) -> None:
        """Do what a refresh need not wait for, and what may fail: afterwards where writing takes time, else at once."""
        ...

    def readable(self, address: str) -> str | BinaryIO:
        """Return a file as pyarrow takes it: a path, or a file that is open."""
        ...

    def scannable(
        self, addresses: Sequence[str], parts: Sequence[Sequence[tuple[int, int]]] = ()
    ) -> AbstractContextManager[Scannable]:
        """Yield files as polars takes them, for as long as the context lasts.

        ``parts`` tells of each what will be read: without it, nothing is fetched before.

        Raises:
            TooLargeError: They would have to be copied.
        """
        ...

    def writable(self, address: str) -> AbstractContextManager[Sink]:
        """Write a file as writers of Parquet do; it outlives a crash once the context is left and ``wait`` returns."""
        ...

    def uri(self, address: str) -> str:
        """Return the URI of a file, as Spark reads it."""
        ...

    def path(self, address: str) -> Path | None:
        """Return the path of a file whose bytes are on this machine, None elsewhere."""
        ...

    def lock(self, address: str) -> AbstractContextManager[None]:
        """Let one process or thread at a time in, where the storage can; the lock is freed when its holder dies.

        Elsewhere nobody waits, and ``put_if_absent`` decides.
        """
        ...
