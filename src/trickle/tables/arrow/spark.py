"""Rows from Arrow to Spark: the only place that passes them.

Law    the DataFrame has the table's rows, each as often as the table has it, whatever the table's layout
Why    Spark 4.1 drops all rows after an empty chunk that is not the first, does not know dictionaries and views, and takes a
       timestamp without a zone for an instant; so the layout is made plain first, and the rows are counted on the other side
"""

from __future__ import annotations

from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.classic import dataframe as classic
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from trickle.tables.arrow.types import plain_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ONE_BATCH: Final = 10_000
"""Rows that pass as one batch."""


def arrow_frame(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return an Arrow table as a DataFrame, a ``LocalRelation`` unless it is big.

    Args:
        spark: The session.
        table: The rows, in chunks and layouts of any kind.
        schema: Their types in Spark; None for those that their Arrow types stand for.
    """
    table = in_plain_layout(table)
    # A timestamp without a zone is one in Spark too, whatever the session takes the word TIMESTAMP for.
    wanted = from_arrow_schema(table.schema, prefer_timestamp_ntz=True) if schema is None else schema
    as_stored = to_arrow_schema(wanted).types == table.schema.types
    is_small = 0 < table.num_rows <= _ONE_BATCH and not spark.sparkContext._encryption_enabled
    frame = _pass(spark, table, wanted) if as_stored and is_small else spark.createDataFrame(table, schema=wanted)
    _check(frame, table)
    return frame


def _check(frame: DataFrame, table: pa.Table) -> None:
    """Refuse to go on with fewer rows, or more, than were handed over."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    if str(plan.getClass().getSimpleName()) == "LocalRelation":
        handed, found, what = table.num_rows, int(plan.data().size()), "rows"
    else:
        # A big table is an RDD with a partition for each batch, so that none can end another. To count rows would take a job.
        most: Any = frame.sparkSession._jsparkSession.sessionState().conf().arrowMaxRecordsPerBatch()
        handed, found, what = len(table.to_batches(int(most))), int(plan.rdd().getNumPartitions()), "batches"
    if handed != found:
        message = f"Spark was handed {handed} {what} and has {found}"
        raise AssertionError(message)


def _pass(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Pass few rows as one batch, in a third of the time that ``createDataFrame`` takes to look at them."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    python = jvm.PythonSQLUtils
    with NamedTemporaryFile(prefix="trickle-") as file:
        with pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
        file.flush()
        batches = python.readArrowStreamFromFile(file.name)
    return classic.DataFrame(python.toDataFrame(batches, schema.json(), session), spark)


def in_plain_layout(table: pa.Table) -> pa.Table:
    """Return each column in one piece and in the layout that files have: no dictionaries, no views."""
    if not table.num_rows:
        table = table.schema.empty_table()  # Spark takes no array in no piece
    plain = pa.schema([field.with_type(plain_type(field.type)) for field in table.schema])
    if plain.types != table.schema.types:
        table = table.cast(plain)
    return table.combine_chunks() if any(column.num_chunks > 1 for column in table.columns) else table
