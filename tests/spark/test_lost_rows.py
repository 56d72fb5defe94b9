"""Rows that a look-up partly remembers all reach Spark, which drops what comes after an empty chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle import Trickle
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.source import DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 60_000
"""More than are read whole, so that rows are looked up."""

QUERY = """
    SELECT o.id, c.name, l.v FROM orders o JOIN customers c ON o.c = c.id JOIN lines l ON l.o = o.id
    WHERE l.v > (SELECT avg(v) FROM lines)
"""


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    made = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql("DROP SCHEMA IF EXISTS lost CASCADE")
    spark.sql("CREATE SCHEMA lost")
    spark.sql("USE lost")
    spark.sql(
        f"CREATE TABLE lines {made} AS SELECT id % 20000 AS o, CAST(id AS DOUBLE) AS v FROM range(0, {LINES}, 1, 2)"
    )
    spark.sql(f"CREATE TABLE orders {made} AS SELECT id, id % 3 AS c FROM range(5)")
    spark.sql(f"CREATE TABLE customers {made} AS SELECT id, concat('n', id) AS name FROM range(3)")
    yield spark
    spark.sql("USE default")
    spark.sql("DROP SCHEMA lost CASCADE")


def test_no_row_is_lost_if_half_of_the_keys_are_known(tables: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[list[int]] = []
    find, search = DeltaSource.find, Finder.find

    def noted(self, version, columns, keys):
        counts.append([sum(map(len, keys.values())), 0])
        return find(self, version, columns, keys)

    def counted(self, paths, fields, keys, **more):
        counts[-1][1] += sum(map(len, keys.values()))
        return search(self, paths, fields, keys, **more)

    monkeypatch.setattr(DeltaSource, "find", noted)
    monkeypatch.setattr(Finder, "find", counted)
    trickle = Trickle(tables)
    trickle.create("result", QUERY, mode="differential")

    for start, end in ((100, 120), (110, 130), (105, 135)):
        tables.sql(
            f"MERGE INTO orders USING (SELECT id FROM range({start}, {end})) AS r ON orders.id = r.id "
            "WHEN MATCHED THEN UPDATE SET c = (c + 1) % 3 WHEN NOT MATCHED THEN INSERT (id, c) VALUES (r.id, 0)"
        )
        assert trickle.refresh("result").mode == "differential"
        report = trickle.verify("result")
        assert report.ok, report
    assert any(0 < searched < asked for asked, searched in counts)
