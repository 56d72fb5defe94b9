"""A plain Delta table that rows are appended to without Spark, by delta-rs.

On S3 Spark writes the rows and the driver commits them, under a condition; elsewhere Spark does both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable as DeltaRsTable
from deltalake import write_deltalake
from pyspark.sql.pandas.types import from_arrow_schema

from trickle.errors import ConflictError, DefinitionError
from trickle.model.names import sql_name
from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.delta.commit import conflict
from trickle.tables.delta.driver.housekeeping import needs_conditions
from trickle.tables.delta.leaf import location_of
from trickle.tables.delta.target import DeltaTarget
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import SparkSession

_TRIES: Final = 20


class DeltaAppends:
    """A table that only grows at one end and is cut at the other."""

    def __init__(self, spark: SparkSession, name: str, schema: pa.Schema) -> None:
        """Open the table, or make it.

        Raises:
            DefinitionError: ``BAD_HISTORY``, there is another table or view of that name.
        """
        self._spark, self._name, self._schema = spark, name, schema
        fields = from_arrow_schema(schema).fields
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        if not spark.catalog.tableExists(sql_name(name)):
            spark.sql(f"CREATE TABLE IF NOT EXISTS {sql_name(name)} ({columns}) USING delta")
        if spark.table(sql_name(name)).columns != schema.names:
            text = f"'{name}' is not a history table: its columns are not {', '.join(schema.names)}."
            raise DefinitionError("BAD_HISTORY", text, hint="Choose another name, or drop what is there.")
        self._place = location_of(spark, sql_name(name))
        folder = folder_at(self._place)
        self._path = None if folder is None else folder.storage.path(folder.address)

    def append(self, rows: pa.Table) -> None:
        """Add rows, in one commit."""
        if self._path is not None:
            write_deltalake(str(self._path), rows, mode="append")
        elif needs_conditions(self._place):
            self._append_there(rows)
        else:
            arrow_frame(self._spark, rows).write.format("delta").mode("append").save(self._place)

    def _append_there(self, rows: pa.Table) -> None:
        """Add rows where Delta's own commit has no condition; whoever else appends at that moment comes first or second."""
        target = DeltaTarget(self._spark, self._name, self._place)
        for _ in range(_TRIES):
            try:
                target.append(arrow_frame(self._spark, rows), "", target.state())
            except ConflictError:
                continue
            return
        raise conflict(self._name)

    def trim(self, column: str, before: datetime) -> None:
        """Delete the rows from before a moment, and make one file of many."""
        condition = f"{column} < TIMESTAMP '{before.isoformat(sep=' ', timespec='microseconds')}'"
        if self._path is None:
            self._spark.sql(f"DELETE FROM {sql_name(self._name)} WHERE {condition}")
            self._spark.sql(f"OPTIMIZE {sql_name(self._name)}")
            return
        table = DeltaRsTable(str(self._path))
        table.delete(f"{column} < arrow_cast('{before.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
        table.optimize.compact()
        table.vacuum(dry_run=False)
