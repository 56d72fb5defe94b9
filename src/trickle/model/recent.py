"""A bounded, thread-safe cache of recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A bounded cache that evicts the least recently used value.

    >>> squares = Recent[int, int](2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (1, 2, 1, 3)], sorted(squares.keys())
    ([1, 4, 1, 9], [1, 3])
    """

    def __init__(self, most: int) -> None:
        """Start empty, and never hold more than ``most`` values."""
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; make it if it is missing. If two threads make it, the first one is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            return self._put(key, self._values.get(key, made))

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        with self._lock:
            self._put(key, value)

    def known(self, key: K) -> V | None:
        """Return the value of a key, None if it is missing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keys(self) -> list[K]:
        """List the keys, the latest last."""
        with self._lock:
            return list(self._values)

    def _put(self, key: K, value: V) -> V:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return value
