"""Values keep their meaning at the borders between Spark, Arrow, polars and Parquet, whatever their layout.

Tables are drawn once by hypothesis and laid side by side: one hand-over and one Spark job see all of them.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as fn

from trickle.algebra.expr import Column
from trickle.catalyst.jvm import Jvm
from trickle.compute.driver.plans import _is_held, arrow_values, as_arrow
from trickle.tables.arrow.local import arrow_table, as_schema, local_rows
from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.cache.encoding import Encoded, decoded
from trickle.tables.delta.driver.write import FileWriter
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXTS = [
    "",
    "a",
    "\x00",
    "é",
    "e\u0301",
    "\u2028",
    "\u2029",
    "\x85",
    "\x1c",
    "𝄞",
    "\ufeff",
    "\uffff",
    "a" * 300,
    "'\"\\`\n",
]
ENDS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]
INSTANTS = [
    *(datetime(d.year, d.month, d.day, 23, 59, 59, 999_999) for d in ENDS),
    datetime(1883, 11, 18, 12, 3, 57),
    datetime(2025, 3, 30, 1, 30),
    datetime(2025, 10, 26, 1, 30, 0, 1),
]
DOUBLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 1e16]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127, 0]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1]),
    "whole": (pa.int32(), [-(2**31), 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    "single": (pa.float32(), [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 3.4028234663852886e38]),
    "double": (pa.float64(), DOUBLES),
    "text": (pa.string(), TEXTS),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff\xfe", bytes(range(256))]),
    "day": (pa.date32(), ENDS),
    "instant": (pa.timestamp("us", tz="UTC"), [i.replace(tzinfo=UTC) for i in INSTANTS]),
    "wall": (pa.timestamp("us"), INSTANTS),
    "money": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-99999999.99"), Decimal("0.01")]),
    "wide": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)]),
    "fine": (pa.decimal128(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1")]),
    "a.b": (pa.int32(), [1, 2]),
    "nothing": (pa.int64(), [None]),
}
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "list": (pa.list_(pa.string()), [[], [None], TEXTS]),
    "struct": (
        pa.struct(
            [("d", pa.float64()), ("s", pa.struct([("t", pa.timestamp("us", tz="UTC")), ("w", pa.timestamp("us"))]))]
        ),
        [{"d": math.nan, "s": {"t": INSTANTS[0].replace(tzinfo=UTC), "w": INSTANTS[1]}}, {"d": None, "s": None}],
    ),
}
LAYOUTS = {
    pa.string(): [pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    pa.binary(): [pa.binary_view(), pa.large_binary()],
}


@st.composite
def columns(draw: Any, types: dict[str, tuple[pa.DataType, list[Any]]], rows: int) -> list[pa.Array]:
    """Draw an array of each type: NULLs, slices of longer ones, any layout."""
    made = []
    for kind, values in types.values():
        some = draw(st.lists(st.sampled_from([None, *values]), min_size=rows + 2, max_size=rows + 2))
        layout = draw(st.sampled_from([kind, *LAYOUTS.get(kind, [])]))
        array = pa.array(some, kind)
        array = array.cast(layout) if layout != kind else array
        made.append(array[draw(st.integers(0, 2)) :][:rows])
    return made


@st.composite
def tables(draw: Any, types: dict[str, tuple[pa.DataType, list[Any]]] = TYPES) -> pa.Table:
    """Draw a table in pieces, some of them empty, each column in pieces of its own."""
    count = draw(st.integers(0, 9))
    arrays = draw(columns(types, count))
    chunked = []
    for array in arrays:
        cuts = sorted(draw(st.lists(st.integers(0, count), max_size=4)))
        edges = [0, *cuts, count]
        chunked.append(pa.chunked_array([array[a:b] for a, b in pairwise(edges)], array.type))
    return pa.Table.from_arrays(chunked, names=list(types))


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as text, in which NaN equals itself and -0.0 is not 0.0."""
    return [tuple(map(repr, row)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


few = settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck), database=None, derandomize=True)


@few
@given(table=tables({**TYPES, **NESTED}))
def test_rows_go_to_spark_and_come_back(spark: SparkSession, table: pa.Table) -> None:
    frame = arrow_frame(spark, table)

    assert values(local_rows(frame, 100)) == values(table)


