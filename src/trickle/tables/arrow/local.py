"""Rows in the driver: as Python values, Arrow tables, and local relations of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.arrow.types import as_value_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.contract import Given

_NAN: Final = ("NaN",)


def row_key(value: Any) -> Any:
    """Return a hashable stand-in: NaN equals itself, -0.0 equals 0.0, lists and structs compare by their parts.

    >>> row_key([1, float("nan"), None]) == row_key((1, float("nan"), None))
    True
    """
    if isinstance(value, float):
        return _NAN if isnan(value) else value + 0.0
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Mapping):
        return frozenset((row_key(key), row_key(item)) for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(row_key(item) for item in value)
    return value


def as_schema(schema: StructType | str) -> StructType:
    """Return a schema that may be written as DDL: ``id BIGINT, name STRING``."""
    parsed = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(parsed, StructType)
    return parsed


def local_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType | str) -> DataFrame:
    """Make a DataFrame that is a ``LocalRelation``: Spark knows its size, folds it, and needs no job to read it.

    Rows are tuples in the order of the schema; structs inside may be tuples, dicts or Rows.
    """
    fields = as_schema(schema)
    return arrow_frame(spark, arrow_table(rows, fields), fields)


def arrow_table(rows: Sequence[Sequence[Any]], fields: StructType) -> pa.Table:
    """Make an Arrow table of rows."""
    if rows and not fields.fields:
        message = "rows without columns cannot be counted"
        raise ValueError(message)
    arrow = to_arrow_schema(fields)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields.fields)
    arrays = [
        pa.array([_plain(value, field.type) for value in column], type=field.type)
        for column, field in zip(columns, arrow, strict=True)
    ]
    # Positions, not names: two columns may share a name.
    return pa.Table.from_arrays(arrays, schema=arrow)


def _plain(value: Any, kind: Any) -> Any:
    """Turn structs into dicts, as Arrow expects them."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        parts = value.values() if isinstance(value, Mapping) else value
        return {field.name: _plain(part, field.type) for field, part in zip(kind, parts, strict=True)}
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in pairs]
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def frame_of(spark: SparkSession, rows: Given) -> DataFrame:
    """Return rows as a DataFrame."""
    return arrow_frame(spark, rows) if isinstance(rows, pa.Table) else rows


def is_local(frame: DataFrame) -> bool:
    """Return whether a DataFrame is rows that the driver already holds."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return str(plan.getClass().getSimpleName()) == "LocalRelation"


def local_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """Return the rows of a DataFrame that the driver already holds, without a job; None if not, or if they are many.

    ``toArrow`` would run a job for them.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    if str(plan.getClass().getSimpleName()) != "LocalRelation" or plan.data().size() > most:
        return None
    return relation_rows(frame.sparkSession, plan)


def relation_rows(spark: SparkSession, plan: Any) -> pa.Table:
    """Return the rows of a ``LocalRelation``."""
    converter, new_file, new_stream, python = _arrow_classes(spark)
    schema = plan.schema()
    batches = converter.toBatchWithSchemaIterator(plan.data().iterator(), schema, 2**40, 2**40, "UTC", False, False)
    if not batches.hasNext():
        return as_value_types(
            pa.ipc.open_stream(converter.createEmptyArrowBatch(schema, "UTC", False, False)).read_all()
        )
    # By a file: more than 8 kB on py4j's socket wait 40 ms for the receiver's delayed acknowledgement.
    with NamedTemporaryFile(prefix="trickle-") as file:
        stream = new_stream(new_file(file.name))
        python.writeIteratorToStream(batches, stream)
        stream.close()
        data = file.read()
    # One batch, after the length that PythonRDD writes before each.
    return as_value_types(pa.ipc.open_stream(pa.py_buffer(data)[4:]).read_all())


_ARROW_CLASSES: Final[WeakKeyDictionary[SparkSession, tuple[Any, Any, Any, Any]]] = WeakKeyDictionary()
"""Finding a class by name takes a millisecond."""


def _arrow_classes(spark: SparkSession) -> tuple[Any, Any, Any, Any]:
    known = _ARROW_CLASSES.get(spark)
    if known is None:
        jvm: Any = spark._jvm
        converter = getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
        streams, python = jvm.java.io, jvm.org.apache.spark.api.python.PythonRDD
        known = converter, streams.FileOutputStream, streams.DataOutputStream, python
        _ARROW_CLASSES[spark] = known
    return known
