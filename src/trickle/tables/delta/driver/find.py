"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.encoding import MAX_DIGITS, decoded, width
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.read import check_calendar, plain_type
from trickle.tables.storage.schemes import STORAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.cache.encoding import Encoded
    from trickle.tables.storage.protocol import Storage

_WIDEST: Final = 16
"""Bytes of a value, texts aside."""

_PLACE: Final = 2
"""Bytes of a place in a list of texts."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """Of a file's columns: types, and the bytes they may take when decoded."""

    types: Mapping[str, Any]
    sizes: Mapping[str, int]


class Finder:
    """Finds rows in files of one table; remembers which files it can read, for files never change."""

    def __init__(
        self, columns: ColumnCache | None = None, options: Options = DEFAULT, storage: Storage | None = None
    ) -> None:
        """Start without files; columns that are read again and again are cached in ``columns``."""
        self._columns = columns
        self._options = options
        self._storage = STORAGES[""] if storage is None else storage
        self._facts: Cache[str, _Facts] = Cache("file footers", options.file_facts_kept)

    def find(self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> pa.Table:
        """Return the rows of files whose value of each key column is one of the given, with exactly these columns.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        names = [field.name for field in fields]
        facts = self._checked(files, fields, keys)
        schema = pa.schema([pa.field(field.name, field.type) for field in fields])
        wanted = {name: _in_order(values) for name, values in keys.items()}
        if any(values.is_empty() for values in wanted.values()):
            return schema.empty_table()
        found, left = [], []
        read = None
        try:
            for file, known in facts.items():
                sizes = {name: known.sizes[name] for name in (*names, *wanted)} if wanted else {}
                missing = self._columns.reserve(file, sizes) if self._columns is not None and wanted else None
                if self._columns is None or missing is None:
                    left.append(file)
                    continue
                new: Sequence[pl.Series] = ()
                try:
                    if missing:
                        place = self._storage.readable(file)
                        frame = pl.read_parquet(place, columns=missing, glob=False, hive_partitioning=False)
                        new = frame.rechunk().get_columns()
                finally:
                    held = self._columns.keep(file, sizes, missing, new)
                if held is None:  # another thread needed the room meanwhile
                    left.append(file)
                else:
                    found.append(self._matching(file, held, names, wanted))
            if left:
                places: Any = [self._storage.readable(file) for file in left]
                scan = pl.scan_parquet(places, glob=False, extra_columns="ignore", hive_partitioning=False)
                scan = scan.filter(*(pl.col(name).is_in(values.implode()) for name, values in wanted.items()))
                read = scan.select(names).head(self._options.lookup_rows + 1).collect()
        except (pl.exceptions.PolarsError, FileNotFoundError) as error:
            raise NeedsSparkError from error
        if sum(rows.height for rows in (*found, read) if rows is not None) > self._options.lookup_rows:
            raise NeedsSparkError
        return _joined(schema, found, read)

    def _checked(
        self, files: Sequence[str], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]
    ) -> dict[str, _Facts]:
        """Return what is known of files.

        Raises:
            NeedsSparkError: They have other columns than these, or columns that the driver cannot read.
        """
        if any(field.name == "*" or field.name.startswith("^") for field in fields):  # patterns to polars
            raise NeedsSparkError
        facts = {file: self._facts.get(file, partial(_facts, self._storage.readable(file))) for file in files}
        for known in facts.values():
            if any(known.types.get(field.name) != field.type for field in fields):
                raise NeedsSparkError
            if not keys.keys() <= known.sizes.keys():
                raise NeedsSparkError
        return facts

    def _matching(
        self, file: str, held: Mapping[str, Encoded], names: Sequence[str], wanted: Mapping[str, pl.Series]
    ) -> pl.DataFrame:
        """Return the rows of cached columns that have the keys: those of one column by its index, if it has one."""
        keys = {name: held[name].keys(values) for name, values in wanted.items()}
        places = None
        for name in wanted:
            index = self._columns.index(file, name) if self._columns is not None else None
            places = index.places(keys[name], self._options) if index else None
            if places is not None:
                del keys[name]
                break
        rows = pl.DataFrame([held[name].numbers for name in dict.fromkeys((*names, *keys))])
        if places is not None:
            rows = rows[places]
        if keys:
            rows = rows.filter(*(pl.col(name).is_in(values.implode()) for name, values in keys.items()))
        return pl.DataFrame([held[name].shown(rows.get_column(name)) for name in names])


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


def _facts(file: str | BinaryIO) -> _Facts:
    """Read the footer of a file."""
    try:
        with pq.ParquetFile(file) as parquet:
            check_calendar(parquet)
            types = {field.name: plain_type(field.type) for field in parquet.schema_arrow}
            return _Facts(types, _sizes(parquet.metadata))
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
