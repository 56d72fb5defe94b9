"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from trickle.tables.driver_fit import NeedsSparkError
from trickle.tables.driver_read import check_calendar, plain_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trickle.tables.kept_columns import KeptColumns

MOST_FOUND: Final = 1_000_000

_MOST_FACTS: Final = 2000
"""Files of which more is known than asked for."""

_WIDEST: Final = 16
"""Bytes of a value, texts aside."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """Of a file's columns: types, and the bytes they may take when decoded."""

    types: Mapping[str, Any]
    sizes: Mapping[str, int]


class Finder:
    """Finds rows in files of one table; remembers which files it can read, for files never change."""

    def __init__(self, columns: KeptColumns | None = None) -> None:
        """Know no file yet; columns that are looked into again and again are kept in ``columns``."""
        self._columns = columns
        self._facts: dict[Path, _Facts] = {}

    def find(self, paths: Sequence[Path], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> pa.Table:
        """Give the rows whose value of each key column is one of the given, with exactly these columns.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        facts = {path: self._facts.get(path) or _facts(path) for path in paths}
        self._facts = facts if len(self._facts) > _MOST_FACTS else {**self._facts, **facts}
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
        wanted = {name: pl.Series(pl.from_arrow(values)).drop_nulls().unique().sort() for name, values in keys.items()}
        try:
            found = self._search(facts, names, wanted)
        except (pl.exceptions.PolarsError, FileNotFoundError) as error:
            raise NeedsSparkError from error
        if sum(rows.height for rows in found) > MOST_FOUND:
            raise NeedsSparkError
        if len({tuple(rows.dtypes) for rows in found}) == 1:
            found = [pl.concat(found)]
        return pa.concat_tables([schema.empty_table(), *(rows.to_arrow().cast(schema) for rows in found)])

    def _search(
        self, files: Mapping[Path, _Facts], names: Sequence[str], wanted: Mapping[str, pl.Series]
    ) -> list[pl.DataFrame]:
        found, left = [], []
        columns = dict.fromkeys((*names, *wanted))
        for path, known in files.items():
            kept = None
            if self._columns is not None and wanted:
                kept = self._columns.get(path, {name: known.sizes[name] for name in columns})
            if kept is None:
                left.append(path)
            else:
                found.append(self._matching(path, kept, wanted).select(names))
        if left:
            scan = pl.scan_parquet(left, glob=False, extra_columns="ignore", hive_partitioning=False)
            for name, values in wanted.items():
                scan = scan.filter(pl.col(name).is_in(values.implode()))
            found.append(scan.select(names).head(MOST_FOUND + 1).collect())
        return found

    def _matching(self, path: Path, kept: pl.DataFrame, wanted: Mapping[str, pl.Series]) -> pl.DataFrame:
        """Give the rows of kept columns that have the keys: those of one column by its index, if it has one."""
        for name, values in wanted.items():
            index = self._columns.index(path, name) if self._columns is not None else None
            places = index.places(values.cast(kept[name].dtype, strict=False).drop_nulls()) if index else None
            if places is not None:
                kept = kept[places]
                wanted = {other: keys for other, keys in wanted.items() if other != name}
                break
        return kept.filter(*(pl.col(name).is_in(keys.implode()) for name, keys in wanted.items())) if wanted else kept


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
            sizes[name] = sizes.get(name, 0) + chunk.total_uncompressed_size + _WIDEST * group.num_rows
    return sizes
