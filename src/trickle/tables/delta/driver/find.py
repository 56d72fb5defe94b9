"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.encoding import MAX_DIGITS, restored, width
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.read import check_calendar, plain_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.cache.encoding import Compact

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

    def __init__(self, columns: ColumnCache | None = None, options: Options = DEFAULT) -> None:
        """Know no file yet; columns that are looked into again and again are kept in ``columns``."""
        self._columns = columns
        self._options = options
        self._facts: dict[Path, _Facts] = {}

    def find(self, paths: Sequence[Path], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> pa.Table:
        """Give the rows whose value of each key column is one of the given, with exactly these columns.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        facts = {path: self._facts.get(path) or _facts(path) for path in paths}
        self._facts = facts if len(self._facts) > self._options.file_facts_kept else {**self._facts, **facts}
        for known in facts.values():
            if (
                any(known.types.get(field.name) != field.type for field in fields)
                or not keys.keys() <= known.sizes.keys()
            ):
                raise NeedsSparkError
        names = [field.name for field in fields]
        if any(name == "*" or name.startswith("^") for name in names):  # patterns to polars
            raise NeedsSparkError
        schema = pa.schema([pa.field(field.name, field.type) for field in fields])
        wanted = {name: _in_order(values) for name, values in keys.items()}
        if any(values.is_empty() for values in wanted.values()):
            return schema.empty_table()
        try:
            kept, read = self._search(facts, names, wanted)
        except (pl.exceptions.PolarsError, FileNotFoundError) as error:
            raise NeedsSparkError from error
        if sum(rows.height for rows in (*kept, read) if rows is not None) > self._options.lookup_rows:
            raise NeedsSparkError
        found = [schema.empty_table()]
        if kept:
            rows = pl.concat(kept, how="vertical_relaxed").to_arrow(compat_level=pl.CompatLevel.oldest())
            held = zip(rows.columns, schema.types, strict=True)
            found.append(pa.table([restored(values.combine_chunks(), type_) for values, type_ in held], schema=schema))
        if read is not None:
            found.append(read.to_arrow().cast(schema))
        return pa.concat_tables(found)

    def _search(
        self, files: Mapping[Path, _Facts], names: Sequence[str], wanted: Mapping[str, pl.Series]
    ) -> tuple[list[pl.DataFrame], pl.DataFrame | None]:
        """Give the rows of files whose columns are kept, as these hold them, and the rows of the others."""
        found, left = [], []
        for path, known in files.items():
            kept = None
            if self._columns is not None and wanted:
                kept = self._columns.get(path, {name: known.sizes[name] for name in (*names, *wanted)})
            if kept is None:
                left.append(path)
            else:
                found.append(self._matching(path, kept, names, wanted))
        if not left:
            return found, None
        scan = pl.scan_parquet(left, glob=False, extra_columns="ignore", hive_partitioning=False)
        for name, values in wanted.items():
            scan = scan.filter(pl.col(name).is_in(values.implode()))
        return found, scan.select(names).head(self._options.lookup_rows + 1).collect()

    def _matching(
        self, path: Path, kept: Mapping[str, Compact], names: Sequence[str], wanted: Mapping[str, pl.Series]
    ) -> pl.DataFrame:
        """Give the rows of kept columns that have the keys: those of one column by its index, if it has one."""
        keys = {name: kept[name].keys(values) for name, values in wanted.items()}
        places = None
        for name in wanted:
            index = self._columns.index(path, name) if self._columns is not None else None
            places = index.places(keys[name], self._options) if index else None
            if places is not None:
                del keys[name]
                break
        rows = pl.DataFrame([kept[name].numbers for name in dict.fromkeys((*names, *keys))])
        if places is not None:
            rows = rows[places]
        if keys:
            rows = rows.filter(*(pl.col(name).is_in(values.implode()) for name, values in keys.items()))
        return pl.DataFrame([kept[name].shown(rows.get_column(name)) for name in names])


def _in_order(values: pa.Array) -> pl.Series:
    """Give values in order, each once, NULL aside."""
    return pl.Series(pl.from_arrow(pc.drop_null(pc.unique(values)))).sort()


def _facts(path: Path) -> _Facts:
    """Look at a file's end."""
    try:
        with pq.ParquetFile(path) as file:
            check_calendar(file)
            types = {field.name: plain_type(field.type) for field in file.schema_arrow}
            return _Facts(types, _sizes(file.metadata))
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error


def _sizes(metadata: pq.FileMetaData) -> dict[str, int]:
    """Give the bytes that a file's columns may take when decoded, by name."""
    sizes: dict[str, int] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            chunk = group.column(place)
            name = chunk.path_in_schema  # of a column that is not nested, its name
            bytes_ = _width(chunk, metadata.schema.column(place), group.num_rows) * group.num_rows
            sizes[name] = sizes.get(name, 0) + bytes_
    return sizes


def _width(chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema, rows: int) -> int:
    """Give the bytes that a value of a column may take when it is kept."""
    facts, stored = chunk.statistics, chunk.total_uncompressed_size // max(rows, 1)
    if facts is not None and facts.has_min_max and column.precision <= MAX_DIGITS:
        found = width(facts.min, facts.max, max(column.scale, 0))
        if found is not None:
            return found
    # Texts that repeat are stored as places in a list, and kept so too.
    return _PLACE if stored < _PLACE else stored + _WIDEST
