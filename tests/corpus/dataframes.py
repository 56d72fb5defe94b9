"""Stream tables defined by DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .case import Case, case
from .composition import BY_GROUP, DETERMINISTIC, JOINED, MIXED, ROWWISE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _aggregated(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        spark.table("orders")
        .where(f.col("status").isNotNull())
        .groupBy("customer")
        .agg(f.count("*").alias("n"), f.sum("amount").alias("s"), f.max("day").alias("last"))
    )


def _joined(spark: SparkSession) -> DataFrame:
    emp, dept = spark.table("emp").alias("e"), spark.table("dept").alias("d")
    return emp.join(dept, emp["dept_id"] == dept["id"], "full").select("e.name", "d.city", emp["id"])


def _windowed(spark: SparkSession) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    window = Window.partitionBy("who").orderBy("at", "id")
    return spark.table("events").withColumn("rn", f.row_number().over(window)).where("rn <= 2").drop("at")


def _deduplicated(spark: SparkSession) -> DataFrame:
    return spark.table("orders").select("customer", "status").dropDuplicates()


def _deduplicated_by_key(spark: SparkSession) -> DataFrame:
    return spark.table("orders").dropDuplicates(["customer"])


def _pivoted(spark: SparkSession) -> DataFrame:
    return spark.table("sales").groupBy("region").pivot("quarter", ["q1", "q2"]).sum("amount")


def _cubed(spark: SparkSession) -> DataFrame:
    return spark.table("sales").cube("region", "quarter").count()


def _melted(spark: SparkSession) -> DataFrame:
    return spark.table("readings").unpivot(["sensor"], ["q1", "q2", "q3"], "quarter", "val")


def _udf_inline(spark: SparkSession) -> DataFrame:
    from pyspark.sql.functions import udf

    shout = udf(lambda text: None if text is None else text.upper() + "!", "string")
    return spark.table("orders").select("id", shout("customer").alias("loud"))


def _sorted(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    return spark.table("orders").select("id", "amount").orderBy(f.desc_nulls_last("amount"), "id").limit(3)


def _unioned(spark: SparkSession) -> DataFrame:
    left = spark.table("bag_a")
    return left.unionByName(spark.table("bag_b").withColumnRenamed("v", "w"), allowMissingColumns=True)


def _subtracted(spark: SparkSession) -> DataFrame:
    return spark.table("bag_a").exceptAll(spark.table("bag_b")).intersectAll(spark.table("bag_a"))


def _filled(spark: SparkSession) -> DataFrame:
    return spark.table("readings").na.fill(0, ["q1"]).na.drop(subset=["q2"]).na.replace({"s1": "S"}, subset=["sensor"])


def _sql_in_dataframe(spark: SparkSession) -> DataFrame:
    inner = spark.sql("SELECT dept_id, avg(salary) AS mean FROM emp GROUP BY dept_id")
    return spark.sql("SELECT e.id, e.salary - m.mean AS diff FROM emp e JOIN {m} m ON m.dept_id = e.dept_id", m=inner)


def _lateral(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    top = spark.table("items").where(f.col("order_id") == f.col("o.id").outer()).select(f.max("qty").alias("most"))
    return spark.table("orders").alias("o").lateralJoin(top, how="left").select("id", "most")


CASES: tuple[Case, ...] = (
    case("DataFrame: filter and aggregate", "", BY_GROUP, tables=("orders",), define=_aggregated),
    case("DataFrame: full join", "", JOINED, tables=("emp", "dept"), define=_joined),
    case("DataFrame: window and top-N", "", MIXED, tables=("events",), define=_windowed),
    case("DataFrame: dropDuplicates", "", BY_GROUP, tables=("orders",), define=_deduplicated),
    case(
        "DataFrame: dropDuplicates by a key",
        "",
        BY_GROUP,
        tables=("orders",),
        define=_deduplicated_by_key,
        fixed_order=True,
        limits="which row is kept: the engine takes the first by all columns",
    ),
    case("DataFrame: pivot", "", BY_GROUP, tables=("sales",), define=_pivoted),
    case("DataFrame: cube", "", BY_GROUP, tables=("sales",), define=_cubed),
    case("DataFrame: unpivot", "", ROWWISE, tables=("readings",), define=_melted),
    case(
        "DataFrame: Python UDF that has no name",
        "",
        ROWWISE,
        tables=("orders",),
        define=_udf_inline,
        limits=DETERMINISTIC,
    ),
    case("DataFrame: sort and limit", "", MIXED, tables=("orders",), define=_sorted),
    case("DataFrame: unionByName with missing columns", "", ROWWISE, tables=("bag_a", "bag_b"), define=_unioned),
    case("DataFrame: exceptAll and intersectAll", "", MIXED, tables=("bag_a", "bag_b"), define=_subtracted),
    case("DataFrame: na functions", "", ROWWISE, tables=("readings",), define=_filled),
    case("DataFrame: SQL over a DataFrame", "", MIXED, tables=("emp",), define=_sql_in_dataframe),
    case("DataFrame: lateral join", "", JOINED, tables=("orders", "items"), define=_lateral),
)
