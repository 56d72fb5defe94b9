"""The column cache: columns of Parquet files, decoded once. A file never changes, and each refresh looks into it again.

Law    a column is cached once it is asked for again, if there is room for it
       room is made only of columns that were last asked for before this one was: what is asked for in turn, and is too
       much to be cached, does not drive itself out
       a cached column is sorted once it was read so often that the sort would have paid, as long as half of the room
       is left: other columns save more
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from trickle.model.cache import Cache, CacheSize, register
from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.column_index import ColumnIndex, is_indexed
from trickle.tables.cache.encoding import Encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    Place = tuple[str, str]


@dataclass(slots=True)
class _Entry:
    """A column, when it was last read, how often, and its index if it has one."""

    column: Encoded
    asked: int
    looks: int = 0
    index: ColumnIndex | None = None

    @property
    def bytes(self) -> int:
        return self.column.bytes + (0 if self.index is None else self.index.bytes)


@dataclass(slots=True)
class _Asked:
    """When a column outside the cache was last read, and how often."""

    clock: int
    times: int = 0


class ColumnCache:
    """The columns cached by one process, by the address of their file; thread-safe.

    Attributes:
        rewritten: Columns of files that a rewrite brought, as they were decoded, until the next one takes these files.
    """

    name = "columns"

    def __init__(self, options: Options = DEFAULT) -> None:
        """Start empty, and never hold more than the allowed bytes."""
        self._options = options
        self.max_bytes = options.cache_bytes
        self.bytes = 0
        self._reserved = 0
        self._clock = 0
        self._entries: dict[Place, _Entry] = {}
        self._asked: dict[Place, _Asked] = {}
        self._lock = Lock()
        self.rewritten: Cache[Place, pl.Series] = Cache(
            "rewritten columns",
            options.column_cache_noted,
            max_bytes=options.rewritten_cache_bytes,
            bytes_of=lambda column: int(column.estimated_size()),
        )
        register(self)

    def size(self) -> CacheSize:
        """Return how much it holds."""
        with self._lock:
            return CacheSize(1, len(self._entries), self.bytes, 0, self.max_bytes)

    def reserve(self, address: str, sizes: Mapping[str, int]) -> list[str] | None:
        """Ask for columns of a file, by name with the bytes each may take.

        Gives those that are to be decoded, for which there is room until ``keep`` is called; None if the columns are not
        worth keeping yet.
        """
        with self._lock:
            missing = self._ask(address, list(sizes))
            room = sum(sizes[name] for name in missing or ())
            if missing is None or not self._make_room(room, self._since(address, missing)):
                return None
            self._reserved += room
            return missing

    def keep(
        self, address: str, sizes: Mapping[str, int], missing: Sequence[str], decoded: Iterable[pl.Series]
    ) -> dict[str, Encoded] | None:
        """Take what was decoded of the columns ``missing``, and give all that were asked for.

        None if some are not there: they could not be decoded, or another thread needed their room.
        """
        columns: list[Encoded] = []
        try:
            columns = [Encoded.of(values, self._options) for values in decoded]
        finally:
            with self._lock:
                for column in columns:
                    self._add((address, column.numbers.name), column)
                self._reserved -= sum(sizes[name] for name in missing)
        with self._lock:
            found = {name: entry.column for name in sizes if (entry := self._entries.get((address, name))) is not None}
        return found if len(found) == len(sizes) else None

    def index(self, address: str, name: str) -> ColumnIndex | None:
        """Return the index of a cached column; None if it has none, or is better looked at whole for now."""
        with self._lock:
            entry = self._entries.get((address, name))
            if entry is None or entry.index is not None:
                return None if entry is None else entry.index
            entry.looks += 1
            is_first, is_due = entry.looks == 1, entry.looks == self._options.index_looks
            numbers = entry.column.numbers
            is_due = is_due and self.bytes + ColumnIndex.max_bytes(numbers) <= self.max_bytes // 2
        if not is_indexed(numbers) or not (is_due or (is_first and numbers.is_sorted())):
            return None
        index = ColumnIndex.of(numbers)
        with self._lock:
            if self._entries.get((address, name)) is entry and entry.index is None:
                entry.index = index
                self.bytes += index.bytes
        return index

    def _ask(self, address: str, names: Sequence[str]) -> list[str] | None:
        """Count a read of columns; return those to decode, None if one was never read before."""
        self._clock += 1
        missing = [name for name in names if (address, name) not in self._entries]
        for name in names:
            if (entry := self._entries.get((address, name))) is not None:
                entry.asked = self._clock
        fresh = []
        for name in missing:
            asked = self._asked.setdefault((address, name), _Asked(self._clock))
            asked.times += 1
            if asked.times < self._options.column_cache_asks:
                asked.clock = self._clock
                fresh.append(name)
        while len(self._asked) > self._options.column_cache_noted:
            del self._asked[next(iter(self._asked))]
        return None if fresh else missing

    def _since(self, address: str, names: Sequence[str]) -> int:
        """Return when columns were last read, and note the new read."""
        asked = [found for name in names if (found := self._asked.get((address, name))) is not None]
        before = min((one.clock for one in asked), default=self._clock)
        for one in asked:
            one.clock = self._clock
        return before

    def _make_room(self, size: int, before: int) -> bool:
        """Evict columns last read before a time, the oldest first, if that makes room."""
        size += self._reserved  # by other threads that decode
        if self.bytes + size <= self.max_bytes:
            return True
        old = sorted((entry.asked, place) for place, entry in self._entries.items() if entry.asked < before)
        if self.bytes - sum(self._entries[place].bytes for _, place in old) + size > self.max_bytes:
            return False
        for _, place in old:
            if self.bytes + size <= self.max_bytes:
                break
            self.bytes -= self._entries.pop(place).bytes
        return True

    def _add(self, place: Place, column: Encoded) -> None:
        if place not in self._entries:
            self._entries[place] = _Entry(column, self._clock)
            self.bytes += column.bytes
        self._asked.pop(place, None)
