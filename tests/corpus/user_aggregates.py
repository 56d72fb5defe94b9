"""Aggregates that users write: pandas functions and JVM aggregators."""

from __future__ import annotations

import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .case import Case, Way, case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USER = Way("the function runs again over the touched groups", "rows of the touched groups")


def register_pandas_aggregates(spark: SparkSession) -> None:
    """Register ``pd_range`` (largest less smallest) and ``pd_wsum`` (a sum of products)."""
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    def pd_range(v: pd.Series) -> float:
        return float(v.max() - v.min()) if v.notna().any() else float("nan")

    def pd_wsum(v: pd.Series, w: pd.Series) -> float:
        return float((v.fillna(0) * w.fillna(0)).sum())

    for function in (pd_range, pd_wsum):
        function.__annotations__ = {**dict.fromkeys("vw"[: function.__code__.co_argcount], pd.Series), "return": float}
        spark.udf.register(function.__name__, pandas_udf(function, "double"))


_JVM_AGGREGATOR: Final = """
package trickle.corpus;

public class SumOfSquares extends org.apache.spark.sql.expressions.Aggregator {
  public Object zero() { return Long.valueOf(0L); }
  public Object reduce(Object sum, Object in) {
    if (in == null) return sum;
    long x = ((Long) in).longValue();
    return Long.valueOf(((Long) sum).longValue() + x * x);
  }
  public Object merge(Object a, Object b) { return Long.valueOf(((Long) a).longValue() + ((Long) b).longValue()); }
  public Object finish(Object sum) { return sum; }
  public org.apache.spark.sql.Encoder bufferEncoder() { return org.apache.spark.sql.Encoders.LONG(); }
  public org.apache.spark.sql.Encoder outputEncoder() { return org.apache.spark.sql.Encoders.LONG(); }
}
"""


@cache
def _jvm_aggregator_jar() -> Path:
    """Return a path for the compiled aggregator; Spark's own compiler makes its classes."""
    return Path(tempfile.mkdtemp(prefix="trickle-corpus-")) / "aggregators.jar"


def register_jvm_aggregator(spark: SparkSession) -> None:
    """Register ``sum_of_squares``, a JVM ``Aggregator``."""
    jvm, jar = spark._jvm, _jvm_aggregator_jar()
    if not jar.exists():
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(_JVM_AGGREGATOR)
        classes = compiler.getBytecodes()
        with zipfile.ZipFile(jar, "w") as archive:
            for name in classes:
                archive.writestr(name.replace(".", "/") + ".class", bytes(classes[name]))
        spark.sql(f"ADD JAR '{jar}'").collect()
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    aggregator = (
        loader.loadClass("trickle.corpus.SumOfSquares")
        .getDeclaredConstructors()[0]
        .newInstance(spark.sparkContext._gateway.new_array(jvm.Object, 0))
    )
    function = jvm.org.apache.spark.sql.functions.udaf(aggregator, jvm.org.apache.spark.sql.Encoders.LONG())
    spark._jsparkSession.udf().register("sum_of_squares", function)


CASES: tuple[Case, ...] = (
    case(
        "pandas grouped aggregate",
        "SELECT kind, pd_range(val) AS spread FROM events GROUP BY kind",
        USER,
        register=register_pandas_aggregates,
        limits="the function must be deterministic and not depend on the order of rows",
    ),
    case(
        "several pandas aggregates with HAVING and an expression",
        """
        SELECT product, 1 + pd_range(qty) AS r, pd_wsum(qty, cast(price AS DOUBLE)) AS w
        FROM items GROUP BY product HAVING pd_range(qty) >= 0
        """,
        USER,
        register=register_pandas_aggregates,
        approximate=True,
    ),
    case(
        "pandas aggregate beside built-ins, joined",
        """
        SELECT a.product, a.n, a.q, b.r
        FROM (SELECT product, count(*) AS n, sum(qty) AS q FROM items GROUP BY product) a
        JOIN (SELECT product, pd_range(qty) AS r FROM items GROUP BY product) b ON a.product <=> b.product
        """,
        USER,
        register=register_pandas_aggregates,
        limits="Spark does not mix pandas and built-in aggregates in one GROUP BY",
    ),
    case(
        "JVM aggregator",
        "SELECT product, sum_of_squares(qty) AS s FROM items GROUP BY product",
        USER,
        register=register_jvm_aggregator,
    ),
    case(
        "JVM aggregator with FILTER, beside built-ins",
        """
        SELECT product, count(*) AS n, sum_of_squares(qty) FILTER (WHERE qty > 1) AS s, max(price) AS m,
               sum_of_squares(qty) - sum(qty) AS d
        FROM items GROUP BY product HAVING sum_of_squares(qty) > 0
        """,
        USER,
        register=register_jvm_aggregator,
    ),
    case(
        "JVM aggregator of distinct values, without GROUP BY",
        "SELECT sum_of_squares(DISTINCT qty) AS s, count(*) AS n FROM items",
        USER,
        register=register_jvm_aggregator,
    ),
)
