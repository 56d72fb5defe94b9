"""What of an object store is kept on this machine's disk, and what a file is called there.

Files of Parquet and of deletion vectors whose names hold a UUID, which nobody gives twice, are known by their names. Others,
such as commits and old checkpoints, whose names come again when a table is made anew, are known by their ETags too: these are
used only when the store has just told the same ETag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from trickle.tables.storage.disk_cache import DiskCache, Kept, Range
    from trickle.tables.storage.protocol import Mark

_COMMIT: Final = re.compile(r"/\d{20}\.json")
_LASTING: Final = re.compile(r"[^/]*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[^/]*\.(parquet|bin)")


def is_lasting(address: str) -> bool:
    """Return whether a name belongs to one file for ever."""
    return _LASTING.fullmatch(address, address.rfind("/") + 1) is not None


class LastingFiles:
    """The files of one store on this machine's disk, if it has room for any."""

    def __init__(self, disk: DiskCache | None, server: Callable[[], Iterable[object]]) -> None:
        """Take the disk, None for none, and what tells the server: on another one a file of the same name is another."""
        self._disk, self._server = disk, server

    def __bool__(self) -> bool:
        return self._disk is not None

    def has_room(self, ranges: Iterable[Range]) -> bool:
        """Return whether parts of files can be kept."""
        return self._disk is not None and self._disk.has_room(sum(length for _, length in ranges))

    def opened(
        self, address: str, mark: Mark | None = None, size: int | None = None
    ) -> AbstractContextManager[Kept | None]:
        """Open a file as far as it is kept; None without a disk, or if its name does not tell which it is."""
        if self._disk is None or (mark is None and not is_lasting(address)):
            return nullcontext()
        return self._disk.opened(self._key(address, mark), size)

    def keep(self, address: str, size: int, start: int, data: bytes, mark: Mark | None = None) -> None:
        """Keep a part of a file of some size."""
        if self._disk is not None:
            self._disk.keep(self._key(address, mark), size, start, data)

    def keep_commit(self, address: str, data: bytes, mark: Mark | None) -> None:
        """Keep a commit of a log under its ETag, for the next process to which a list of the log tells the same."""
        if mark is not None and _COMMIT.fullmatch(address, address.rfind("/")):
            self.keep(address, len(data), 0, data, mark)

    def _key(self, address: str, mark: Mark | None) -> str:
        return blake2b("\n".join(map(str, (*self._server(), address, mark))).encode(), digest_size=20).hexdigest()
