"""What the driver needs from a storage to read and write tables without Spark.

Files go by their *address*: what the storage itself calls them (on a local disk a path), whole and unquoted. Every method may
be called by several threads. A file that is not there is ``FileNotFoundError``; anything else that fails is an ``OSError``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

Mark: TypeAlias = Hashable
"""What distinguishes a file from another put in its place: an inode and its times, or an ETag."""


@dataclass(slots=True)
class Sink:
    """A file that is being written.

    Attributes:
        file: What a writer of Parquet takes: a path, or a file that is open.
        size: Its bytes, known once it is written.
    """

    file: str | BinaryIO
    size: int = 0


class Storage(Protocol):
    """Files by their addresses."""

    def newest_version(self, log: str, after: int) -> int:
        """Return the newest number of the files ``%020d.json`` in a folder, -1 if it has none.

        ``after`` is the newest one known, -1 if none is: what came since is found without listing the rest. Where a number
        is missing, those beyond it still count.
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

    def get_many(self, addresses: Sequence[str]) -> list[bytes | None]:
        """Read files at once; None for each that is not there."""
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

    def put_if_absent(self, address: str, data: bytes) -> None:
        """Write a file that is not there yet, all or nothing: of two writers one wins. It outlives a crash.

        Raises:
            FileExistsError: There is one.
        """
        ...

    def delete(self, address: str) -> None:
        """Delete a file, if it is there."""
        ...

    def sweep(self, folder: str) -> None:
        """Delete unfinished files that killed processes left in a folder."""
        ...

    def readable(self, address: str) -> str | BinaryIO:
        """Return a file as readers of Parquet take it: a path, or a file that is open."""
        ...

    def writable(self, address: str) -> AbstractContextManager[Sink]:
        """Write a file as writers of Parquet do; it outlives a crash once the context is left."""
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
