"""The facts about types hold in Spark: what is compared, grouped and summed alike elsewhere is so there."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from trickle.model.types import TYPES, decimal_digits, facts_of
from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.arrow.types import ARROW_TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 5, 6, 12, 0, 0, 123456)
VALUES: dict[str, list[Any]] = {
    "tinyint": [-128, 127, 0, 0],
    "smallint": [-(2**15), 2**15 - 1, 7, 7],
    "int": [-(2**31), 2**31 - 1, 7, 7],
    "bigint": [-(2**63), 2**63 - 1, 2**53 + 1, 2**53],
    "string": ["", "a", "B", "é", "e\u0301", "\U0001d11e", "\uffff", "a"],
    "date": [date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31), date(1582, 10, 4)],
    "boolean": [True, False, True],
    "timestamp": [NOON.replace(tzinfo=UTC), NOON.replace(year=1900, tzinfo=UTC), NOON.replace(tzinfo=UTC)],
    "timestamp_ntz": [NOON, NOON.replace(year=1), NOON],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("0.01"), Decimal("0.01")],
    "decimal(38,10)": [Decimal(10**28 - 1), Decimal("-0.0000000001"), Decimal("0E-10"), Decimal(0)],
}


def test_spark_compares_groups_and_sums_alike(spark: SparkSession) -> None:
    assert {n for n in TYPES if facts_of(n).is_grouped} <= VALUES.keys()
    longest = max(map(len, VALUES.values())) + 1
    arrays = {}
    for name, some in VALUES.items():
        type_ = ARROW_TYPES[name] if name in ARROW_TYPES else pa.decimal128(*(decimal_digits(name) or ()))
        arrays[name] = pa.array([*some, *[None] * (longest - len(some))], type_)
    table = pa.table(dict(zip((f"c{n}" for n in range(len(arrays))), arrays.values(), strict=True)))
    frame = arrow_frame(spark, table)
    assert [field.dataType.simpleString() for field in frame.schema.fields] == list(VALUES)

    asked = []
    for place, name in enumerate(VALUES):
        facts, column = facts_of(name), f"c{place}"
        asked.append(f"count(DISTINCT {column}) AS groups{place}")
        asked.append(f"sort_array(collect_list({column})) AS ordered{place}" if facts.is_compared else f"1 AS x{place}")
        asked.append(f"sum(CAST({column} AS DECIMAL(38,10))) AS sum{place}" if facts.is_summed else f"1 AS y{place}")
    found = frame.selectExpr(*asked).toArrow()

    for place, name in enumerate(VALUES):
        facts = facts_of(name)
        series = pl.Series(pl.from_arrow(arrays[name])).drop_nulls()
        if facts.is_grouped:
            assert found[f"groups{place}"][0].as_py() == series.n_unique(), name
        if facts.is_compared:
            assert found[f"ordered{place}"][0].as_py() == series.sort().to_list(), name
        if facts.is_summed:
            assert Fraction(found[f"sum{place}"][0].as_py()) == sum(map(Fraction, VALUES[name])), name
