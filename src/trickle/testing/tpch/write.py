"""Committing changes of rows to source tables, by delta-rs or by Spark.

Both leave the same rows and the same change feed. delta-rs needs a tenth of the time on small tables; Spark also
writes deletion vectors, and spills what does not fit in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.tables.arrow.spark import arrow_frame
from trickle.testing.tpch.data import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Change:
    """Rows for one commit to one table.

    Attributes:
        table: The table.
        query: Returns the rows. ``_op`` says ``insert``, ``update`` or ``delete``. Inserts need all columns, updates the
            key and the columns that change, deletes the key.
        on: Columns that find the row, if not the primary key.
    """

    table: str
    query: str
    on: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that find the row."""
        return self.on or TABLES[self.table]

    def condition(self, rows: pa.Table) -> str:
        """Return the condition that finds the rows of change in the table, with literal bounds that skip files."""
        import pyarrow.compute as pc

        first = self.keys[0]
        bounds = pc.min_max(rows[first]).as_py()
        return " AND ".join(
            (
                *(f"target.{key} = source.{key}" for key in self.keys),
                f"target.{first} >= {bounds['min']}",
                f"target.{first} <= {bounds['max']}",
            )
        )


def write_with_delta_rs(path: str, change: Change, rows: pa.Table) -> None:
    """Commit rows of change to the table at a path."""
    from deltalake import DeltaTable, write_deltalake

    kinds = set(rows["_op"].unique().to_pylist())
    columns = [column for column in rows.column_names if column != "_op"]
    if kinds == {"insert"}:
        write_deltalake(path, rows.select(columns), mode="append")
        return
    merge = DeltaTable(path).merge(
        rows,
        change.condition(rows),
        source_alias="source",
        target_alias="target",
    )
    values = {column: f"source.{column}" for column in columns}
    if "delete" in kinds:
        merge = merge.when_matched_delete("source._op = 'delete'")
    if "update" in kinds:
        changed = {column: value for column, value in values.items() if column not in change.keys}
        merge = merge.when_matched_update(changed, "source._op = 'update'")
    if "insert" in kinds:
        merge = merge.when_not_matched_insert(values, "source._op = 'insert'")
    merge.execute()


def write_with_spark(spark: SparkSession, path: str, change: Change, rows: pa.Table) -> None:
    """Commit rows of change to the table at a path."""
    kinds = set(rows["_op"].unique().to_pylist())
    columns = [column for column in rows.column_names if column != "_op"]
    source = arrow_frame(spark, rows)
    if kinds == {"insert"}:
        source.select(columns).write.format("delta").mode("append").save(path)
        return
    changed = ", ".join(f"{column} = source.{column}" for column in columns if column not in change.keys)
    values = ", ".join(f"source.{column}" for column in columns)
    clauses = {
        "delete": "WHEN MATCHED AND source._op = 'delete' THEN DELETE",
        "update": f"WHEN MATCHED AND source._op = 'update' THEN UPDATE SET {changed}",
        "insert": f"WHEN NOT MATCHED AND source._op = 'insert' THEN INSERT ({', '.join(columns)}) VALUES ({values})",
    }
    asked = " ".join(clause for kind, clause in clauses.items() if kind in kinds)
    spark.sql(
        f"MERGE INTO delta.`{path}` AS target USING {{rows}} AS source ON {change.condition(rows)} {asked}", rows=source
    )
