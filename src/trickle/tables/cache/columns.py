"""Columns of Parquet files, decoded once and kept: a file never changes, and look-ups come back to it at each refresh.

Law    a column is kept once it is asked for again, if there is room for it
       room is made only of columns that were last asked for before this one was: what is asked for in turn, and is too
       much to be kept, does not drive itself out
       a kept column is sorted once it was looked into so often that the sort would have paid, as long as half of the room
       is left: other columns save more
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.column_index import ColumnIndex, is_indexed
from trickle.tables.cache.encoding import Compact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Place = tuple[Path, str]


@dataclass(slots=True)
class _Kept:
    """A column, when it was last asked for, how often it was looked into, and its index if it has one."""

    column: Compact
    asked: int
    looks: int = 0
    index: ColumnIndex | None = None

    @property
    def bytes(self) -> int:
        return self.column.bytes + (0 if self.index is None else self.index.bytes)


@dataclass(slots=True)
class _Asked:
    """When a column that is not kept was last asked for, and how often it was."""

    clock: int
    times: int = 0


class ColumnCache:
    """The columns kept by one process; several threads may ask."""

    def __init__(self, options: Options = DEFAULT) -> None:
        """Keep nothing yet, and never more than some bytes."""
        self._options = options
        self.most_bytes = options.cache_bytes
        self.bytes = 0
        self._reserved = 0
        self._clock = 0
        self._kept: dict[Place, _Kept] = {}
        self._asked: dict[Place, _Asked] = {}
        self._lock = Lock()

    def get(self, path: Path, sizes: Mapping[str, int]) -> dict[str, Compact] | None:
        """Give columns of a file, told by name with the bytes each may take; None if they are not worth keeping yet.

        Raises:
            PolarsError: The file cannot be read.
            FileNotFoundError: It is gone.
        """
        with self._lock:
            missing = self._ask(path, list(sizes))
            room = sum(sizes[name] for name in missing or ())
            if missing is None or not self._make_room(room, self._since(path, missing)):
                return None
            self._reserved += room
        try:
            if missing:
                read = pl.read_parquet(path, columns=missing, glob=False, hive_partitioning=False).rechunk()
                columns = [Compact.of(values, self._options) for values in read]
                with self._lock:
                    self._keep(path, columns)
        finally:
            with self._lock:
                self._reserved -= room
        with self._lock:
            found = {name: kept.column for name in sizes if (kept := self._kept.get((path, name))) is not None}
        # Another thread may have needed the room meanwhile.
        return found if len(found) == len(sizes) else None

    def index(self, path: Path, name: str) -> ColumnIndex | None:
        """Give the index of a kept column; None if it has none, or is better looked at whole for now."""
        with self._lock:
            kept = self._kept.get((path, name))
            if kept is None or kept.index is not None:
                return None if kept is None else kept.index
            kept.looks += 1
            is_first, is_due = kept.looks == 1, kept.looks == self._options.index_looks
            numbers = kept.column.numbers
            is_due = is_due and self.bytes + ColumnIndex.most_bytes(numbers) <= self.most_bytes // 2
        if not is_indexed(numbers) or not (is_due or (is_first and numbers.is_sorted())):
            return None
        index = ColumnIndex.of(numbers)
        with self._lock:
            if self._kept.get((path, name)) is kept and kept.index is None:
                kept.index = index
                self.bytes += index.bytes
        return index

    def _ask(self, path: Path, names: Sequence[str]) -> list[str] | None:
        """Note that columns are asked for; gives those to decode, None if one was never asked for before."""
        self._clock += 1
        missing = [name for name in names if (path, name) not in self._kept]
        for name in names:
            if (kept := self._kept.get((path, name))) is not None:
                kept.asked = self._clock
        fresh = []
        for name in missing:
            asked = self._asked.setdefault((path, name), _Asked(self._clock))
            asked.times += 1
            if asked.times < self._options.column_cache_asks:
                asked.clock = self._clock
                fresh.append(name)
        while len(self._asked) > self._options.column_cache_noted:
            del self._asked[next(iter(self._asked))]
        return None if fresh else missing

    def _since(self, path: Path, names: Sequence[str]) -> int:
        """Give when columns were asked for before, and note that they are again."""
        asked = [found for name in names if (found := self._asked.get((path, name))) is not None]
        before = min((one.clock for one in asked), default=self._clock)
        for one in asked:
            one.clock = self._clock
        return before

    def _make_room(self, size: int, before: int) -> bool:
        """Forget columns last asked for before a time, the oldest first, if that makes room."""
        size += self._reserved  # by other threads that decode
        if self.bytes + size <= self.most_bytes:
            return True
        old = sorted((kept.asked, place) for place, kept in self._kept.items() if kept.asked < before)
        if self.bytes - sum(self._kept[place].bytes for _, place in old) + size > self.most_bytes:
            return False
        for _, place in old:
            if self.bytes + size <= self.most_bytes:
                break
            self.bytes -= self._kept.pop(place).bytes
        return True

    def _keep(self, path: Path, columns: Sequence[Compact]) -> None:
        for column in columns:
            place = path, column.numbers.name
            if place not in self._kept:
                self._kept[place] = _Kept(column, self._clock)
                self.bytes += column.bytes
            self._asked.pop(place, None)
