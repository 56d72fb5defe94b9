"""Locks by name for the threads of this process, for storages that have none."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock, RLock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator


class ThreadLocks:
    """Locks that are there while somebody holds one, or waits for it."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = Lock()
        self._locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Let one thread at a time in, and that one again."""
        with self._lock:
            lock = self._locks.get(name)
            if lock is None:
                lock = self._locks[name] = _Lock()
        with lock.lock:
            yield


class _Lock:
    """A lock that can be referred to weakly."""

    def __init__(self) -> None:
        self.lock = RLock()
