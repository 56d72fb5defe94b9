"""Expressions evaluated in the driver give the very values that Spark gives."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from trickle.algebra.expr import Call, Col, Column, Opaque
from trickle.catalyst.driver_forms import driver_form
from trickle.catalyst.jvm import Jvm, items
from trickle.catalyst.opaque import opaque
from trickle.compute.driver.expressions import Expressions, NotHereError
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.model.options import Options

ROWS = """
    SELECT * FROM VALUES
        (1, 5L, 'green ant', DATE'1994-01-01', 10.00, 0.05, true),
        (2, -7L, 'Grün_100%', DATE'1969-12-31', -0.01, 0.10, false),
        (2, NULL, '', DATE'2024-02-29', 99999999.99, -0.99, NULL),
        (NULL, 9L, NULL, NULL, NULL, 0.00, true),
        (-3, 5L, 'a\\nb.green', DATE'0001-01-01', 0.00, NULL, false)
    AS t (i, n, s, d, x, y, b)
"""
# Columns cross as they stand in a source, so the widths are those of the columns.
TYPED = "SELECT i, n, s, d, CAST(x AS DECIMAL(15, 2)) AS x, CAST(y AS DECIMAL(15, 2)) AS y, b FROM rows"

SIMPLE = (
    "i = 2",
    "i <=> 2",
    "n > 5 AND i < 3",
    "NOT (i = 2 OR n >= 9)",
    "i IS NULL",
    "b",
    "CAST(NULL AS BOOLEAN)",
    "true",
    "CAST(NULL AS DECIMAL(15, 2))",
    "CAST(NULL AS STRING)",
    "'x'",
    "7",
    "IF(b, x, NULL)",
    "CASE WHEN b THEN x * NULL ELSE y END",
    "b AND i > 1",
    "b OR i > 1",
    "x * CAST(NULL AS DECIMAL(15, 2)) IS NULL",
    "NOT b OR i > 0",
    "s = 'green ant'",
    "s < 'a'",
    "s >= 'Grün'",
    "s LIKE '%green%'",
    "s LIKE 'gr%'",
    "s LIKE '%t'",
    "s LIKE '%r_n%'",
    "s NOT LIKE '%a%.gr_en%'",
    "s IN ('', 'green ant', 'x')",
    "i IN (2, 7)",
    "i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "d >= DATE'1994-01-01' AND d < DATE'1995-01-01'",
    "d = DATE'0001-01-01'",
    "x BETWEEN 0.00 AND 10.00",
    "x < 24",
    "y = 0.1",
    "x = y",
    "x * y IS NOT NULL",
    "x * y",
    "x * (1 - y)",
    "x * (1 - y) * (1 + y)",
    "x + y - 0.5",
    "CAST(x AS DECIMAL(16, 4))",
    "CAST(x AS DECIMAL(15, 1))",
    "CAST(x * (y + 0.005) AS DECIMAL(30, 2))",
    "x / 3.0",
    "x / CAST(7 AS DECIMAL(38, 6))",
    "100.00 * x / (y + 5.00)",
    "CAST(x * y AS DECIMAL(38, 4)) / CAST(y + 1000 AS DECIMAL(38, 4))",
    "CASE WHEN b THEN x ELSE y END IS NOT NULL",
    "CASE WHEN b THEN x END IS NULL",
    "CASE WHEN b THEN i > 1 WHEN n = 5 THEN s LIKE 'a%' END",
    "x / 3.0 IS NULL",
    "CAST(x * y AS DECIMAL(20, 6)) > x",
    "i IN (1, 2) AND x * y < 3",
    "substring(s, 1, 2) IN ('gr', 'Gr')",
    "CASE WHEN s = 'green ant' THEN x ELSE 0 END",
    "CASE WHEN i > 1 THEN x WHEN i = 1 THEN y END",
    "IF(n > 0, x * y, x)",
    "CASE WHEN s = 'green ant' OR s = '' THEN 1 ELSE 0 END",
    "CASE WHEN i > 1 THEN n WHEN b THEN 9223372036854775807L END",
    "CASE WHEN i > 1 THEN i ELSE 7 END > 2",
    "year(d)",
    "substring(s, 1, 2)",
    "substring(s, 3, 4)",
    "i + 1",
    "n - i",
    "n * n > 3",
    "-n",
    "i % 2",
    "(n - 6) % 3",
    "CAST(i AS BIGINT) * 9",
    "try_add(i, 2)",
)
SPARKS_OWN = (
    "upper(s) = 'X'",
    "CAST(x AS DOUBLE)",
    "n / 2",
    "month(d)",
    "substring(s, -2, 1)",
    "s LIKE '100\\\\%'",
    "s COLLATE UTF8_LCASE = 'a'",
    "i IN (1, NULL)",
    "CAST(s AS INT) = 1",
)


@pytest.fixture(scope="module")
def rows(spark):
    spark.sql(ROWS).createOrReplaceTempView("rows")
    return spark.sql(TYPED).localCheckpoint()


def lifted(rows, text: str) -> tuple[Jvm, object]:
    """Return an expression over the rows as the optimiser leaves it."""
    spark = rows.sparkSession
    plan = rows.selectExpr(f"{text} AS result", "*")._jdf.queryExecution().optimizedPlan()
    (named,) = (e for e in items(plan.projectList()) if e.name() == "result")
    return Jvm(spark), named.child()


@pytest.mark.parametrize("text", SIMPLE)
def test_driver_and_spark_agree(rows, text):
    jvm, expr = lifted(rows, text)
    simple = driver_form(jvm, expr)
    assert simple is not None, f"{text} has no simple form"
    plan = rows._jdf.queryExecution().analyzed()
    names = [str(a.exprId().id()) for a in items(plan.output())]
    frame = pl.DataFrame(pl.from_arrow(rows.toArrow().rename_columns(names)))
    expected = rows.selectExpr(f"{text} AS result").toArrow().column(0)

    found = Expressions(lambda _: simple).value(Opaque(0, frozenset(), text, expr), frame).to_arrow()

    assert found.to_pylist() == expected.to_pylist()
    assert found.cast(expected.type, safe=True).equals(pa.concat_arrays(expected.chunks))


@pytest.mark.parametrize("text", SPARKS_OWN)
def test_what_only_spark_can_tell_is_left_to_it(rows, text):
    jvm, expr = lifted(rows, text)

    assert driver_form(jvm, expr) is None


EVALUATED = (
    *SPARKS_OWN,
    "upper(s)",
    "concat_ws('-', s, CAST(i AS STRING), CAST(d AS STRING))",
    "CAST(x AS DOUBLE) / 3",
    "CAST(n AS FLOAT)",
    "CAST(d AS TIMESTAMP) + INTERVAL 3 HOURS",
    "CAST(d AS TIMESTAMP_NTZ)",
    "CAST(s AS BINARY)",
    "sqrt(i - 10D)",
    "date_add(d, 3)",
    "x / 7",
    "pmod(n, 3)",
    "n BETWEEN i AND 9 OR s RLIKE '^g.*t$'",
    "coalesce(s, 'none')",
    "hash(i, s)",
)
LEFT_TO_A_JOB = (
    "CAST(unhex(concat('41FF', substring(s, 9, 1))) AS STRING)",
    "map(i, n)",
    "s COLLATE UTF8_LCASE",
    "CAST(s AS INT)",
    "1 / i / (i - 1)",
    "n * 9223372036854775807L",
    "i IN (SELECT max(i) FROM rows)",
)


def leaves(jvm: Jvm, **options: int) -> Leaves:
    return Leaves(jvm, Inputs({}, {}, {}), Options(**options))


def driver_frame(rows) -> pl.DataFrame:
    names = [str(a.exprId().id()) for a in items(rows._jdf.queryExecution().analyzed().output())]
    return pl.DataFrame(pl.from_arrow(rows.toArrow().rename_columns(names)))


@pytest.mark.parametrize("text", [t for t in EVALUATED if "COLLATE" not in t and "AS INT)" not in t])
def test_catalyst_evaluates_rows_of_the_driver_as_spark_does(rows, text):
    jvm, expr = lifted(rows, text)
    expected = rows.selectExpr(f"{text} AS result").toArrow().column(0)

    (found,) = leaves(jvm).evaluate([opaque(expr)], driver_frame(rows))

    assert repr(found.to_arrow().to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("text", LEFT_TO_A_JOB)
def test_what_catalyst_cannot_evaluate_is_left_to_a_job(rows, text):
    plan = rows.selectExpr(f"{text} AS result", "*")._jdf.queryExecution().analyzed()
    (named,) = (e for e in items(plan.projectList()) if e.name() == "result")

    assert leaves(Jvm(rows.sparkSession)).evaluate([opaque(named.child())], driver_frame(rows)) is None


def test_python_function_is_left_to_a_job(rows):
    double = F.udf(lambda n: n, "bigint")
    plan = rows.select(double("n").alias("result"), "*")._jdf.queryExecution().analyzed()
    (named,) = (e for e in items(plan.projectList()) if e.name() == "result")

    assert leaves(Jvm(rows.sparkSession)).evaluate([opaque(named.child())], driver_frame(rows)) is None


def test_many_rows_are_left_to_a_job(rows):
    jvm, expr = lifted(rows, "upper(s)")

    assert leaves(jvm, driver_evaluated=4).evaluate([opaque(expr)], driver_frame(rows)) is None


@pytest.mark.parametrize("text", ["n + 9223372036854775807L", "n * 9223372036854775807L", "i % (i - 1)"])
def test_whole_numbers_that_do_not_fit_are_left_to_spark(rows, text):
    jvm, expr = lifted(rows, text)
    expressions = Expressions(lambda e: driver_form(jvm, e.handle))

    with pytest.raises((NotHereError, pa.ArrowInvalid)):
        expressions.value(opaque(expr), driver_frame(rows))


def test_years_that_arrow_does_not_count_are_left_to_spark():
    year = Call("year", (Col(Column(1, "d", "date")),))

    def found(*days: int | None) -> list[int | None]:
        dates = pl.DataFrame({"1": pl.Series(days, dtype=pl.Int32).cast(pl.Date)})
        return Expressions(lambda _: None).value(year, dates).to_list()

    assert found(0, None, 2_932_897, -719_529) == [1970, None, 10_000, -1]
    for days in (36_159_999, -36_159_999):
        with pytest.raises(NotHereError):
            found(0, days)


def test_division_by_zero_is_left_to_spark(rows):
    jvm, expr = lifted(rows, "x / y")
    simple = driver_form(jvm, expr)
    assert simple is not None
    names = [str(a.exprId().id()) for a in items(rows._jdf.queryExecution().analyzed().output())]
    frame = pl.DataFrame(pl.from_arrow(rows.toArrow().rename_columns(names)))

    with pytest.raises(NotHereError):
        Expressions(lambda _: simple).value(Opaque(0, frozenset(), "x / y", expr), frame)


def test_sum_that_does_not_fit_is_left_to_spark(rows):
    from trickle.algebra.expr import Cast

    def squared(number: int) -> pl.Series:
        wide = pl.DataFrame({"1": pl.Series([number], dtype=pl.Decimal(38, 2))})
        product = Call("*", (Col(Column(1, "x", "decimal(38,2)")), Col(Column(1, "x", "decimal(38,2)"))))
        return Expressions(lambda _: None).value(Cast(product, Column(0, "", "decimal(38,4)")), wide)

    assert squared(10**6).to_list() == [10**12]
    with pytest.raises((NotHereError, pa.ArrowInvalid)):
        squared(10**20)
