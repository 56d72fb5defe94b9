"""A file on an object store, as readers of Parquet read one: its end first, then parts of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

TAIL: Final = 1024 * 1024
"""Bytes that the first request fetches from the end of a file: the whole of a small one, the footer of most others."""

BLOCK: Final = 8 * 1024 * 1024
"""Bytes that a later request fetches at least."""

ReadRange = Callable[[int, int], bytes]


def is_fixed(address: str) -> bool:
    """Return whether a file never changes once it is written: its name is its own.

    A table that is made anew in the place of another may have a checkpoint of the same name.
    """
    return address.endswith(".parquet") and "/_delta_log/" not in address


class RemoteFile(io.RawIOBase):
    """A file that is read by ranges; it keeps the end, and the part read last.

    Args:
        size: Its bytes.
        tail: The bytes at its end.
        read_range: What fetches some, from a place on.
        block: How many are fetched at least.
    """

    def __init__(self, size: int, tail: bytes, read_range: ReadRange, block: int = BLOCK) -> None:
        """Fetch nothing yet."""
        super().__init__()
        self._size = size
        self._read_range = read_range
        self._block = block
        self._parts = {"tail": (size - len(tail), tail)}
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read as many bytes as the buffer takes, or as there are."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or as many as there are; all that are left if it is negative."""
        left = max(self._size - self._at, 0)
        size = left if size is None or size < 0 else min(size, left)
        start, self._at = self._at, self._at + size
        return self._bytes(start, size) if size else b""

    def _bytes(self, start: int, size: int) -> bytes:
        for begin, part in self._parts.values():
            if begin <= start and start + size <= begin + len(part):
                return part[start - begin : start - begin + size]
        length = min(max(size, self._block), self._size - start)
        part = self._read_range(start, length)
        self._parts["last"] = start, part
        return part[:size]
