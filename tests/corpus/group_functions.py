"""Python functions that are handed whole groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .case import Case, Way, case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CALLED = Way("the function is called again for the touched groups, before and after", "rows of the touched groups")
_CALLED_FOR_ALL = Way("the function is called again for the whole input, before and after", "the whole input")
_ORDER = "the function must not depend on the order in which it is handed the rows"
_SORTED = "the function must be deterministic, also where rows are equal in the ORDER BY"


# Functions are defined where they are used: a worker of Spark gets them by value and knows nothing of the tests.


def _apply_extremes(rows: DataFrame, *keys: object) -> DataFrame:
    def extremes(group):
        return group.sort_values(["val", "id"]).iloc[[0, -1]][["id", "who", "val"]]

    return rows.where("val IS NOT NULL").groupBy(*keys).applyInPandas(extremes, "id INT, who STRING, val INT")


def _count_both(left: DataFrame, right: DataFrame) -> DataFrame:
    def count_both(left, right):
        import pandas as pd

        rows = left if len(left) else right
        return pd.DataFrame({"k": [rows["k"].iloc[0]], "a": [len(left)], "b": [len(right)]})

    left, right = left.where("k IS NOT NULL"), right.where("k IS NOT NULL")
    return left.groupBy("k").cogroup(right.groupBy("k")).applyInPandas(count_both, "k INT, a INT, b INT")


def _applied(spark: SparkSession) -> DataFrame:
    return _apply_extremes(spark.table("events"), "who")


def _applied_by_expression(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    return _apply_extremes(spark.table("events"), f.upper("who").alias("loud"), f.col("val") % 2)


def _applied_to_all(spark: SparkSession) -> DataFrame:
    return _apply_extremes(spark.table("events"))


def _applied_between(spark: SparkSession) -> DataFrame:
    """Apply over a join, and aggregate what comes."""
    joined = spark.sql("SELECT e.id, d.city AS who, int(e.salary) AS val FROM emp e JOIN dept d ON d.id = e.dept_id")
    return _apply_extremes(joined, "who").groupBy("val").count()


def _applied_in_arrow(spark: SparkSession) -> DataFrame:
    def largest(table):
        return table.sort_by([("v", "descending")]).slice(0, 1)

    return spark.table("bag_a").where("v IS NOT NULL").groupBy("k").applyInArrow(largest, "k INT, v INT")


def _cogrouped(spark: SparkSession) -> DataFrame:
    return _count_both(spark.table("bag_a"), spark.table("bag_b"))


def _cogrouped_with_itself(spark: SparkSession) -> DataFrame:
    return _count_both(spark.table("bag_a"), spark.table("bag_a").where("v > 10"))


def _cogrouped_in_arrow(spark: SparkSession) -> DataFrame:
    def count_both(left, right):
        import pyarrow as pa

        rows = left if left.num_rows else right
        return pa.table({"k": rows["k"].slice(0, 1), "a": [left.num_rows], "b": [right.num_rows]})

    left, right = spark.table("bag_a"), spark.table("bag_b")
    return left.groupBy("k").cogroup(right.groupBy("k")).applyInArrow(count_both, "k INT, a LONG, b LONG")


def register_table_functions(spark: SparkSession) -> None:
    """Register ``spread`` and ``climb``, which take a table with the columns k and v."""
    from pyspark.sql.functions import udtf

    class Spread:
        """Lowest and highest v of a partition."""

        def __init__(self) -> None:
            self.key = None
            self.rows = 0
            self.seen: list[int] = []

        def eval(self, row) -> None:
            self.key = row["k"]
            self.rows += 1
            if row["v"] is not None:
                self.seen.append(row["v"])

        def terminate(self):
            if self.rows:  # a task without rows is ended too
                yield self.key, min(self.seen, default=None), max(self.seen, default=None)

    class Climb:
        """Each v with its distance from the one before it."""

        def __init__(self) -> None:
            self.last = None

        def eval(self, row):
            if row["v"] is not None:
                yield row["k"], row["v"], None if self.last is None else row["v"] - self.last
                self.last = row["v"]

    spark.udtf.register("spread", udtf(Spread, returnType="k INT, lowest INT, highest INT").asDeterministic())
    spark.udtf.register("climb", udtf(Climb, returnType="k INT, v INT, up INT").asDeterministic())


CASES: tuple[Case, ...] = (
    case("applyInPandas by group", "", _CALLED, tables=("events",), define=_applied, limits=_ORDER),
    case("applyInPandas by expressions", "", _CALLED, tables=("events",), define=_applied_by_expression, limits=_ORDER),
    case(
        "applyInPandas without a group", "", _CALLED_FOR_ALL, tables=("events",), define=_applied_to_all, limits=_ORDER
    ),
    case(
        "applyInPandas over a join, under an aggregate",
        "",
        _CALLED,
        tables=("emp", "dept"),
        define=_applied_between,
        limits=_ORDER,
    ),
    case("applyInArrow by group", "", _CALLED, tables=("bag_a",), define=_applied_in_arrow, limits=_ORDER),
    case("cogrouped applyInPandas", "", _CALLED, tables=("bag_a", "bag_b"), define=_cogrouped, limits=_ORDER),
    case("cogrouped applyInArrow", "", _CALLED, tables=("bag_a", "bag_b"), define=_cogrouped_in_arrow, limits=_ORDER),
    case(
        "table cogrouped with itself, applyInPandas",
        "",
        _CALLED,
        tables=("bag_a",),
        define=_cogrouped_with_itself,
        limits=_ORDER,
    ),
    case(
        "Python UDTF with TABLE … PARTITION BY",
        "SELECT k, lowest, highest FROM spread(TABLE(SELECT k, v FROM bag_a) PARTITION BY k)",
        _CALLED,
        register=register_table_functions,
        limits=_ORDER,
    ),
    case(
        "Python UDTF with TABLE … PARTITION BY … ORDER BY",
        "SELECT k, v, up FROM climb(TABLE(bag_a) PARTITION BY k ORDER BY v)",
        _CALLED,
        register=register_table_functions,
        limits=_SORTED,
    ),
    case(
        "Python UDTF with TABLE … PARTITION BY an expression, joined",
        """
        SELECT b.k, b.v, c.up
        FROM bag_b b JOIN climb(TABLE(SELECT k, v FROM bag_a) PARTITION BY k % 2 ORDER BY (v, k)) c ON c.k = b.k
        """,
        _CALLED,
        register=register_table_functions,
        limits=_SORTED,
    ),
    case(
        "Python UDTF with TABLE … WITH SINGLE PARTITION",
        "SELECT v, up FROM climb(TABLE(SELECT k, v FROM bag_a) WITH SINGLE PARTITION ORDER BY (v, k))",
        _CALLED_FOR_ALL,
        register=register_table_functions,
        limits=_SORTED,
    ),
)
