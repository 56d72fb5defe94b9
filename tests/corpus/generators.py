"""Generators and table functions: what makes rows of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .case import Case, Way, case
from .lateral import EXPANDED, JOINED, PADDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPANDED_AGGREGATED = Way(
    "changed rows are expanded, then the touched groups are maintained as any aggregate", "see the aggregate"
)


def register_range_udtf(spark: SparkSession) -> None:
    """Register ``countdown(n)``: n, n-1, … 1."""
    from pyspark.sql.functions import udtf

    class Countdown:
        def eval(self, start: int | None):
            for left in range(start or 0, 0, -1):
                yield left, left % 2 == 0

    spark.udtf.register("countdown", udtf(Countdown, returnType="remaining INT, is_even BOOLEAN").asDeterministic())


CASES: tuple[Case, ...] = (
    case(
        "LATERAL VIEW explode",
        "SELECT id, tag FROM docs LATERAL VIEW explode(tags) t AS tag",
        EXPANDED,
    ),
    case(
        "LATERAL VIEW OUTER explode",
        "SELECT id, tag FROM docs LATERAL VIEW OUTER explode(tags) t AS tag",
        EXPANDED,
    ),
    case(
        "LATERAL VIEW posexplode",
        "SELECT id, at_, tag FROM docs LATERAL VIEW posexplode(tags) t AS at_, tag",
        EXPANDED,
    ),
    case(
        "LATERAL VIEW OUTER posexplode",
        "SELECT id, at_, tag FROM docs LATERAL VIEW OUTER posexplode(tags) t AS at_, tag WHERE id < 200",
        EXPANDED,
    ),
    case(
        "posexplode_outer in the SELECT list",
        "SELECT id, posexplode_outer(tags) AS (at_, tag) FROM docs",
        EXPANDED,
    ),
    case(
        "LATERAL VIEW inline",
        "SELECT id, sku, qty FROM docs LATERAL VIEW inline(parts) t AS sku, qty",
        EXPANDED,
    ),
    case(
        "inline_outer in the SELECT list",
        "SELECT id, inline_outer(parts) FROM docs",
        EXPANDED,
    ),
    case(
        "explode in the SELECT list",
        "SELECT id, explode(tags) AS tag FROM docs",
        EXPANDED,
    ),
    case(
        "explode_outer of an expression",
        "SELECT id, explode_outer(split(body, ',')) AS piece FROM docs",
        EXPANDED,
    ),
    case(
        "explode of a map",
        "SELECT id, name, setting FROM prefs LATERAL VIEW explode(options) t AS name, setting",
        EXPANDED,
    ),
    case(
        "json_tuple in LATERAL VIEW",
        "SELECT id, who, n FROM docs LATERAL VIEW json_tuple(body, 'user', 'n') t AS who, n",
        EXPANDED,
    ),
    case(
        "stack in LATERAL VIEW",
        """
        SELECT sensor, quarter, val FROM readings
        LATERAL VIEW stack(3, 'q1', q1, 'q2', q2, 'q3', q3) t AS quarter, val
        """,
        EXPANDED,
    ),
    case(
        "stack in the SELECT list",
        "SELECT sensor, stack(2, 'first', q1, 'last', q3) AS (which, val) FROM readings",
        EXPANDED,
    ),
    case(
        "sequence of numbers exploded",
        "SELECT id, n FROM docs LATERAL VIEW explode(sequence(span.lo, span.hi)) t AS n",
        EXPANDED,
    ),
    case(
        "sequence of days exploded",
        """
        SELECT product, day, price
        FROM prices LATERAL VIEW explode(
          sequence(greatest(since, DATE '2024-01-01'), least(coalesce(until, DATE '2024-01-06'), DATE '2024-01-06'))
        ) t AS day
        WHERE since <= coalesce(until, DATE '2024-01-06')
        """,
        EXPANDED,
    ),
    case(
        "two LATERAL VIEWs multiply",
        """
        SELECT id, tag, sku FROM docs LATERAL VIEW explode(tags) t AS tag
        LATERAL VIEW OUTER inline(parts) p AS sku, qty
        """,
        EXPANDED,
    ),
    case(
        "LATERAL VIEW that uses another's column",
        """
        SELECT id, tag, letter
        FROM docs LATERAL VIEW explode(tags) t AS tag LATERAL VIEW explode(split(tag, '')) l AS letter
        """,
        EXPANDED,
    ),
    case(
        "generator as a LATERAL table function",
        "SELECT d.id, t.tag FROM docs d, LATERAL explode(d.tags) AS t(tag)",
        EXPANDED,
    ),
    case(
        "LEFT JOIN LATERAL of a generator",
        "SELECT d.id, t.sku, t.qty FROM docs d LEFT JOIN LATERAL inline(d.parts) AS t(sku, qty) ON t.qty > 1",
        PADDED,
    ),
    case(
        "posexplode as a LATERAL table function",
        "SELECT d.id, t.at_, t.tag FROM docs d JOIN LATERAL posexplode(d.tags) AS t(at_, tag) ON t.at_ < 2",
        EXPANDED,
    ),
    case(
        "range table function beside a table",
        "SELECT a.k, a.v, r.id AS n FROM bag_a a JOIN range(4) r ON r.id < a.k",
        JOINED,
    ),
    case(
        "JSON array of objects by from_json and inline, aggregated",
        """
        SELECT who, sku, count(*) AS n, sum(qty) AS q
        FROM (
          SELECT get_json_object(body, '$.user') AS who,
                 inline(from_json(get_json_object(body, '$.lines'), 'ARRAY<STRUCT<sku: STRING, qty: INT>>'))
          FROM docs
        )
        GROUP BY who, sku
        """,
        EXPANDED_AGGREGATED,
    ),
    case(
        "JSON lines joined to a table",
        """
        SELECT d.id, l.sku, l.qty * p.price AS line
        FROM docs d
        JOIN LATERAL inline(from_json(d.body, 'lines ARRAY<STRUCT<sku: STRING, qty: INT>>').lines) AS l(sku, qty)
        JOIN prices p ON p.product = l.sku AND p.until IS NULL
        """,
        EXPANDED,
    ),
    case(
        "variant_explode",
        """
        SELECT d.id, v.pos, v.value:sku::STRING AS sku, v.value:qty::INT AS qty
        FROM docs d, LATERAL variant_explode(variant_get(parse_json(d.body), '$.lines')) AS v
        """,
        EXPANDED,
    ),
    case(
        "variant_explode_outer",
        """
        SELECT d.id, v.key, cast(v.value AS STRING) AS val
        FROM docs d, LATERAL variant_explode_outer(parse_json(d.body)) AS v
        WHERE v.key IS NULL OR v.key <> 'lines'
        """,
        EXPANDED,
    ),
    case(
        "exploded rows counted per element",
        """
        SELECT tag, count(*) AS n, count(DISTINCT id) AS docs_with FROM docs LATERAL VIEW explode(tags) t AS tag
        GROUP BY tag
        """,
        EXPANDED_AGGREGATED,
    ),
    case(
        "explode over an aggregate",
        "SELECT k, explode(vs) AS v FROM (SELECT k, sort_array(collect_set(v)) AS vs FROM bag_a GROUP BY k)",
        EXPANDED_AGGREGATED,
    ),
    case(
        "Python UDTF with a LATERAL argument",
        "SELECT a.k, a.v, t.remaining, t.is_even FROM bag_a a, LATERAL countdown(a.k) t",
        EXPANDED,
        register=register_range_udtf,
        limits="the function must be declared deterministic and be free of state between rows",
    ),
)
