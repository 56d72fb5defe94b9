"""Computed rows in any of their forms: a DataFrame, an Arrow table, or a polars frame of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trickle.tables.arrow.local import local_rows
from trickle.tables.arrow.spark import arrow_frame

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.contract import Given


class Rows:
    """A computed result in one or more forms, and how many rows it has.

    Its rows are a DataFrame, or in the driver an Arrow table, or what was computed there, under the columns' ids as names.
    """

    def __init__(
        self,
        frame: DataFrame | Callable[[], DataFrame],
        count: int = -1,
        arrow: pa.Table | Callable[[], pa.Table] | None = None,
        made: pl.DataFrame | None = None,
    ) -> None:
        """Keep the rows; other forms are made on demand. A count of -1 means not counted."""
        self._frame = frame
        self.count = count
        self._arrow = arrow
        self.made = made

    @classmethod
    def from_arrow(cls, spark: SparkSession, table: pa.Table) -> Rows:
        """Take rows that the driver has read; to Spark they are a local relation."""
        return cls(lambda: arrow_frame(spark, table), table.num_rows, table)

    @classmethod
    def from_driver(cls, spark: SparkSession, made: pl.DataFrame, to_arrow: Callable[[], pa.Table]) -> Rows:
        """Take rows that the driver has computed."""
        return cls(lambda: arrow_frame(spark, to_arrow()), made.height, to_arrow, made)

    @property
    def arrow(self) -> pa.Table | None:
        """The rows as an Arrow table, None if they were not read or computed in the driver."""
        if callable(self._arrow):
            self._arrow = self._arrow()
        return self._arrow

    def read_arrow(self, max_rows: int) -> pa.Table | None:
        """Return the rows as an Arrow table, read from Spark if the driver holds them there; None if not, or if many."""
        if self.arrow is None:
            self._arrow = local_rows(self.frame, max_rows)
        return self.arrow

    @property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame."""
        if callable(self._frame):
            self._frame = self._frame()
        return self._frame

    def named(self, names: Sequence[str]) -> Given:
        """Return the rows with other names for their first columns; what the driver holds stays there."""
        if self.arrow is not None:
            return self.arrow.rename_columns([*names, *self.arrow.column_names[len(names) :]])
        return self.frame.toDF(*names, *self.frame.columns[len(names) :])