def test_a_session_in_another_zone_sees_the_same_values(spark: SparkSession) -> None:
    table = pa.table({name: pa.array(TYPES[name][1], TYPES[name][0]) for name in ("instant", "wall")})
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = arrow_frame(spark, table)
        assert frame.schema.simpleString() == "struct<instant:timestamp,wall:timestamp_ntz>"
        assert values(local_rows(frame, 100)) == values(table)
        micros = [row[0] for row in frame.select(fn.unix_micros("instant")).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert micros == [(i - epoch) // timedelta(microseconds=1) for i in TYPES["instant"][1]]


@pytest.mark.parametrize("sizes", [[1, 0, 2], [0, 0, 3], [2, 0], [0], [0, 1, 0, 1, 0]], ids=str)
def test_empty_chunks_lose_no_row(spark: SparkSession, sizes: list[int]) -> None:
    chunks = [pa.array(range(size), pa.int64()) for size in sizes]
    table = pa.table({"a": pa.chunked_array(chunks, pa.int64())})

    assert arrow_frame(spark, table).count() == sum(sizes)


def test_a_big_table_loses_no_row(spark: SparkSession) -> None:
    chunks = [pa.array(["x" * 1000] * size, pa.string()) for size in (30_000, 0, 30_000)]

    frame = arrow_frame(spark, pa.table({"a": pa.chunked_array(chunks)}))

    assert frame.count() == 60_000


@pytest.mark.parametrize("threshold", ["1b", "1g"])
def test_rows_that_spark_did_not_take_are_noticed(
    spark: SparkSession, threshold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, make = pa.table({"a": pa.array(range(30_000), pa.int64())}), spark.createDataFrame
    spark.conf.set("spark.sql.execution.arrow.localRelationThreshold", threshold)
    try:
        frame = arrow_frame(spark, table)
        kind = frame._jdf.queryExecution().analyzed().getClass().getSimpleName()
        assert (kind, frame.count()) == ("LogicalRDD" if threshold == "1b" else "LocalRelation", 30_000)
        monkeypatch.setattr(spark, "createDataFrame", lambda rows, schema: make(rows.slice(0, 20_000), schema))
        with pytest.raises(AssertionError, match="Spark was handed"):
            arrow_frame(spark, table)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.localRelationThreshold")


@few
@given(table=tables())
def test_rows_go_to_polars_and_come_back(table: pa.Table) -> None:
    table = table.select([field.name for field in table.schema if _is_held(field.type)])
    assert {name for name, (kind, _) in TYPES.items() if kind not in LAYOUTS} <= set(table.column_names)
    made = [Column(place, name) for place, name in enumerate(table.column_names)]
    frame = pl.DataFrame([pl.Series(pl.from_arrow(c)).alias(str(i)) for i, c in enumerate(table.columns)])

    back = as_arrow(made, frame)

    assert values(back) == values(table)
    assert back.schema.types == [TYPES[name][0] for name in table.column_names]


@few
@given(table=tables())
def test_a_kept_column_gives_its_values_back(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = TYPES[name][0]
        held = Encoded.of(pl.Series(pl.from_arrow(column)))

        back = decoded(arrow_values(held.shown(held.numbers)), kind)

        assert list(map(repr, back.to_pylist())) == list(map(repr, column.to_pylist())), name


def test_files_of_the_driver_are_read_alike_by_spark_polars_and_arrow(spark: SparkSession, tmp_path: Path) -> None:
    # One file with every special value of every type; the reader must not take statistics for more than they are.
    most = max(len(some) for _, some in TYPES.values())
    padded = {n: [*some, *[None] * (most - len(some))] for n, (_, some) in TYPES.items() if n != "a.b"}
    table = pa.table({n: pa.array(some, TYPES[n][0]) for n, some in padded.items()})
    writer = FileWriter(folder_at(str(tmp_path)))

    action = writer.add(table, {})

    path = tmp_path / action["add"]["path"]
    assert values(pq.read_table(path).select(table.column_names)) == values(table)
    polars = pl.read_parquet(path)
    assert values(as_arrow([Column(i, n) for i, n in enumerate(polars.columns)], polars)) == values(table)
    frame = spark.read.parquet(str(path))
    assert frame.schema["wall"].dataType.simpleString() == "timestamp_ntz"
    assert sorted(values(frame.toArrow())) == sorted(values(table))
    for name, some in (("text", TEXTS[2]), ("wide", TYPES["wide"][1][0]), ("big", 2**63 - 1), ("day", ENDS[1])):
        assert frame.where(fn.col(name) == fn.lit(some)).count() == 1, name
    # To Spark NaN is greater than any number; the bounds in a file must not hide it.
    assert frame.where("double = 'NaN'").count() == 1
    assert frame.where("double > 1.7e308").count() == 3
    assert frame.where("single > 3.5e38").count() == 2
    assert frame.where("double = 0").count() == 2
    stats = json.loads(action["add"]["stats"])
    assert stats["maxValues"]["big"] == 2**63 - 1
    assert set(stats["minValues"]) == {"tiny", "small", "whole", "big"}


def test_texts_reach_spark_as_literals(spark: SparkSession) -> None:
    jvm = Jvm(spark)

    back = [str(jvm.literal(text).value().toString()) for text in TEXTS]

    assert back == TEXTS


def test_python_rows_become_the_same_rows_of_spark(spark: SparkSession) -> None:
    schema = as_schema(
        "t TIMESTAMP_NTZ, d DECIMAL(38,38), s STRUCT<a: INT, b: ARRAY<STRING>>, m BINARY, e STRUCT<x: INT>"
    )
    rows = [
        (INSTANTS[1], Decimal("0." + "9" * 38), (1, ["x", None]), b"\xff", (None,)),
        (None, None, None, None, None),
        (INSTANTS[5], Decimal(0), (None, []), b"", None),
    ]

    frame = arrow_frame(spark, arrow_table(rows, schema), schema)

    assert [tuple(map(_plain, row)) for row in frame.collect()] == rows


def test_rows_without_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="without columns"):
        arrow_table([(), ()], as_schema(""))


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(value) if isinstance(value, tuple) else value
