"""Rows of a version of a Delta table by their keys, in the driver.

A look-up goes from the source to here to the files (``driver/find.py``). What was found recently is not searched for again: the
same keys are asked for by several terms of a change, and by other stream tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.rows import with_keys
from trickle.tables.cache.lookups import LookupCache
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.search import Search, bundled, files_near
from trickle.tables.delta.roll_forward import Base

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.layout import Layout
    from trickle.tables.delta.roll_forward import ChangeOf
    from trickle.tables.delta.table import DeltaTable


@dataclass(frozen=True, slots=True)
class _Way:
    """A version in whose files the rows of the wanted one are looked for, and the columns to read there."""

    base: Base
    layout: Layout
    fields: Sequence[pa.Field]
    is_rolled_forward: bool = False

    @property
    def place(self) -> tuple[object, ...]:
        return self.base.generation, self.base.version, *(field.name for field in self.fields)


class KeyLookup:
    """Finds the rows of one table; thread-safe."""

    def __init__(
        self,
        table: DeltaTable,
        columns: ColumnCache | None = None,
        change_of: ChangeOf | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Bind to a table; reads nothing yet.

        Columns read again and again are cached in ``columns``. With ``change_of`` those of one version serve later
        ones too.
        """
        self._table = table
        self._options = options
        self._columns = columns
        self._finder: Finder | None = None
        self._change_of = None if columns is None else change_of
        self._base: Base | None = None
        self._found, self._read = LookupCache(options), LookupCache(options)

    def find(self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return the rows at a version that have some keys, without any all of a small table's.

        None if they may be many, or only Spark can find them.
        """
        generation = self._table.log.generation
        for names, wanted in self._requests(version, columns, keys):
            place = generation, version, *names
            rows, missing = self._found.known(place, wanted)
            for way in self._ways(generation, version, names, missing) if missing is not None else ():
                read, unread = self._read.known(way.place, missing or {})
                if unread is not None:
                    try:
                        asked = self._search(way, unread)
                        others = self.finder_of(way.layout.table).find(
                            self._table.addresses(asked.files),
                            asked.fields_in_files,
                            asked.keys_in_files,
                            addressed=asked.is_addressed,
                            bundles=asked.bundles,
                        )
                        others = asked.completed(others)
                    except NeedsSparkError:
                        continue
                    read = self._read.put(way.place, missing or {}, read, others)
                found = self._completed(way, version, names, missing or {}, read)
                if found is not None:
                    rows, missing = self._found.put(place, wanted, rows, found), None
                    break
            if missing is None and rows is not None:
                return rows if wanted is keys else with_keys(rows, keys).select(list(columns))
        return None

    def finder_of(self, table: str) -> Finder:
        """Return the finder in the files of a table, by its id: another one may have been made in its place."""
        finder = self._finder
        if finder is None or finder.table != table:
            storage = None if self._table.folder is None else self._table.folder.storage
            finder = self._finder = Finder(self._columns, self._options, storage, table)
        return finder

    def _search(self, way: _Way, keys: Mapping[str, pa.Array]) -> Search:
        """Return what to ask of files for the rows that have some keys.

        Raises:
            NeedsSparkError: Only Spark can tell, or these are too many.
        """
        near = files_near(way.base.files, way.layout, keys)
        if len(near) > self._options.lookup_files:
            raise NeedsSparkError
        bundles = bundled(near, self._settled(way.base), self._options)
        files = [file for bundle in bundles for file in bundle]
        if sum(file.size for file in files) > self._options.lookup_file_bytes:
            raise NeedsSparkError
        return Search(files, [*map(len, bundles)], way.layout, way.fields, keys, self._table.masks(files))

    def _settled(self, at: Base) -> list[FileAction]:
        """Return the files of a version that were there when files were first searched, and still are."""
        base = self._base
        if base is None or base.generation != at.generation:
            return list(at.files)
        before = {file.path for file in base.files}
        return [file for file in at.files if file.path in before]

    def _requests(
        self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]
    ) -> Iterator[tuple[tuple[str, ...], Mapping[str, pa.Array]]]:
        """Return what to ask for, the first that can be answered: all rows of a small table, then those with the keys."""
        few = self._options.whole_rows
        if keys and (self._table.count(version) or few + 1) <= few:
            yield tuple(sorted({*columns, *keys})), {}
        yield tuple(columns), keys

    def _ways(
        self, generation: int, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]
    ) -> Iterator[_Way]:
        """Return the versions to read: one read before, if there is one, then the version itself.

        None at all if many rows may have the keys, or only Spark can read them.
        """
        table = self._table
        files, layout = table.known_files(version), table.layout(version)
        fields = layout.wanted(columns)
        if not files or fields is None or layout.wanted(keys) is None:
            return
        rows = self._foreseen(version, keys)
        if rows > (self._options.lookup_rows if keys else self._options.whole_rows_asked):
            return
        size = sum(file.size for file in files) / (table.count(version) or 1)
        if rows * size > self._options.lookup_bytes:
            return
        at = Base(generation, version, files)
        if keys and (older := self._older(at, tuple(dict.fromkeys((*columns, *keys))))) is not None:
            yield older
            self._base = at  # it did not do
        yield _Way(at, layout, fields)

    def _older(self, at: Base, columns: Sequence[str]) -> _Way | None:
        """Return a version read before whose files still serve, with the changes since; None if there is none."""
        base = self._base
        if self._change_of is None or (base and base.generation == at.generation and at.version <= base.version):
            return None
        if base is None or base.generation != at.generation:
            self._base = at
            return None
        if base.is_part_of(at.files):
            return None
        count = self._table.count(at.version) or 0
        extended = base.extended(at.version, columns, count, self._change_of, self._options)
        layout = self._table.layout(at.version)
        fields = layout.wanted(columns)
        if extended is None or fields is None:
            self._base = at
            return None
        return _Way(extended, layout, fields, is_rolled_forward=True)

    def _completed(
        self, way: _Way, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array], read: pa.Table | None
    ) -> pa.Table | None:
        """Return rows that were read as they are at the version; None if they cannot be rolled forward."""
        if read is None or not way.is_rolled_forward:
            return read
        found = way.base.roll_forward(read, version, keys)
        if found is None:
            return None
        self._base = way.base
        return found.select(list(columns))

    def _foreseen(self, version: int, keys: Mapping[str, pa.Array]) -> float:
        """Return how many rows some keys may have, as far as the log says: a value like any other."""
        rows = self._table.count(version) or 0
        domains = ((len(values), self._table.domain(version, name)) for name, values in keys.items())
        return rows * min((some / all_ for some, all_ in domains if all_), default=0 if keys else 1)
