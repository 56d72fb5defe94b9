"""Queries that read parts of nested values and variants: Spark's optimiser likes to narrow what a scan gives to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from trickle import Trickle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "field": "SELECT id, s.b FROM parts_of",
    "field of a field": "SELECT id, s.inner.y FROM parts_of WHERE s.inner.x > 0",
    "fields of an array": "SELECT id, items.price FROM parts_of",
    "field of an element": "SELECT id, items[0].price AS p FROM parts_of",
    "exploded field": "SELECT id, i.price, count(*) AS n FROM parts_of LATERAL VIEW explode(items) e AS i GROUP BY id, i.price",
    "field of a map's value": "SELECT id, m['k'].b AS b FROM parts_of",
    "keys of a map": "SELECT id, size(map_keys(m)) AS n FROM parts_of WHERE m['k'].a IS NOT NULL",
    "path of a variant": "SELECT id, variant_get(v, '$.b', 'string') AS b FROM parts_of",
    "paths of a variant, grouped": """SELECT variant_get(v, '$.a', 'int') AS a, count(*) AS n FROM parts_of
        WHERE variant_get(v, '$.b', 'string') = 'x' GROUP BY ALL""",
    "variant in a struct": "SELECT id, s.a, variant_get(s.v, '$.c', 'int') AS c FROM parts_of",
    "whole and part": "SELECT id, s.b, to_json(s.inner) AS j, cast(v AS string) AS t FROM parts_of",
    "join by a part": """SELECT l.id, r.s.inner.y AS y FROM parts_of l
        JOIN parts_of r ON l.s.b = r.s.inner.z AND variant_get(r.v, '$.a', 'int') >= 1""",
    "exists by a part": """SELECT id, s.b FROM parts_of l
        WHERE EXISTS (SELECT 1 FROM parts_of r WHERE r.s.inner.z = l.s.b AND r.items[0].price > 1)""",
    "sum of a part": "SELECT s.b, sum(s.inner.y) AS y, max(items[0].price) AS p FROM parts_of GROUP BY s.b",
    "window over a part": "SELECT id, rank() OVER (PARTITION BY s.b ORDER BY s.inner.y, id) AS r FROM parts_of",
}

ROW = """SELECT {n} AS id,
    named_struct('a', {n}, 'b', 'x{m}', 'inner', named_struct('x', {n} % 3, 'y', {n} * 10, 'z', 'x{n}'),
                 'v', parse_json('{{"c": {n}}}')) AS s,
    array(named_struct('name', 'i{n}', 'price', {n} + 1), named_struct('name', 'j', 'price', 2)) AS items,
    map('k', named_struct('a', {n}, 'b', 'm{n}')) AS m,
    parse_json('{{"a": {n}, "b": "x"}}') AS v"""


def row(number: int) -> str:
    return ROW.format(n=number, m=number % 2)


def test_parts_are_those_that_the_query_names(spark: SparkSession) -> None:
    properties = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(f"CREATE TABLE parts_of USING delta {properties} AS {row(0)} UNION ALL {row(1)}")
    trickle = Trickle(spark)
    for number, query in enumerate(QUERIES.values()):
        trickle.create(f"of_parts_{number}", query, mode="differential")
    spark.sql(f"INSERT INTO parts_of {row(2)} UNION ALL {row(3)}")
    spark.sql("UPDATE parts_of SET s.inner.y = 7, items = slice(items, 1, 1) WHERE id IN (1, 3)")

    for number, query in enumerate(QUERIES.values()):
        report = trickle.refresh(f"of_parts_{number}")

        assert report.mode == "differential", query
        assert bag(spark, f"SELECT * FROM of_parts_{number}") == bag(spark, query), query


def bag(spark: SparkSession, query: str) -> Counter[Any]:
    return Counter(str(row) for row in spark.sql(query).collect())
