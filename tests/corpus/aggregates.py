"""Aggregates: every function of the registry, and every clause that goes with them."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .case import Case, Way, case
from .rounds import Change, Round, step
from .tables import ORDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDITIVE = Way(
    "counts, sums and averages of whole numbers and decimals are kept and added to; with any other function beside them "
    "the touched groups are computed again",
    "nothing where sums are kept, else rows of the touched groups",
)
EXTREME = Way("the touched groups are computed again", "rows of the touched groups")
RESCAN = Way("the touched groups are computed again", "rows of the touched groups")
DISTINCT = Way("the touched groups are computed again", "rows of the touched groups")
DEDUPLICATED = Way("the touched rows are looked for again", "copies of the touched rows")
EXPANDED = Way("each row goes to every grouping set, then as any aggregate", "rows of the touched groups in every set")
PIVOTED = Way("one aggregate with one filter per pivot value, by the remaining columns", "rows of the touched groups")
NESTED = Way("each aggregate hands its changed groups to the one above", "rows of the touched groups, per level")
HAVING = Way("groups are maintained, then filtered; a group enters or leaves as its value crosses", "see the aggregate")
EXPRESSION = Way("the aggregates are maintained, the expression is computed from them", "see the aggregates")
USER = Way("the function is run again over the touched groups", "rows of the touched groups")
SLIDING = Way("each row goes to every window that covers it, then as any aggregate", "rows of the touched windows")
SESSIONS = Way("the sessions of the touched keys are built again", "rows of the touched keys")


@dataclass(frozen=True)
class Function:
    """One aggregate function of the registry by example: what it says, and how it is maintained.

    ``example`` is an expression over ``source`` (a table or subquery) grouped by ``by``.
    """

    name: str
    means: str
    example: str
    way: Way
    source: str = "items"
    by: str = "product"
    approximate: bool = False
    fixed_order: bool = False
    limits: str = ""


_XY: Final = "(SELECT product, cast(qty AS DOUBLE) AS x, cast(price AS DOUBLE) AS y FROM items)"
# Spark divides by zero where all values of a group of several rows are the same: here they differ.
_SPREAD: Final = "(SELECT kind AS product, cast(id AS DOUBLE) AS x, cast(id * id - 20 * id AS DOUBLE) AS y FROM events)"
_POWERS: Final = "kept by power sums in floating point; a group is read again when the error bound is reached"
_ORDER: Final = "depends on the order of rows; the engine orders by all columns"
_SKETCH: Final = "exact while the sketch holds every value; the bytes of a sketch are not compared"
_BIT: Final = "SELECT product, bitmap_construct_agg(bitmap_bit_position(qty)) AS bits FROM items"
_BITS: Final = f"({_BIT} GROUP BY product, order_id)"
_LONGS: Final = "SELECT product, order_id, {} AS sketch FROM items GROUP BY product, order_id"


def _sketches(expression: str) -> str:
    return f"({_LONGS.format(expression)})"


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("any", "true if one value is true", "any(qty > 3)", ADDITIVE),
    Function("some", "true if one value is true", "some(qty > 3)", ADDITIVE),
    Function("bool_or", "true if one value is true", "bool_or(qty > 3)", ADDITIVE),
    Function("every", "true if all values are true", "every(qty > 1)", ADDITIVE),
    Function("bool_and", "true if all values are true", "bool_and(qty > 1)", ADDITIVE),
    Function("any_value", "some value of the group", "any_value(order_id)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("first", "the first value", "first(qty)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("first_value", "the first value", "first_value(order_id, true)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("last", "the last value", "last(qty)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("last_value", "the last value", "last_value(order_id, true)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("count", "the number of rows or of non-null values", "count(*) AS x, count(qty) AS y", ADDITIVE),
    Function("count_if", "the number of true values", "count_if(qty > 2)", ADDITIVE),
    Function("sum", "the sum", "sum(qty) AS x, sum(price) AS y", ADDITIVE),
    Function("try_sum", "the sum, null on overflow", "try_sum(qty)", ADDITIVE),
    Function("avg", "the mean", "avg(qty) AS x, avg(price) AS y", ADDITIVE),
    Function("mean", "the mean", "mean(qty)", ADDITIVE),
    Function("try_avg", "the mean, null on overflow", "try_avg(qty)", ADDITIVE),
    Function("min", "the smallest value", "min(qty) AS x, min(price) AS y", EXTREME),
    Function("max", "the largest value", "max(qty) AS x, max(price) AS y", EXTREME),
    Function("min_by", "a value at the smallest other", "min_by(who, id)", RESCAN, "events", "kind"),
    Function(
        "max_by", "a value at the largest other", "max_by(who, id)", RESCAN, "events", "kind", limits="ties: " + _ORDER
    ),
    Function("bit_and", "all values and-ed bitwise", "bit_and(qty)", RESCAN),
    Function("bit_or", "all values or-ed bitwise", "bit_or(qty)", RESCAN),
    Function("bit_xor", "all values xor-ed bitwise", "bit_xor(qty)", ADDITIVE),
    Function("collect_list", "the values as an array", "collect_list(qty)", RESCAN, fixed_order=True, limits=_ORDER),
    Function("array_agg", "the values as an array", "array_agg(order_id)", RESCAN, fixed_order=True, limits=_ORDER),
    Function(
        "collect_set", "the distinct values as an array", "collect_set(qty)", RESCAN, fixed_order=True, limits=_ORDER
    ),
    Function(
        "listagg",
        "the values as one text",
        "listagg(product, ',') WITHIN GROUP (ORDER BY product)",
        RESCAN,
        by="order_id",
    ),
    Function(
        "string_agg",
        "the values as one text",
        "string_agg(product, ';') WITHIN GROUP (ORDER BY product DESC)",
        RESCAN,
        by="order_id",
    ),
    Function("mode", "the most frequent value", "mode(qty, true)", RESCAN),
    Function("median", "the middle value", "median(qty)", RESCAN),
    Function("percentile", "an interpolated percentile", "percentile(qty, array(0.25, 0.75))", RESCAN),
    Function(
        "percentile_cont", "an interpolated percentile", "percentile_cont(0.4) WITHIN GROUP (ORDER BY qty)", RESCAN
    ),
    Function(
        "percentile_disc", "a percentile among the values", "percentile_disc(0.4) WITHIN GROUP (ORDER BY qty)", RESCAN
    ),
    Function(
        "percentile_approx", "an approximate percentile", "percentile_approx(qty, 0.5, 1000)", RESCAN, limits=_SKETCH
    ),
    Function(
        "approx_percentile",
        "an approximate percentile",
        "approx_percentile(qty, array(0.1, 0.9))",
        RESCAN,
        limits=_SKETCH,
    ),
    Function("approx_count_distinct", "about how many values differ", "approx_count_distinct(qty)", RESCAN),
    Function("stddev", "the sample standard deviation", "stddev(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("std", "the sample standard deviation", "std(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function(
        "stddev_samp", "the sample standard deviation", "stddev_samp(qty)", ADDITIVE, approximate=True, limits=_POWERS
    ),
    Function("stddev_pop", "the standard deviation", "stddev_pop(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("variance", "the sample variance", "variance(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("var_samp", "the sample variance", "var_samp(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("var_pop", "the variance", "var_pop(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("skewness", "the third standardised moment", "skewness(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("kurtosis", "the fourth standardised moment", "kurtosis(qty)", ADDITIVE, approximate=True, limits=_POWERS),
    Function("corr", "the correlation", "corr(y, x)", ADDITIVE, _SPREAD, approximate=True, limits=_POWERS),
    Function("covar_pop", "the covariance", "covar_pop(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS),
    Function(
        "covar_samp", "the sample covariance", "covar_samp(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS
    ),
    Function("regr_avgx", "the mean of x where both are set", "regr_avgx(y, x)", ADDITIVE, _XY, approximate=True),
    Function("regr_avgy", "the mean of y where both are set", "regr_avgy(y, x)", ADDITIVE, _XY, approximate=True),
    Function("regr_count", "the number of pairs", "regr_count(y, x)", ADDITIVE, _XY),
    Function(
        "regr_intercept",
        "where the fitted line starts",
        "regr_intercept(y, x)",
        ADDITIVE,
        _XY,
        approximate=True,
        limits=_POWERS,
    ),
    Function("regr_r2", "how well the line fits", "regr_r2(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS),
    Function(
        "regr_slope",
        "the slope of the fitted line",
        "regr_slope(y, x)",
        ADDITIVE,
        _XY,
        approximate=True,
        limits=_POWERS,
    ),
    Function("regr_sxx", "the squared spread of x", "regr_sxx(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS),
    Function("regr_sxy", "the joint spread", "regr_sxy(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS),
    Function("regr_syy", "the squared spread of y", "regr_syy(y, x)", ADDITIVE, _XY, approximate=True, limits=_POWERS),
    Function(
        "histogram_numeric",
        "a histogram of at most n bins",
        "aggregate(histogram_numeric(qty, 20), 0D, (sum, bin) -> sum + bin.x * bin.y)",
        RESCAN,
        limits="how equal values share bins depends on how rows are split; compared by what the bins add up to",
    ),
    Function("count_min_sketch", "a sketch of frequencies", "hex(count_min_sketch(qty, 0.5D, 0.5D, 1))", RESCAN),
    Function(
        "hll_sketch_agg",
        "a sketch of distinct values",
        "hll_sketch_estimate(hll_sketch_agg(qty))",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "hll_union_agg",
        "sketches of distinct values merged",
        "hll_sketch_estimate(hll_union_agg(sketch))",
        RESCAN,
        _sketches("hll_sketch_agg(qty)"),
        limits=_SKETCH,
    ),
    Function(
        "theta_sketch_agg",
        "a sketch of distinct values",
        "theta_sketch_estimate(theta_sketch_agg(qty))",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "theta_union_agg",
        "theta sketches merged",
        "theta_sketch_estimate(theta_union_agg(sketch))",
        RESCAN,
        _sketches("theta_sketch_agg(qty)"),
        limits=_SKETCH,
    ),
    Function(
        "theta_intersection_agg",
        "theta sketches intersected",
        "theta_sketch_estimate(theta_intersection_agg(sketch))",
        RESCAN,
        _sketches("theta_sketch_agg(qty)"),
        limits=_SKETCH,
    ),
    Function(
        "kll_sketch_agg_bigint",
        "a sketch of quantiles",
        "kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(qty), 0.5D)",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "kll_sketch_agg_double",
        "a sketch of quantiles",
        "kll_sketch_get_quantile_double(kll_sketch_agg_double(cast(qty AS DOUBLE)), 0.5D)",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "kll_sketch_agg_float",
        "a sketch of quantiles",
        "kll_sketch_get_quantile_float(kll_sketch_agg_float(cast(qty AS FLOAT)), 0.5D)",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "kll_merge_agg_bigint",
        "sketches of quantiles merged",
        "kll_sketch_get_n_bigint(kll_merge_agg_bigint(sketch))",
        RESCAN,
        _sketches("kll_sketch_agg_bigint(qty)"),
        limits=_SKETCH,
    ),
    Function(
        "kll_merge_agg_double",
        "sketches of quantiles merged",
        "kll_sketch_get_n_double(kll_merge_agg_double(sketch))",
        RESCAN,
        _sketches("kll_sketch_agg_double(cast(qty AS DOUBLE))"),
        limits=_SKETCH,
    ),
    Function(
        "kll_merge_agg_float",
        "sketches of quantiles merged",
        "kll_sketch_get_n_float(kll_merge_agg_float(sketch))",
        RESCAN,
        _sketches("kll_sketch_agg_float(cast(qty AS FLOAT))"),
        limits=_SKETCH,
    ),
    Function(
        "approx_top_k",
        "the most frequent values",
        "array_sort(approx_top_k(qty, 10))",
        RESCAN,
        limits="ties: " + _SKETCH,
    ),
    Function(
        "approx_top_k_accumulate",
        "a sketch of frequent values",
        "array_sort(approx_top_k_estimate(approx_top_k_accumulate(qty), 10))",
        RESCAN,
        limits=_SKETCH,
    ),
    Function(
        "approx_top_k_combine",
        "sketches of frequent values merged",
        "array_sort(approx_top_k_estimate(approx_top_k_combine(sketch), 10))",
        RESCAN,
        _sketches("approx_top_k_accumulate(qty)"),
        limits=_SKETCH,
    ),
    Function(
        "bitmap_construct_agg",
        "a bitmap of positions",
        "bitmap_count(bitmap_construct_agg(bitmap_bit_position(qty)))",
        RESCAN,
        limits="exact for every position; a bitmap cannot forget a bit, so groups are read again",
    ),
    Function("bitmap_or_agg", "bitmaps or-ed", "bitmap_count(bitmap_or_agg(bits))", RESCAN, _BITS),
    Function("bitmap_and_agg", "bitmaps and-ed", "bitmap_count(bitmap_and_agg(bits))", RESCAN, _BITS),
    Function(
        "grouping",
        "whether a column is rolled up",
        "grouping(product) AS x, count(*) AS y",
        EXPANDED,
        by="CUBE(product)",
    ),
    Function(
        "grouping_id",
        "which columns are rolled up",
        "grouping_id(region, quarter) AS x, sum(amount) AS y",
        EXPANDED,
        "sales",
        "CUBE(region, quarter)",
    ),
    Function(
        "schema_of_variant_agg",
        "the common schema of variants",
        "schema_of_variant_agg(parse_json(body))",
        RESCAN,
        "docs",
        "span.lo",
    ),
)


def _case_of(function: Function) -> Case:
    keys = function.by.removeprefix("CUBE(").removesuffix(")")
    shown = function.example if function.example.endswith(" AS y") else f"{function.example} AS x"
    key = keys if function.by.startswith("CUBE") else f"{keys} AS g"
    query = f"SELECT {key}, {shown} FROM {function.source} GROUP BY {function.by}"
    return case(
        f"aggregate function {function.name}: {function.means}",
        query,
        function.way,
        limits=function.limits,
        approximate=function.approximate,
        fixed_order=function.fixed_order,
    )


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
    """Give a path for the compiled aggregator; Spark's own compiler makes its classes."""
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


