"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.encoding import MAX_DIGITS, decoded, width
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.read import check_calendar, plain_type, read_file
from trickle.tables.storage.schemes import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.arrow.rows import Numbers
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.cache.encoding import Encoded
    from trickle.tables.storage.protocol import Storage

_WIDEST: Final = 16
"""Bytes of a value, texts aside."""

_PLACE: Final = 2
"""Bytes of a place in a list of texts."""


_FILE, _ROW = "__trickle_file", "__trickle_row"
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


@dataclass(frozen=True, slots=True)
class _Facts:
    """Of a file: the types of its columns, the bytes they may take when decoded, and its rows."""

    types: Mapping[str, Any]
    sizes: Mapping[str, int]
    rows: int


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
        self, columns: ColumnCache | None = None, options: Options = DEFAULT, storage: Storage | None = None
    ) -> None:
        """Start without files; columns that are read again and again are cached in ``columns``."""
        self._columns = columns
        self._options = options
        self._storage = LOCAL if storage is None else storage
        self._facts: Cache[str, _Facts] = Cache("file footers", options.file_facts_kept)

    def find(
        self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array], *, addressed: bool = False
    ) -> pa.Table:
        """Return the rows of files whose value of each key column is one of the given, with exactly these columns.

        NULL is not found by a key, unless rows are ``addressed``: then two more columns tell the number of the file and of
        the row in it, and NULL is a value like any other.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        names = [field.name for field in fields]
        facts = self._checked(files, fields, keys)
        more = [pa.field(name, pa.int64()) for name in (_FILE, _ROW)] if addressed else []
        schema = pa.schema([*(pa.field(field.name, field.type) for field in fields), *more])
        wanted = {name: _Wanted(_in_order(v), null=addressed and v.null_count > 0) for name, v in keys.items()}
        if any(one.is_empty for one in wanted.values()):
            return schema.empty_table()
        found, left = [], []
        read = None
        try:
            for number, (file, known) in enumerate(facts.items()):
                sizes = {name: known.sizes[name] for name in (*names, *wanted)} if wanted else {}
                missing = self._columns.reserve(file, sizes) if self._columns is not None and wanted else None
                if self._columns is None or missing is None:
                    left.append(number)
                    continue
                new: Sequence[pl.Series] = ()
                try:
                    if missing:
                        place = self._storage.scannable([file])
                        frame = pl.read_parquet(
                            place.files, columns=missing, glob=False, hive_partitioning=False, **place.options
                        )
                        new = frame.rechunk().get_columns()
                finally:
                    held = self._columns.keep(file, sizes, missing, new)
                if held is None:  # another thread needed the room meanwhile
                    left.append(number)
                else:
                    found.append(self._matching(file, held, names, wanted, number if addressed else None))
            if left:
                places = self._storage.scannable([files[number] for number in left])
                scan = pl.scan_parquet(
                    places.files,
                    glob=False,
                    extra_columns="ignore",
                    hive_partitioning=False,
                    row_index_name=_ROW if addressed else None,
                    **places.options,
                )
                scan = scan.filter(*(one.test(name) for name, one in wanted.items()))
                scan = scan.select([*names, _ROW] if addressed else names)
                read = scan.head(self._options.lookup_rows + 1).collect()
        except (pl.exceptions.PolarsError, FileNotFoundError) as error:
            raise NeedsSparkError from error
        if sum(rows.height for rows in (*found, read) if rows is not None) > self._options.lookup_rows:
            raise NeedsSparkError
        if read is not None and addressed:
            read = _by_file(read, left, [facts[files[number]].rows for number in left])
        return _joined(schema, found, read)

    def locate(self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> Located:
        """Return the rows with their addresses; NULL is found if it is one of the values of a key.

        Columns that files hold in another form than the table, such as old timestamps, are read as ``read_file`` does.

        Raises:
            NeedsSparkError: As ``find`` does.
        """
        facts = [self._facts.get(file, partial(_facts, self._storage, file)) for file in files]
        plain = [field for field in fields if all(known.types.get(field.name) == field.type for known in facts)]
        if {_FILE, _ROW} & {field.name for field in fields} or not keys.keys() <= {field.name for field in plain}:
            raise NeedsSparkError
        rows = self.find(files, plain, keys, addressed=True)
        in_file, places = rows.column(_FILE).to_numpy(), rows.column(_ROW).to_numpy()
        others = [field for field in fields if field not in plain]
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

    def _checked(
        self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]
    ) -> dict[str, _Facts]:
        """Return what is known of files.

        Raises:
            NeedsSparkError: They have other columns than these, or columns that the driver cannot read.
        """
        if any(_is_pattern(field.name) for field in fields):
            raise NeedsSparkError
        facts = {file: self._facts.get(file, partial(_facts, self._storage, file)) for file in files}
        for known in facts.values():
            if any(known.types.get(field.name) != field.type for field in fields):
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
        number: int | None,
    ) -> pl.DataFrame:
        """Return the rows of cached columns that have the keys: those of one column by its index, if it has one.

        With the number of the file, also the rows' addresses.
        """
        keys = {name: held[name].keys(one.values) for name, one in wanted.items()}
        places = None
        for name in wanted:
            index = self._columns.index(file, name) if self._columns is not None else None  # only of one without NULL
            places = index.places(keys[name], self._options) if index else None
            if places is not None:
                del keys[name]
                break
        rows = pl.DataFrame([held[name].numbers for name in dict.fromkeys((*names, *keys))])
        if places is not None:
            rows = rows[places]
        if number is not None:
            rows = rows.with_row_index(_ROW) if places is None else rows.with_columns(pl.Series(_ROW, places))
        if keys:
            rows = rows.filter(*(wanted[name].test(name, values) for name, values in keys.items()))
        shown = [held[name].shown(rows.get_column(name)) for name in names]
        if number is not None:
            shown += [pl.repeat(number, rows.height, dtype=pl.Int64, eager=True).alias(_FILE)]
            shown += [rows.get_column(_ROW).cast(pl.Int64)]
        return pl.DataFrame(shown)


def _by_file(rows: pl.DataFrame, files: Sequence[int], counts: Sequence[int]) -> pl.DataFrame:
    """Return rows that are numbered over files end to end with the numbers of their files, and of the rows in these."""
    ends = np.cumsum(counts)
    row = rows.get_column(_ROW).to_numpy().astype(np.int64)
    at = np.searchsorted(ends, row, side="right")
    in_file, place = np.array(files, np.int64)[at], row - (ends - counts)[at]
    return rows.with_columns(pl.Series(_FILE, in_file), pl.Series(_ROW, place)).select(
        [*(name for name in rows.columns if name != _ROW), _FILE, _ROW]
    )


def _is_pattern(name: str) -> bool:
    """Return whether polars takes a name for a pattern."""
    return name == "*" or name.startswith("^")


def _loose(fields: Sequence[pa.Field]) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in fields])


def _joined(schema: pa.Schema, found: Sequence[pl.DataFrame], read: pl.DataFrame | None) -> pa.Table:
    """Return the rows found in cached columns, as those hold them, and the rows read from files, as the schema says."""
    tables = [schema.empty_table()]
    if found:
        rows = pl.concat(found, how="vertical_relaxed").to_arrow(compat_level=pl.CompatLevel.oldest())
        held = zip(rows.columns, schema.types, strict=True)
        tables.append(pa.table([decoded(values.combine_chunks(), type_) for values, type_ in held], schema=schema))
    if read is not None:
        tables.append(read.to_arrow().cast(schema))
    return pa.concat_tables(tables)


def _in_order(values: pa.Array) -> pl.Series:
    """Return values in order, each once, NULL aside."""
    return pl.Series(pl.from_arrow(pc.drop_null(pc.unique(values)))).sort()


def _facts(storage: Storage, file: str) -> _Facts:
    """Read the footer of a file."""
    try:
        with pq.ParquetFile(storage.readable(file)) as parquet:
            check_calendar(parquet)
            types = {field.name: plain_type(field.type) for field in parquet.schema_arrow}
            return _Facts(types, _sizes(parquet.metadata), parquet.metadata.num_rows)
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error


def _sizes(metadata: pq.FileMetaData) -> dict[str, int]:
    """Return the bytes that a file's columns may take when decoded, by name."""
    sizes: dict[str, int] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            chunk = group.column(place)
            name = chunk.path_in_schema  # of a column that is not nested, its name
            bytes_ = _width(chunk, metadata.schema.column(place), group.num_rows) * group.num_rows
            sizes[name] = sizes.get(name, 0) + bytes_
    return sizes


def _width(chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema, rows: int) -> int:
    """Return the bytes that a value of a column may take when it is cached."""
    facts, stored = chunk.statistics, chunk.total_uncompressed_size // max(rows, 1)
    if facts is not None and facts.has_min_max and column.precision <= MAX_DIGITS:
        found = width(facts.min, facts.max, max(column.scale, 0))
        if found is not None:
            return found
    # Texts that repeat are stored as places in a list, and cached so too.
    return _PLACE if stored < _PLACE else stored + _WIDEST
