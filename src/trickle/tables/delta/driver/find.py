"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.types import are_whole, polars_facts
from trickle.tables.cache.encoding import decoded
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.footers import Footer, read_footer
from trickle.tables.delta.driver.read import read_file
from trickle.tables.storage.protocol import TooLargeError
from trickle.tables.storage.schemes import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from trickle.tables.arrow.rows import Numbers
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.cache.encoding import Encoded
    from trickle.tables.storage.protocol import Scannable, Storage

_AS_NAMED: Final[Mapping[str, Any]] = MappingProxyType(
    {"glob": False, "hive_partitioning": False, "extra_columns": "ignore"}
)
"""How polars reads files: those that are named, and of each the columns that are asked for, whatever others it has."""

IN_FILE, IN_ROW = "__trickle_file", "__trickle_row"
"""Columns for the number of a file, and of a row in it."""


@dataclass(frozen=True, slots=True)
class Located:
    """Rows with their addresses.

    Attributes:
        rows: The columns that were asked for.
        files: For each row the number of its file among those that were searched.
        places: For each row its number in the file, masked ones counted.
    """

    rows: pa.Table
    files: Numbers
    places: Numbers


@dataclass(slots=True)
class _Room:
    """Room in the column cache: for which files, and which columns are to be decoded; then these, and all that it holds."""

    address: str
    missing: list[str]
    decoded: Sequence[pl.Series] = ()
    held: Mapping[str, Encoded] | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The values looked for in a column: in order, each once; and whether NULL is one of them."""

    values: pl.Series
    null: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.null and self.values.is_empty()

    def test(self, name: str, values: pl.Series | None = None) -> pl.Expr:
        """Return the test of a column, which may hold the values in another form."""
        is_one = pl.col(name).is_in((self.values if values is None else values).implode())
        return is_one | pl.col(name).is_null() if self.null else is_one


class Finder:
    """Finds rows in files of one table; remembers which files it can read, for files never change."""

    def __init__(
        self,
        columns: ColumnCache | None = None,
        options: Options = DEFAULT,
        storage: Storage | None = None,
        table: str = "",
    ) -> None:
        """Start without files; columns that are read again and again are cached in ``columns``.

        ``table`` is the table's id, where files of another one, made in its place, may have the same names.
        """
        self.table = table
        self._columns = columns
        self._options = options
        self._storage = LOCAL if storage is None else storage
        self._facts: Cache[str, Footer] = Cache("file footers", options.file_facts_kept)

    def find(
        self,
        files: Sequence[str],
        fields: Sequence[pa.Field],
        keys: Mapping[str, pa.Array],
        *,
        addressed: bool = False,
        bundles: Sequence[int] = (),
    ) -> pa.Table:
        """Return the rows of files whose value of each key column is one of the given, with exactly these columns.

        NULL is not found by a key, unless rows are ``addressed``: then two more columns tell the number of the file and of
        the row in it, and NULL is a value like any other.

        ``bundles`` says how many files, one after the other, are cached and searched as one; without it each is by itself.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        names = [field.name for field in fields]
        facts = self._checked(files, fields, keys)
        more = [pa.field(name, pa.int64()) for name in (IN_FILE, IN_ROW)] if addressed else []
        schema = pa.schema([*(pa.field(field.name, field.type) for field in fields), *more])
        wanted = {name: _Wanted(_in_order(v), null=addressed and v.null_count > 0) for name, v in keys.items()}
        if any(one.is_empty for one in wanted.values()):
            return schema.empty_table()
        counts = [known.rows for known in facts]
        needed = (*names, *wanted)
        found, left, read = [], [], []
        try:
            for numbers in _bundled(len(files), bundles):
                with self._room(numbers, files, facts, needed if wanted else ()) as room:
                    if room.missing:
                        with self._scannable(numbers, files, facts, room.missing) as place:
                            scan = pl.scan_parquet(place.files, **_AS_NAMED, **place.options)
                            room.decoded = scan.select(room.missing).collect().rechunk().get_columns()
                if room.held is None:
                    left.extend(numbers)
                    continue
                rows = self._matching(room.address, room.held, names, wanted, addressed=addressed)
                found.append(_by_file(rows, numbers, counts) if addressed else rows)
            for numbers in _alike(left, facts, needed):
                with self._scannable(numbers, files, facts, needed) as place:
                    row_index = IN_ROW if addressed else None
                    scan = pl.scan_parquet(place.files, row_index_name=row_index, **_AS_NAMED, **place.options)
                    types = facts[numbers[0]].types
                    scan = scan.filter(
                        *(one.test(name, _as_held(one.values, types[name])) for name, one in wanted.items())
                    )
                    scan = scan.select([*names, IN_ROW] if addressed else names)
                    rows = scan.head(self._options.lookup_rows + 1).collect()
                read.append(_by_file(rows, numbers, counts) if addressed else rows)
        except (pl.exceptions.PolarsError, FileNotFoundError, TooLargeError) as error:
            raise NeedsSparkError from error
        if sum(rows.height for rows in (*found, *read)) > self._options.lookup_rows:
            raise NeedsSparkError
        return _joined(schema, found, read)

    def _scannable(
        self, numbers: Sequence[int], files: Sequence[str], facts: Sequence[Footer], names: Sequence[str]
    ) -> AbstractContextManager[Scannable]:
        """Lend some files to polars, which will read these columns."""
        are_known = all(facts[number].chunks.keys() >= set(names) for number in numbers)
        parts = [facts[number].parts(names) for number in numbers] if are_known else ()
        return self._storage.scannable([files[number] for number in numbers], parts)

    def take(
        self, files: Sequence[str], fields: Sequence[pa.Field], places: Sequence[Numbers]
    ) -> tuple[pa.Table, list[int]]:
        """Return the rows of files at some places, with exactly these columns, and the numbers of the files in their order.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too much would have to be decoded.
        """
        names = [field.name for field in fields]
        facts = self._checked(files, fields, {})
        found, read, order, left = [], [], [], []
        try:
            for number in range(len(files)):
                with self._room([number], files, facts, names) as room:
                    if room.missing:
                        room.decoded = (
                            next(self._decoded([number], files, facts, room.missing))[1].rechunk().get_columns()
                        )
                if room.held is None:
                    left.append(number)
                    continue
                at = pl.Series(places[number], dtype=pl.UInt32)
                columns = (room.held[name] for name in names)
                found.append(pl.DataFrame([column.shown(column.numbers.gather(at)) for column in columns]))
                order.append(number)
            spans = {number: (int(places[number].min()), int(places[number].max()) + 1) for number in left}
            few = [number for number, (start, end) in spans.items() if 2 * (end - start) <= facts[number].rows]
            if self._bytes(facts, names, spans) > self._options.driver_change_bytes:
                raise NeedsSparkError
            for number in few:
                start, end = spans[number]
                with self._scannable([number], files, facts, names) as place:
                    scan = pl.scan_parquet(place.files, **_AS_NAMED, **place.options)
                    rows = scan.slice(start, end - start).select(names).collect()
                read.append(rows[places[number] - start])
                order.append(number)
            for number, rows in self._decoded([number for number in left if number not in few], files, facts, names):
                read.append(rows[places[number]])
                order.append(number)
        except (pl.exceptions.PolarsError, FileNotFoundError, TooLargeError) as error:
            raise NeedsSparkError from error
        return _joined(_loose(fields), found, read), order

    @staticmethod
    def _bytes(facts: Sequence[Footer], names: Sequence[str], spans: Mapping[int, tuple[int, int]]) -> int:
        """Count the bytes of columns that are decoded for some rows of files: those of the row groups that these are in."""
        found = 0
        for number, (start, end) in spans.items():
            ends = list(accumulate(facts[number].groups, initial=0))
            rows = sum(last - first for first, last in pairwise(ends) if first < end and start < last)
            found += sum(facts[number].sizes[name] for name in names) * rows // max(facts[number].rows, 1)
        return found

    def read(self, files: Sequence[str], fields: Sequence[pa.Field]) -> list[pl.DataFrame]:
        """Return all rows of files, for each file by itself, with exactly these columns.

        Columns are kept for a while: files that a rewrite brings are those that the next one takes.

        Raises:
            NeedsSparkError: Only Spark can read a file, or a file is gone.
        """
        facts = self._checked(files, fields, {})
        types = {field.name: _dtype(field.type) for field in fields}
        kept = None if self._columns is None else self._columns.rewritten
        places = [f"{self.table}:{file}" for file in files]
        found = [{n: None if kept is None else kept.known((place, n)) for n in types} for place in places]
        for number, columns in enumerate(found):
            for name in [name for name, column in columns.items() if column is None]:
                columns[name] = self._same_bytes(number, name, files, facts, found)
        lacking: dict[tuple[str, ...], list[int]] = {}
        for number, columns in enumerate(found):
            lacking.setdefault(tuple(name for name, column in columns.items() if column is None), []).append(number)
        try:
            for names, numbers in lacking.items():
                for number, rows in self._decoded(numbers, files, facts, names) if names else ():
                    found[number].update({column.name: column for column in rows.get_columns()})
        except (pl.exceptions.PolarsError, FileNotFoundError, TooLargeError) as error:
            raise NeedsSparkError from error
        frames = []
        for place, columns in zip(places, found, strict=True):
            for name, column in columns.items():
                if column is not None and kept is not None:
                    kept.put((place, name), column)
            rows = pl.DataFrame([column for column in columns.values() if column is not None])
            frames.append(rows if rows.schema == types else rows.cast(types))
        return frames

    def _same_bytes(
        self,
        number: int,
        name: str,
        files: Sequence[str],
        facts: Sequence[Footer],
        found: Sequence[Mapping[str, pl.Series | None]],
    ) -> pl.Series | None:
        """Return a column that is decoded of another file, which has it in the same bytes: an update leaves most columns.

        Only of files on this machine: elsewhere to fetch the other one's bytes too takes longer than to decode.
        """
        mine = facts[number]
        for other, columns in enumerate(found):
            theirs, column = facts[other], columns[name]
            alike = mine.types[name] == theirs.types[name] and mine.codes[name] == theirs.codes[name]
            lengths = ([length for _, length in of.chunks[name]] for of in (mine, theirs))
            if (
                column is None
                or not alike
                or next(lengths) != next(lengths)
                or self._storage.path(files[number]) is None
            ):
                continue
            with suppress(OSError):
                some = (self._storage.get_ranges(files[at], facts[at].chunks[name]) for at in (number, other))
                if next(some) == next(some):
                    return column
        return None

    def rows(self, file: str) -> int:
        """Count the rows of a file.

        Raises:
            NeedsSparkError: Only Spark can read it, or it is gone.
        """
        return self._facts.get(file, partial(read_footer, self._storage, file)).rows

    def _decoded(
        self, numbers: Sequence[int], files: Sequence[str], facts: Sequence[Footer], names: Sequence[str]
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Decode columns of some files, many by one scan; return the number of each with its rows."""
        for alike in _alike(numbers, facts, names):
            with self._scannable(alike, files, facts, names) as place:
                rows = pl.scan_parquet(place.files, **_AS_NAMED, **place.options).select(names).collect()
            start = 0
            for number in alike:
                yield number, rows[start : start + facts[number].rows]
                start += facts[number].rows

    @contextmanager
    def _room(
        self, numbers: Sequence[int], files: Sequence[str], facts: Sequence[Footer], names: Sequence[str]
    ) -> Iterator[_Room]:
        """Ask for room for the columns of some files, end to end, and keep what is decoded of them.

        Nothing is held if they are not worth caching yet, or another thread needed the room meanwhile.
        """
        room = _Room("", [])
        if self._columns is None or not names or len(_alike(numbers, facts, names)) > 1:
            yield room
            return
        sizes = {name: sum(facts[number].sizes[name] for number in numbers) for name in names}
        address = f"{self.table}:{files[numbers[0]] if len(numbers) == 1 else _bundle(files[n] for n in numbers)}"
        missing = self._columns.reserve(address, sizes)
        if missing is None:
            yield room
            return
        room.address, room.missing = address, missing
        try:
            yield room
        finally:
            room.held = self._columns.keep(address, sizes, missing, room.decoded)

    def locate(
        self,
        files: Sequence[str],
        fields: Sequence[pa.Field],
        keys: Mapping[str, pa.Array],
    ) -> Located:
        """Return the rows with their addresses; NULL is found if it is one of the values of a key.

        Columns that files hold in another form than the table, such as old timestamps, are read as ``read_file`` does.

        Raises:
            NeedsSparkError: As ``find`` does.
        """
        facts = [self._facts.get(file, partial(read_footer, self._storage, file)) for file in files]
        plain = [field for field in fields if all(known.has(field) for known in facts)]
        others = [field for field in fields if field not in plain]
        if {IN_FILE, IN_ROW} & {field.name for field in fields} or keys.keys() & {field.name for field in others}:
            raise NeedsSparkError
        rows = self.find(files, plain, keys, addressed=True)
        in_file, places = rows.column(IN_FILE).to_numpy(), rows.column(IN_ROW).to_numpy()
        if others:
            for field, column in zip(others, self._others(files, others, in_file, places), strict=True):
                rows = rows.append_column(field.name, column)
        return Located(rows.select([field.name for field in fields]), in_file, places)

    def _others(self, files: Sequence[str], fields: Sequence[pa.Field], in_file: Numbers, places: Numbers) -> list[Any]:
        """Return columns of rows by their addresses, decoded whole, file by file."""
        order = np.argsort(in_file, kind="stable")
        parts = [_loose(fields).empty_table()]
        for number in np.unique(in_file):
            rows = read_file(self._storage.readable(files[number]), fields)
            parts.append(rows.take(pa.array(places[order][in_file[order] == number])).cast(parts[0].schema))
        table = pa.concat_tables(parts).take(pa.array(np.argsort(order)))
        return list(table.columns)

    def _checked(self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> list[Footer]:
        """Return what is known of files.

        Raises:
            NeedsSparkError: They have other columns than these, or columns that the driver cannot read.
        """
        if any(_is_pattern(field.name) for field in fields):
            raise NeedsSparkError
        facts = [self._facts.get(file, partial(read_footer, self._storage, file)) for file in files]
        for known in facts:
            if not all(known.has(field) for field in fields):
                raise NeedsSparkError
            if not keys.keys() <= known.sizes.keys():
                raise NeedsSparkError
        return facts

    def _matching(
        self,
        file: str,
        held: Mapping[str, Encoded],
        names: Sequence[str],
        wanted: Mapping[str, _Wanted],
        *,
        addressed: bool,
    ) -> pl.DataFrame:
        """Return the rows of cached columns that have the keys: those of one column by its index, if it has one.

        If they are ``addressed``, with the rows' numbers.
        """
        keys = {name: held[name].keys(one.values) for name, one in wanted.items()}
        places = None
        for name in wanted:
            index = self._columns.index(file, name) if self._columns is not None else None  # only of one without NULL
            places = index.places(keys[name], self._options) if index else None
            if places is not None:
                del keys[name]
                break
        # Rows of no column would not be counted.
        rows = pl.DataFrame([held[name].numbers for name in dict.fromkeys((*names, *(keys if names else wanted)))])
        if places is not None:
            rows = rows[places]
        if addressed:
            rows = rows.with_row_index(IN_ROW) if places is None else rows.with_columns(pl.Series(IN_ROW, places))
        if keys:
            rows = rows.filter(*(wanted[name].test(name, values) for name, values in keys.items()))
        shown = [held[name].shown(rows.get_column(name)) for name in names]
        if addressed:
            shown += [rows.get_column(IN_ROW)]
        return pl.DataFrame(shown)


def _bundled(count: int, bundles: Sequence[int]) -> list[list[int]]:
    """Number files, those of a bundle together."""
    ends = list(accumulate(bundles or [1] * count))
    return [list(range(start, end)) for start, end in pairwise([0, *ends])]


def _alike(numbers: Sequence[int], facts: Sequence[Footer], names: Sequence[str]) -> list[list[int]]:
    """Put files together whose columns have the same types."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number in numbers:
        groups.setdefault(tuple(facts[number].types.get(name) for name in names), []).append(number)
    return list(groups.values())


def _bundle(files: Iterable[str]) -> str:
    """Name files that are cached as one."""
    return blake2b("\n".join(files).encode(), digest_size=16).hexdigest()


def _as_held(values: pl.Series, kind: pa.DataType) -> pl.Series:
    """Return values in order as a column of narrower whole numbers may have them."""
    if not are_whole(kind) or not polars_facts(values.dtype).is_whole:
        return values
    held = _dtype(kind)
    return values if held == values.dtype else values.cast(held, strict=False).drop_nulls()


def _dtype(kind: pa.DataType) -> pl.DataType:
    """Return the type by which polars holds an Arrow type."""
    return pl.Series(pl.from_arrow(pa.array([], kind))).dtype


def _by_file(rows: pl.DataFrame, files: Sequence[int], all_counts: Sequence[int]) -> pl.DataFrame:
    """Return rows that are numbered over files end to end with the numbers of their files, and of the rows in these."""
    counts = [all_counts[number] for number in files]
    ends = np.cumsum(counts)
    row = rows.get_column(IN_ROW).to_numpy().astype(np.int64)
    at = np.searchsorted(ends, row, side="right")
    in_file, place = np.array(files, np.int64)[at], row - (ends - counts)[at]
    return rows.with_columns(pl.Series(IN_FILE, in_file), pl.Series(IN_ROW, place)).select(
        [*(name for name in rows.columns if name != IN_ROW), IN_FILE, IN_ROW]
    )


def _is_pattern(name: str) -> bool:
    """Return whether polars takes a name for a pattern."""
    return name == "*" or name.startswith("^")


def _loose(fields: Sequence[pa.Field]) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in fields])


def _joined(schema: pa.Schema, found: Sequence[pl.DataFrame], read: Sequence[pl.DataFrame]) -> pa.Table:
    """Return the rows found in cached columns, as those hold them, and the rows read from files, as the schema says."""
    tables = [schema.empty_table()]
    if found:
        rows = pl.concat(found, how="vertical_relaxed").to_arrow(compat_level=pl.CompatLevel.oldest())
        held = zip(rows.columns, schema.types, strict=True)
        tables.append(pa.table([decoded(values.combine_chunks(), type_) for values, type_ in held], schema=schema))
    return pa.concat_tables([*tables, *(rows.to_arrow().cast(schema) for rows in read)])


def _in_order(values: pa.Array) -> pl.Series:
    """Return values in order, each once, NULL aside."""
    return pl.Series(pl.from_arrow(pc.drop_null(pc.unique(values)))).sort()
