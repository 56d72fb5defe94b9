"""Small files that never change, kept in memory."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Final

from trickle.model.cache import Cache
from trickle.tables.storage.remote_file import is_fixed

_LONG_AGO: Final = float("-inf")
_JUST_NOW: Final = 60.0
"""Seconds: nobody who cleans up takes files away that are so young."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A small file, and when it was there."""

    data: bytes
    since: float


class SmallFiles:
    """The bytes of files by their address, up to a number of bytes in all."""

    def __init__(self, max_bytes: int) -> None:
        """Start without any."""
        self._kept: Cache[str, _Kept] = Cache("small files", max_bytes=max_bytes, bytes_of=lambda kept: len(kept.data))

    def keep(self, address: str, data: bytes, *, was_asked: bool = True) -> None:
        """Keep a file, if it is one that never changes; ``was_asked`` if the store has just said that it is there."""
        if is_fixed(address):
            self._kept.put(address, _Kept(data, monotonic() if was_asked else _LONG_AGO))

    def get(self, address: str) -> bytes | None:
        """Return a file, None if it is not kept."""
        kept = self._kept.known(address)
        return None if kept is None else kept.data

    def was_there(self, address: str) -> bool:
        """Return whether a file was there just now."""
        kept = self._kept.known(address)
        return kept is not None and monotonic() - kept.since <= _JUST_NOW
