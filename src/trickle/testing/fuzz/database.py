"""A database of a case, as the engine sees it and as plain Spark does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyarrow.dataset import ParquetReadOptions

from trickle.layout import WAREHOUSE_CONF
from trickle.tables.arrow.local import local_frame
from trickle.testing.fuzz.changes import Round, Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.testing.fuzz.tables import Row, Table


class Plain:
    """Tables held by plain Spark: temporary views of rows, read once for all queries."""

    def __init__(self, spark: SparkSession) -> None:
        """Use a session that has nothing of the engine."""
        self.spark = spark

    def show(self, table: Table, rows: Iterable[Row]) -> None:
        """Let a table have these rows."""
        local_frame(self.spark, list(rows), table.schema).createOrReplaceTempView(table.name)

    def rows(self, sql: str) -> list[Row]:
        """Run a query."""
        return as_rows(self.spark.sql(sql).toArrow())


class Database:
    """Tables, as the engine sees them and as plain Spark does."""

    def __init__(self, spark: SparkSession, plain: Plain, schema: str, tables: tuple[Table, ...]) -> None:
        """Name the tables; nothing is made yet."""
        self.spark = spark
        self.schema = schema
        self.folder = Path(str(spark.conf.get(WAREHOUSE_CONF))) / f"{schema}.db"
        self.writer = Writer(spark, schema, self.folder, tables)
        self._plain = plain
        self._tables = tables

    def change(self, round_: Round) -> None:
        """Make changes, each by a commit of its own."""
        for change in round_:
            self.writer.write(change)
        if round_:
            self.show({change.table for change in round_})

    def show(self, names: Collection[str] | None = None) -> None:
        """Show plain Spark the newest rows of each table, read once for all queries."""
        for table in self._tables:
            if names is None or table.name in names:
                self._plain.show(table, self._read(table.name, by_spark=table.by_spark))

    def plain_rows(self, sql: str) -> list[Row]:
        """Run a query on plain Spark."""
        return self._plain.rows(sql)

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a stream table."""
        return self._read(name, by_spark=bool(DeltaTable(self.folder / name).protocol().reader_features))

    def _read(self, name: str, *, by_spark: bool) -> list[Row]:
        """Read a table; delta-rs does it in a tenth of the time, where it can."""
        path = self.folder / name
        if by_spark:
            return as_rows(self._plain.spark.read.format("delta").load(str(path)).toArrow())
        # Timestamps of 96 bits reach further than nanoseconds of 64.
        options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
        return as_rows(DeltaTable(path).to_pyarrow_dataset(parquet_read_options=options).to_table())


def as_rows(table: Any) -> list[Row]:
    """Return an Arrow table as rows."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))
