"""Arrays and structs that a query carries along: the driver reads, nets, finds and commits them, without a Spark job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle import Trickle
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.testing.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

COLUMNS = (
    "id BIGINT, o BIGINT, tags ARRAY<STRING>, parts ARRAY<STRUCT<sku: STRING, qty: INT>>, span STRUCT<lo: INT, hi: INT>"
)

KINDS = {
    "feed": "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "no feed": "",
    "deletion vectors": "TBLPROPERTIES (delta.enableDeletionVectors = true)",
    "partitioned, no feed": "PARTITIONED BY (o)",
}

QUERIES = {
    "filter": "SELECT id, tags, parts, span FROM docs WHERE id % 3 <> 0",
    "join": "SELECT c, id, tags, span FROM docs JOIN orders USING (o)",
    "left_join": "SELECT x.o, c, tags, parts FROM orders AS x LEFT JOIN docs AS d ON x.o = d.o AND d.id > 4",
    "union_all": "SELECT id, tags, span FROM docs UNION ALL SELECT c, array(CAST(o AS STRING), NULL), NULL FROM orders",
    "distinct_rows": "SELECT DISTINCT tags, span FROM docs",
    "top": "SELECT o, tags FROM docs ORDER BY o DESC, tags LIMIT 7",
    "ranked": "SELECT o, tags, id FROM (SELECT o, tags, id, row_number() OVER (PARTITION BY o ORDER BY tags DESC, id) AS n "
    "FROM docs) WHERE n <= 2",
    "grouped": "SELECT tags, count(*) AS n, sum(o) AS s FROM docs GROUP BY tags",
    "later_field": "SELECT id, span.hi AS hi, parts.qty AS qty FROM docs WHERE coalesce(span.hi, 0) <> 1",
    "field": "SELECT id, span.lo + 1 AS lo, size(tags) AS n, parts[0].sku AS sku FROM docs",
}

TAGS = "element_at(array(array('a'), array('b', NULL), array(), NULL, array('a', 'b')), CAST(id % 5 + 1 AS INT))"
PARTS = "IF(id % 4 = 0, NULL, array(named_struct('sku', concat('s', id % 3), 'qty', CAST(id % 2 AS INT)), NULL))"
SPAN = "IF(id % 6 = 1, NULL, named_struct('lo', CAST(id % 3 AS INT), 'hi', CAST(nullif(id % 5, 2) AS INT)))"
ROWS = f"SELECT id, id % 5 AS o, {TAGS} AS tags, {PARTS} AS parts, {SPAN} AS span"

CHANGES = (
    "UPDATE docs SET tags = array('new', NULL), parts = NULL WHERE id % 7 = 2",
    "DELETE FROM docs WHERE id IN (3, 8, 14)",
    f"INSERT INTO docs {ROWS} FROM range(24, 31)",
    "UPDATE docs SET span = named_struct('lo', 9, 'hi', 9) WHERE id = 5",
    "UPDATE orders SET c = c + 1 WHERE o = 2",
    "INSERT INTO docs SELECT id, o, tags, parts, span FROM docs WHERE id < 3",
)


@pytest.fixture
def place(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE nested_columns")
    spark.sql("USE nested_columns")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE nested_columns CASCADE")


def make(spark: SparkSession, kind: str) -> None:
    spark.sql(f"CREATE TABLE docs ({COLUMNS}) USING delta {KINDS[kind]}")
    spark.sql(f"INSERT INTO docs {ROWS} FROM range(24)")
    spark.sql("CREATE TABLE orders USING delta AS SELECT id AS o, id * 10 AS c FROM range(6)")


QUICK = {("feed", "default")}
CASES = [
    pytest.param(kind, regime, marks=() if (kind, regime) in QUICK else pytest.mark.slow)
    for kind in KINDS
    for regime in REGIMES
]


@pytest.mark.parametrize(("kind", "regime"), CASES)
def test_carried_columns_are_maintained(spark: SparkSession, place: None, kind: str, regime: str) -> None:
    make(spark, kind)
    trickle = Trickle(spark, options=REGIMES[regime])
    for name, query in QUERIES.items():
        trickle.create(name, query, mode="differential")

    tracker, with_jobs = spark.sparkContext.statusTracker(), set()

    for change in CHANGES:
        spark.sql(change)
        CHECKPOINTS.finish()
        for name in QUERIES:
            before = set(tracker.getJobIdsForGroup())
            assert trickle.refresh(name).mode in ("differential", "no_data"), name
            if set(tracker.getJobIdsForGroup()) - before:
                with_jobs.add((name, change))
    for name in QUERIES:
        verified = trickle.verify(name)
        assert verified.ok, (name, verified)
    assert regime != "default" or not with_jobs
