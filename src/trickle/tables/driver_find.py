"""Rows of Parquet files by their keys, found in the driver: the key columns are decoded, of the others only the rows found.

Spark decodes and ships every column of every row group before it looks at a key, and needs a job to do it. Here a look-up
in six million rows costs about what reading their keys costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from trickle.tables.driver_fit import NeedsSparkError
from trickle.tables.driver_read import check_calendar, plain_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MOST_FOUND: Final = 1_000_000


class Finder:
    """Finds rows in files of one table; remembers which files it can read, for files never change."""

    def __init__(self) -> None:
        """Know no file yet."""
        self._types: dict[Path, Mapping[str, Any]] = {}

    def find(self, paths: Sequence[Path], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> pa.Table:
        """Give the rows whose value of each key column is one of the given, with exactly these columns.

        Raises:
            NeedsSparkError: Only Spark can read a file, a file is gone, or too many rows have the keys.
        """
        known = {path: self._types.get(path) or _types(path) for path in paths}
        self._types = known
        for path in paths:
            if any(known[path].get(field.name) != field.type for field in fields):
                raise NeedsSparkError
        names = [field.name for field in fields]
        if any(name == "*" or name.startswith("^") for name in names):  # patterns to polars
            raise NeedsSparkError
        schema = pa.schema([pa.field(field.name, field.type) for field in fields])
        if not paths:
            return schema.empty_table()
        is_wanted = [pl.col(name).is_in(pl.Series(pl.from_arrow(values)).implode()) for name, values in keys.items()]
        try:
            texts = [str(path) for path in paths]
            scan = pl.scan_parquet(texts, glob=False, extra_columns="ignore", hive_partitioning=False)
            found = (
                (scan.filter(pl.all_horizontal(is_wanted)) if is_wanted else scan)
                .select(names)
                .head(MOST_FOUND + 1)
                .collect()
            )
        except (pl.exceptions.PolarsError, FileNotFoundError) as error:
            raise NeedsSparkError from error
        if found.height > MOST_FOUND:
            raise NeedsSparkError
        return found.to_arrow().cast(schema)


def _types(path: Path) -> Mapping[str, Any]:
    """Give the types of a file's columns."""
    try:
        with pq.ParquetFile(path) as file:
            check_calendar(file)
            return {field.name: plain_type(field.type) for field in file.schema_arrow}
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error
