"""Status, history and lineage of stream tables in a session, and of the same tables without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.api import Trickle
from trickle.errors import DefinitionError, UnknownTableError
from trickle.observe.observer import Observer
from trickle.observe.places import warehouse_places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[Trickle]:
    """A table over orders and one over that."""
    spark.sql("CREATE SCHEMA observed")
    spark.sql("CREATE TABLE observed.orders (day INT, amount INT, note STRING) USING delta")
    spark.sql("INSERT INTO observed.orders VALUES (1, 10, 'a'), (2, 20, 'b')")
    t = Trickle(spark)
    t.create("observed.daily", "SELECT day, sum(amount) AS total FROM observed.orders GROUP BY day", schedule="1h")
    t.create("observed.best", "SELECT max(total) AS most FROM observed.daily")
    yield t
    spark.sql("DROP SCHEMA observed CASCADE")


def test_a_session_and_the_logs_alone_tell_the_same(shop, spark, warehouse_folder: Path):
    spark.sql("INSERT INTO observed.orders VALUES (2, 5, 'c')")
    behind = {status.table: status for status in shop.status() if status.table.startswith("observed.")}
    report = shop.refresh("observed.daily")

    assert behind["observed.daily"].health == behind["observed.best"].health == "behind"
    assert [lag.commits for lag in behind["observed.daily"].sources] == [1]
    (now,) = shop.status("observed.daily")
    assert (now.health, now.version, now.schedule) == ("ok", report.version, "1h")
    assert now.next_due is not None
    newest, first = shop.history("observed.daily", limit=2)
    assert (newest.version, newest.mode) == (report.version, "differential")
    assert (newest.rows_inserted, newest.rows_deleted) == (report.rows_inserted, report.rows_deleted) == (1, 1)
    assert newest.seconds is not None
    assert 0 < newest.seconds <= report.seconds
    assert "look" in newest.steps
    assert (first.mode, first.rows_inserted) == ("full", 2)
    assert (newest.trigger, first.trigger) == ("manual", "creation")
    assert dict(newest.frontier) == dict(report.frontier)

    alone = Observer(warehouse_places(str(warehouse_folder)))
    assert alone.history("observed.daily", 2) == (newest, first)
    assert {(s.table, s.health, s.sources) for s in alone.status() if s.table.startswith("observed.")} == {
        (s.table, s.health, s.sources) for s in shop.status() if s.table.startswith("observed.")
    }
    assert alone.lineage("observed.daily") == shop.lineage("observed.daily")


def test_the_columns_that_a_query_reads_are_in_its_lineage(shop):
    assert shop.lineage("observed.best").to_text().split("\n") == [
        "observed.best",
        "└─ observed.daily: total",
        "   └─ observed.orders (base): day, amount",
    ]


def test_what_is_no_stream_table_has_no_history(shop):
    for name in ("observed.orders", "observed.nothing"):
        with pytest.raises(UnknownTableError, match="UNKNOWN_TABLE"):
            shop.history(name)
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        shop.history("observed.daily", limit=0)
