"""Every aggregate function of the registry, each by one example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .case import Case, Way, case

ADDITIVE = Way(
    "counts, sums and averages of integers and decimals are stored and added to; with any other function beside them "
    "the touched groups are recomputed",
    "nothing if sums are stored, else rows of the touched groups",
)
EXTREME = Way("the touched groups are recomputed", "rows of the touched groups")
RESCAN = Way("the touched groups are recomputed", "rows of the touched groups")
EXPANDED = Way("each row goes to every grouping set, then as any aggregate", "rows of the touched groups in every set")


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
_FLOATS: Final = "computed in floating point: its last digits depend on the order of rows"
ORDER: Final = "depends on the order of rows; the engine orders by all columns"
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
    Function("any_value", "some value of the group", "any_value(order_id)", RESCAN, fixed_order=True, limits=ORDER),
    Function("first", "the first value", "first(qty)", RESCAN, fixed_order=True, limits=ORDER),
    Function("first_value", "the first value", "first_value(order_id, true)", RESCAN, fixed_order=True, limits=ORDER),
    Function("last", "the last value", "last(qty)", RESCAN, fixed_order=True, limits=ORDER),
    Function("last_value", "the last value", "last_value(order_id, true)", RESCAN, fixed_order=True, limits=ORDER),
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
        "max_by", "a value at the largest other", "max_by(who, id)", RESCAN, "events", "kind", limits="ties: " + ORDER
    ),
    Function("bit_and", "all values and-ed bitwise", "bit_and(qty)", RESCAN),
    Function("bit_or", "all values or-ed bitwise", "bit_or(qty)", RESCAN),
    Function("bit_xor", "all values xor-ed bitwise", "bit_xor(qty)", ADDITIVE),
    Function("collect_list", "the values as an array", "collect_list(qty)", RESCAN, fixed_order=True, limits=ORDER),
    Function("array_agg", "the values as an array", "array_agg(order_id)", RESCAN, fixed_order=True, limits=ORDER),
    Function(
        "collect_set", "the distinct values as an array", "collect_set(qty)", RESCAN, fixed_order=True, limits=ORDER
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
    Function("stddev", "the sample standard deviation", "stddev(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("std", "the sample standard deviation", "std(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function(
        "stddev_samp", "the sample standard deviation", "stddev_samp(qty)", RESCAN, approximate=True, limits=_FLOATS
    ),
    Function("stddev_pop", "the standard deviation", "stddev_pop(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("variance", "the sample variance", "variance(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("var_samp", "the sample variance", "var_samp(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("var_pop", "the variance", "var_pop(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("skewness", "the third standardised moment", "skewness(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("kurtosis", "the fourth standardised moment", "kurtosis(qty)", RESCAN, approximate=True, limits=_FLOATS),
    Function("corr", "the correlation", "corr(y, x)", RESCAN, _SPREAD, approximate=True, limits=_FLOATS),
    Function("covar_pop", "the covariance", "covar_pop(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
    Function("covar_samp", "the sample covariance", "covar_samp(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
    Function("regr_avgx", "the mean of x where both are set", "regr_avgx(y, x)", ADDITIVE, _XY, approximate=True),
    Function("regr_avgy", "the mean of y where both are set", "regr_avgy(y, x)", ADDITIVE, _XY, approximate=True),
    Function("regr_count", "the number of pairs", "regr_count(y, x)", ADDITIVE, _XY),
    Function(
        "regr_intercept",
        "where the fitted line starts",
        "regr_intercept(y, x)",
        RESCAN,
        _XY,
        approximate=True,
        limits=_FLOATS,
    ),
    Function("regr_r2", "how well the line fits", "regr_r2(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
    Function(
        "regr_slope",
        "the slope of the fitted line",
        "regr_slope(y, x)",
        RESCAN,
        _XY,
        approximate=True,
        limits=_FLOATS,
    ),
    Function("regr_sxx", "the squared spread of x", "regr_sxx(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
    Function("regr_sxy", "the joint spread", "regr_sxy(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
    Function("regr_syy", "the squared spread of y", "regr_syy(y, x)", RESCAN, _XY, approximate=True, limits=_FLOATS),
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


CASES: tuple[Case, ...] = tuple(_case_of(function) for function in FUNCTIONS)