_ADA, _BO = ORDERS.rows[0], ORDERS.rows[2]

CONSTRUCTS: Final[tuple[Case, ...]] = (
    case(
        "aggregate without GROUP BY: one row, also over nothing",
        "SELECT count(*) AS n, sum(qty) AS q, min(price) AS low, max(product) AS last FROM items",
        ADDITIVE,
    ),
    case(
        "aggregate without GROUP BY over a filter that may pass nothing",
        "SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM orders WHERE status = 'open'",
        ADDITIVE,
    ),
    case("GROUP BY with NULL keys", "SELECT k, count(*) AS n, sum(v) AS s FROM bag_a GROUP BY k", ADDITIVE),
    case(
        "GROUP BY several columns",
        "SELECT customer, status, count(*) AS n, sum(amount) AS s FROM orders GROUP BY 1, 2",
        ADDITIVE,
    ),
    case("GROUP BY ALL", "SELECT lower(customer) AS c, status, max(amount) AS m FROM orders GROUP BY ALL", EXTREME),
    case(
        "GROUP BY an expression",
        "SELECT month(hired) AS m, count(*) AS n, min(salary) AS low FROM emp GROUP BY month(hired)",
        EXTREME,
    ),
    case(
        "GROUP BY a column that is not shown",
        "SELECT count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer",
        ADDITIVE,
    ),
    case("GROUP BY a double with NaN and -0.0", "SELECT score, count(*) AS n FROM docs GROUP BY score", ADDITIVE),
    case("GROUP BY a struct", "SELECT span, count(*) AS n, min(id) AS first_id FROM docs GROUP BY span", EXTREME),
    case("GROUP BY an array", "SELECT tags, count(*) AS n, max(id) AS last_id FROM docs GROUP BY tags", EXTREME),
    case("GROUP BY binary", "SELECT raw, count(*) AS n FROM docs GROUP BY raw", ADDITIVE),
    case(
        "GROUP BY a truncated timestamp",
        "SELECT date_trunc('HOUR', at) AS hour, count(*) AS n, sum(val) AS s FROM events GROUP BY 1",
        ADDITIVE,
    ),
    case(
        "GROUP BY a tumbling time window",
        """
        SELECT window.start AS since, who, count(*) AS n, sum(val) AS s FROM events
        GROUP BY window(at, '30 minutes'), who
        """,
        ADDITIVE,
    ),
    case(
        "GROUP BY a sliding time window",
        "SELECT window.start AS since, count(*) AS n FROM events GROUP BY window(at, '1 hour', '30 minutes')",
        SLIDING,
    ),
    case(
        "GROUP BY a session window",
        """
        SELECT who, session_window.start AS since, session_window.end AS until, count(*) AS n
        FROM events GROUP BY who, session_window(at, '20 minutes')
        """,
        SESSIONS,
    ),
    case("SELECT DISTINCT", "SELECT DISTINCT customer, status FROM orders", DEDUPLICATED),
    case("SELECT DISTINCT of NULLs and duplicates", "SELECT DISTINCT k, v FROM bag_a", DEDUPLICATED),
    case(
        "SELECT DISTINCT of an expression",
        "SELECT DISTINCT upper(customer) AS c, amount > 50 AS big FROM orders",
        DEDUPLICATED,
    ),
    case(
        "SELECT DISTINCT over a join",
        "SELECT DISTINCT o.customer, i.product FROM orders o JOIN items i ON i.order_id = o.id",
        DEDUPLICATED,
    ),
    case(
        "DISTINCT over an aggregate",
        "SELECT DISTINCT n, m FROM (SELECT k, count(*) AS n, max(v) AS m FROM bag_a GROUP BY k)",
        NESTED,
    ),
    case(
        "FILTER on aggregates",
        """
        SELECT customer, count(*) AS n, count(*) FILTER (WHERE status = 'paid') AS paid,
               sum(amount) FILTER (WHERE amount > 50) AS big, max(id) FILTER (WHERE status IS NULL) AS odd
        FROM orders GROUP BY customer
        """,
        ADDITIVE,
    ),
    case("COUNT DISTINCT", "SELECT product, count(DISTINCT order_id) AS n FROM items GROUP BY product", DISTINCT),
    case(
        "several DISTINCT aggregates",
        """
        SELECT product, count(DISTINCT order_id) AS o, count(DISTINCT qty) AS q, sum(DISTINCT qty) AS s, sum(qty) AS t
        FROM items GROUP BY product
        """,
        DISTINCT,
    ),
    case(
        "DISTINCT over several columns, without GROUP BY",
        "SELECT count(DISTINCT k, v) AS pairs, count(DISTINCT k) AS ks, count(*) AS n FROM bag_a",
        DISTINCT,
    ),
    case(
        "DISTINCT with FILTER",
        """
        SELECT customer, count(DISTINCT day) FILTER (WHERE status = 'paid') AS paid_days, count(DISTINCT status) AS st
        FROM orders GROUP BY customer
        """,
        DISTINCT,
    ),
    case("avg DISTINCT", "SELECT k, avg(DISTINCT v) AS m FROM bag_a GROUP BY k", DISTINCT),
    case(
        "listagg WITHIN GROUP by another column",
        """
        SELECT dept_id, listagg(name, ', ') WITHIN GROUP (ORDER BY salary DESC NULLS LAST, id) AS names FROM emp
        GROUP BY dept_id
        """,
        RESCAN,
    ),
    case(
        "listagg DISTINCT WITHIN GROUP",
        """
        SELECT customer, listagg(DISTINCT status, '/') WITHIN GROUP (ORDER BY status) AS st FROM orders
        GROUP BY customer
        """,
        RESCAN,
    ),
    case(
        "listagg without an order",
        "SELECT dept_id, listagg(name, ',') AS names FROM emp GROUP BY dept_id",
        RESCAN,
        fixed_order=True,
        limits=_ORDER,
    ),
    case(
        "listagg of binary",
        "SELECT span.lo AS lo, listagg(raw, X'2C') WITHIN GROUP (ORDER BY raw) AS all_raw FROM docs GROUP BY span.lo",
        RESCAN,
    ),
    case(
        "percentile_cont and percentile_disc, both directions",
        """
        SELECT product,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY price DESC) AS mid,
               percentile_disc(0.25) WITHIN GROUP (ORDER BY price) AS low,
               percentile_disc(0.25) WITHIN GROUP (ORDER BY price DESC) AS high
        FROM items GROUP BY product
        """,
        RESCAN,
    ),
    case(
        "mode WITHIN GROUP",
        "SELECT customer, mode() WITHIN GROUP (ORDER BY status) AS usual FROM orders GROUP BY customer",
        RESCAN,
    ),
    case(
        "mode with ties left open",
        "SELECT customer, mode(status) AS usual FROM orders GROUP BY customer",
        RESCAN,
        fixed_order=True,
        limits=_ORDER,
    ),
    case(
        "max_by with ties",
        "SELECT dept_id, max_by(name, salary) AS richest, min_by(id, hired) AS senior FROM emp GROUP BY dept_id",
        RESCAN,
        fixed_order=True,
        limits=_ORDER,
    ),
    case(
        "sorted collect_list and collect_set",
        "SELECT k, sort_array(collect_list(v)) AS vs, sort_array(collect_set(v)) AS distinct_vs FROM bag_a GROUP BY k",
        RESCAN,
    ),
    case(
        "collect_list of structs, sorted",
        "SELECT order_id, array_sort(collect_list(struct(product, qty))) AS lines FROM items GROUP BY order_id",
        RESCAN,
    ),
    case(
        "map_from_entries over collect_list, read by key",
        """
        SELECT sensor, map_from_entries(collect_list(struct('k' || q1, q1)))['k1'] AS one
        FROM (SELECT DISTINCT sensor, q1 FROM readings WHERE q1 IS NOT NULL) GROUP BY sensor
        """,
        RESCAN,
    ),
    case(
        "to_json over an aggregate",
        "SELECT customer, to_json(sort_array(collect_list(status))) AS j FROM orders GROUP BY customer",
        RESCAN,
    ),
    case(
        "min and max of text, dates and timestamps",
        "SELECT kind, min(who) AS a, max(who) AS z, min(at) AS since, max(at) AS until FROM events GROUP BY kind",
        EXTREME,
    ),
    case(
        "min and max of structs and arrays",
        "SELECT span.lo AS lo, max(struct(score, id)) AS top, min(tags) AS low FROM docs GROUP BY span.lo",
        EXTREME,
    ),
    case(
        "min and max of doubles with NaN and -0.0",
        "SELECT date(at) AS day, min(score) AS low, max(score) AS high FROM docs GROUP BY date(at)",
        EXTREME,
    ),
    case(
        "the extreme of a group goes and comes back",
        "SELECT k, min(v) AS low, max(v) AS high FROM bag_b GROUP BY k",
        EXTREME,
        rounds=(
            step("the largest goes", bag_b=([(1, 20)], [])),
            step("a larger one comes", bag_b=([], [(1, 90), (1, 90)])),
            step("one of two equal largest goes", bag_b=([(1, 90)], [])),
            step("the other goes, a smaller comes", bag_b=([(1, 90)], [(1, 5)])),
            step("only NULL is left", bag_b=([(2, 20)], [(2, None)])),
            step("the group goes", bag_b=([(2, None)], [])),
            step("smallest and largest change places", bag_b=([(1, 5), (1, 10)], [(1, 1), (1, 2), (2, 7)])),
        ),
    ),
    case(
        "sum of doubles",
        "SELECT kind, sum(val / 3.0D) AS s, avg(val / 7.0D) AS m FROM events GROUP BY kind",
        ADDITIVE,
        approximate=True,
        limits="floating point: a group is read again when the error bound is reached",
    ),
    case(
        "sum of doubles with NaN coming and going",
        "SELECT span.lo AS lo, sum(score) AS s, avg(score) AS m, count(score) AS n FROM docs GROUP BY span.lo",
        ADDITIVE,
        approximate=True,
        limits="a NaN or an infinity in a group makes it read again",
    ),
    case(
        "sum of decimals at full precision",
        """
        SELECT customer, sum(cast(amount AS DECIMAL(38, 10)) / 3) AS s, avg(amount) AS m FROM orders GROUP BY customer
        """,
        ADDITIVE,
    ),
    case(
        "sum of intervals",
        """
        SELECT who, cast(sum(at - TIMESTAMP '2024-03-01') AS STRING) AS t, max(at) - min(at) > INTERVAL '1'
               HOUR AS long
        FROM events GROUP BY who
        """,
        ADDITIVE,
    ),
    case(
        "try_sum over an overflow",
        "SELECT k, try_sum(9223372036854775000 + v) AS s FROM bag_a GROUP BY k",
        RESCAN,
    ),
    case(
        "expression over aggregates",
        """
        SELECT customer, 100 * sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) / nullif(sum(amount), 0) AS pct,
               max(amount) - min(amount) AS spread, concat(count(*), ' orders') AS label
        FROM orders GROUP BY customer
        """,
        EXPRESSION,
    ),
    case(
        "expression over aggregates and keys",
        "SELECT k, k * 100 + sum(v) AS x, coalesce(max(v), -k) AS y FROM bag_a GROUP BY k",
        EXPRESSION,
    ),
    case(
        "HAVING crossed both ways",
        "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer HAVING sum(amount) > 100",
        HAVING,
    ),
    case(
        "HAVING on an aggregate that is not shown",
        "SELECT product FROM items GROUP BY product HAVING count(DISTINCT order_id) > 1 AND max(qty) >= 4",
        HAVING,
    ),
    case("HAVING without GROUP BY", "SELECT sum(v) AS s FROM bag_a HAVING count(*) > 9", HAVING),
    case(
        "GROUPING SETS",
        """
        SELECT region, quarter, sum(amount) AS s, count(*) AS n FROM sales
        GROUP BY GROUPING SETS ((region, quarter), (region), (product))
        """,
        EXPANDED,
    ),
    case(
        "GROUPING SETS with the empty set",
        "SELECT region, sum(amount) AS s FROM sales GROUP BY GROUPING SETS ((region), ())",
        EXPANDED,
        limits="over no rows Spark gives no grand total",
    ),
    case(
        "ROLLUP with a real NULL beside a subtotal NULL",
        """
        SELECT region, quarter, grouping(quarter) AS g, sum(amount) AS s, count(*) AS n FROM sales
        GROUP BY ROLLUP(region, quarter)
        """,
        EXPANDED,
    ),
    case(
        "ROLLUP without telling the NULLs apart",
        "SELECT region, quarter, sum(amount) AS s FROM sales GROUP BY ROLLUP(region, quarter)",
        EXPANDED,
    ),
    case(
        "CUBE",
        """
        SELECT region, quarter, product, grouping_id() AS g, count(*) AS n FROM sales
        GROUP BY CUBE(region, quarter, product)
        """,
        EXPANDED,
    ),
    case(
        "CUBE beside plain keys",
        "SELECT product, region, quarter, max(amount) AS m FROM sales GROUP BY product, CUBE(region, quarter)",
        EXPANDED,
    ),
    case(
        "GROUPING SETS with DISTINCT and HAVING",
        """
        SELECT region, product, count(DISTINCT quarter) AS q, sum(amount) AS s
        FROM sales GROUP BY GROUPING SETS ((region), (product), (region, product)) HAVING count(*) > 1
        """,
        EXPANDED,
    ),
    case(
        "PIVOT",
        """
        SELECT * FROM (SELECT region, quarter, amount FROM sales)
        PIVOT (sum(amount) FOR quarter IN ('q1', 'q2', 'q3'))
        """,
        PIVOTED,
    ),
    case(
        "PIVOT with several aggregates and columns",
        """
        SELECT * FROM sales
        PIVOT (
          sum(amount) AS total, count(amount) AS n FOR (quarter, product) IN (('q1', 'nut') AS a, ('q2', 'bolt') AS b)
        )
        """,
        PIVOTED,
    ),
    case(
        "UNPIVOT",
        "SELECT sensor, quarter, val FROM readings UNPIVOT (val FOR quarter IN (q1, q2, q3))",
        Way("each changed row is expanded alone", "changed rows only"),
    ),
    case(
        "UNPIVOT with NULLs, aggregated",
        """
        SELECT quarter, count(*) AS n, sum(val) AS s
        FROM readings UNPIVOT INCLUDE NULLS (val FOR quarter IN (q1 AS first, q2 AS second)) GROUP BY quarter
        """,
        ADDITIVE,
    ),
    case(
        "UNPIVOT of several columns at once",
        "SELECT sensor, half, a, b FROM readings UNPIVOT ((a, b) FOR half IN ((q1, q2) AS early, (q2, q3) AS late))",
        Way("each changed row is expanded alone", "changed rows only"),
    ),
    case(
        "aggregate over aggregate",
        """
        SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) GROUP BY n
        """,
        NESTED,
    ),
    case(
        "aggregate over aggregate over aggregate",
        """
        SELECT max(total) AS best, avg(total) AS middle, count(*) AS groups
        FROM (
          SELECT n, sum(s) AS total
          FROM (SELECT customer, status, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer, status)
          GROUP BY n
        )
        """,
        NESTED,
    ),
    case(
        "aggregate of distinct values of an aggregate",
        "SELECT m, count(DISTINCT n) AS k FROM (SELECT k, max(v) AS m, count(*) AS n FROM bag_a GROUP BY k) GROUP BY m",
        NESTED,
    ),
    case(
        "aggregate over an aggregate joined to its detail",
        """
        SELECT o.status, count(*) AS n, sum(g.s) AS s
        FROM orders o JOIN (SELECT order_id, sum(qty) AS s FROM items GROUP BY order_id) g ON g.order_id = o.id
        GROUP BY o.status
        """,
        NESTED,
    ),
    case(
        "an unused column changes, and groups where all cancels",
        "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
        ADDITIVE,
        rounds=(
            step("an unused column changes", orders=([_ADA], [(*_ADA[:3], "void", None)])),
            step("one comes and one goes in a group", orders=([_BO], [(30, *_BO[1:])])),
            Round(
                "come, changed and gone between two refreshes",
                (
                    {"orders": Change(inserts=((40, *_BO[1:]),))},
                    {"orders": Change(deletes=((40, *_BO[1:]),), inserts=((40, "Zoe", *_BO[2:]),))},
                    {"orders": Change(deletes=((40, "Zoe", *_BO[2:]),))},
                ),
            ),
            step("a group comes", orders=([], [(41, "Zoe", *_BO[2:])])),
            step("a group goes, another grows", orders=([(41, "Zoe", *_BO[2:])], [(42, "Ada", *_BO[2:])])),
        ),
        constant=True,
    ),
    # User-defined.
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

CASES: tuple[Case, ...] = (*(_case_of(function) for function in FUNCTIONS), *CONSTRUCTS)
