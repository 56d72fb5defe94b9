"""Bounded, thread-safe caches, and the sizes of all caches in the process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The size of all caches with one name.

    Attributes:
        caches: The number of caches; most kinds have one for each table.
        entries: The number of entries.
        bytes: The bytes of the entries, 0 if they are not counted.
        max_entries: The limit of entries, 0 if there is none.
        max_bytes: The limit of bytes, 0 if there is none.
    """

    caches: int = 0
    entries: int = 0
    bytes: int = 0
    max_entries: int = 0
    max_bytes: int = 0

    def __add__(self, other: CacheSize) -> CacheSize:
        return CacheSize(
            self.caches + other.caches,
            self.entries + other.entries,
            self.bytes + other.bytes,
            self.max_entries + other.max_entries,
            self.max_bytes + other.max_bytes,
        )


class Sized(Protocol):
    """A cache that can report its size."""

    name: str

    def size(self) -> CacheSize:
        """Return its size."""
        ...


_ALL: Final[WeakSet[Sized]] = WeakSet()
_ALL_LOCK: Final = Lock()


def register(cache: Sized) -> None:
    """Make ``cache_sizes`` count a cache as long as it lives."""
    with _ALL_LOCK:
        _ALL.add(cache)


def cache_sizes() -> Mapping[str, CacheSize]:
    """Return the sizes of the caches of this process, by name."""
    with _ALL_LOCK:
        caches = list(_ALL)
    sizes: dict[str, CacheSize] = {}
    for cache in sorted(caches, key=lambda one: one.name):
        sizes[cache.name] = sizes.get(cache.name, CacheSize()) + cache.size()
    return sizes


class Cache(Generic[K, V]):
    """Values by key, up to a number of entries and bytes: the least recently used value is evicted first.

    >>> squares = Cache[int, int]("squares", 2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (1, 2, 1, 3)], sorted(squares.keys())
    ([1, 4, 1, 9], [1, 3])
    """

    def __init__(
        self,
        name: str,
        max_entries: int = 0,
        *,
        max_bytes: int = 0,
        bytes_of: Callable[[V], int] | None = None,
        least: int = 0,
        evicted: Callable[[V], object] | None = None,
    ) -> None:
        """Start empty; without ``bytes_of`` only entries are counted, without ``max_entries`` only bytes.

        ``least`` is how many entries stay, whatever their bytes; ``evicted`` is called with each value that is pushed out.
        """
        self.name = name
        self._max_entries, self._max_bytes, self._least = max_entries, max_bytes, least
        self._bytes_of, self._evicted = bytes_of, evicted
        self._bytes = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()
        register(self)

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

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, None if it was missing."""
        with self._lock:
            if key not in self._values:
                return None
            value = self._values.pop(key)
            self._bytes -= self._size_of(value)
            return value

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def keys(self) -> list[K]:
        """List the keys, the latest last."""
        with self._lock:
            return list(self._values)

    def items(self) -> list[tuple[K, V]]:
        """List keys and values, the latest last; this does not count as use."""
        with self._lock:
            return list(self._values.items())

    def size(self) -> CacheSize:
        """Return its size."""
        with self._lock:
            return CacheSize(1, len(self._values), self._bytes, self._max_entries, self._max_bytes)

    def _put(self, key: K, value: V) -> V:
        if key in self._values:
            self._bytes -= self._size_of(self._values[key])
        self._values[key] = value
        self._values.move_to_end(key)
        self._bytes += self._size_of(value)
        while self._is_too_full():
            oldest = self._values.popitem(last=False)[1]
            self._bytes -= self._size_of(oldest)
            if self._evicted is not None:
                self._evicted(oldest)
        return value

    def _is_too_full(self) -> bool:
        if self._max_entries and len(self._values) > self._max_entries:
            return True
        return self._bytes_of is not None and self._bytes > self._max_bytes and len(self._values) > self._least

    def _size_of(self, value: V) -> int:
        return 0 if self._bytes_of is None else self._bytes_of(value)
