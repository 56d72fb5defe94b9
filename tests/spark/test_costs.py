"""What mode auto learns reaches the next process: it is in the commit that it is about."""

from __future__ import annotations

import pytest

from trickle import Trickle
from trickle.refresh.record import read_record
from trickle.refresh.stopwatch import Stopwatch


@pytest.fixture
def shop(spark):
    spark.sql("CREATE DATABASE learning")
    spark.sql("USE learning")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING) USING delta")
    spark.sql("INSERT INTO orders VALUES (1, 'ann'), (2, 'bob')")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE learning CASCADE")


def costs(trickle, name):
    target = trickle._engine.tables.get(trickle._engine.qualify(name)).target
    return read_record(name, target.state()).costs


def test_a_process_that_refreshes_once_teaches_the_next(spark, shop, monkeypatch):
    monkeypatch.setattr(Stopwatch, "seconds", 100.0)
    Trickle(spark).create("copies", "SELECT id, customer FROM orders")
    assert costs(Trickle(spark), "copies").full == 75.0  # of a process's first, a part counts

    # A process each, as an orchestrator starts them.
    for number, seconds in ((10, 300.0), (11, 300.0)):
        monkeypatch.setattr(Stopwatch, "seconds", seconds)
        spark.sql(f"INSERT INTO orders VALUES ({number}, 'zoe')")
        report = Trickle(spark).refresh("copies")
        known = costs(Trickle(spark), "copies").known
        if number == 10:
            assert report.mode == "differential"
            assert [(point.change.sources, point.seconds) for point in known] == [(("orders",), 150.0)]
    assert (report.mode, report.reason.code) == ("full", "COST")
    assert costs(Trickle(spark), "copies").full == 225.0


def test_a_full_refresh_that_was_asked_for_forgets_nothing(spark, shop):
    Trickle(spark).create("copies", "SELECT id, customer FROM orders")
    spark.sql("INSERT INTO orders VALUES (10, 'zoe')")
    Trickle(spark).refresh("copies")
    (before,) = costs(Trickle(spark), "copies").known

    Trickle(spark).refresh("copies", full=True)

    assert costs(Trickle(spark), "copies").known == (before,)
