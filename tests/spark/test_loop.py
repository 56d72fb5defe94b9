"""Tables are refreshed by themselves: by the clock, on commit, as their readers need."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from trickle import DefinitionError, Trickle
from trickle.schedule.lease import Lease, open_lease
from trickle.schedule.loop import Loop

SECONDS = 60.0


@pytest.fixture(scope="module")
def tables(spark):
    spark.sql("CREATE DATABASE looped")
    spark.sql("USE looped")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount BIGINT) USING delta")
    spark.sql("INSERT INTO orders VALUES (1,'ann',10)")
    trickle = Trickle(spark)
    trickle.create("sums", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer", schedule="downstream")
    trickle.create("largest", "SELECT max(total) AS largest FROM sums", schedule="on commit")
    trickle.create("counts", "SELECT count(*) AS n FROM orders", schedule="200ms")
    trickle.create("by_hand", "SELECT count(*) AS n FROM orders")
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE looped CASCADE")


def wait_for(condition):
    """Wait until something holds; what never does fails the test."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def one(spark, name):
    return spark.table(f"looped.{name}").first()[0]


def test_schedules_are_stored_in_one_form(tables):
    assert tables.table("looped.counts").definition.schedule == "200ms"
    assert tables.table("looped.largest").definition.schedule == "on commit"
    assert tables.table("looped.by_hand").definition.schedule is None


def test_a_bad_schedule_makes_nothing(spark, tables):
    spark.sql("USE looped")
    with pytest.raises(DefinitionError) as caught:
        tables.create("odd", "SELECT count(*) AS n FROM orders", schedule="now and then")

    assert caught.value.code == "BAD_SCHEDULE"
    assert not spark.catalog.tableExists("looped.odd")


def test_the_loop_follows_the_clock_commits_and_readers(spark, tables):
    by_hand = one(spark, "by_hand")
    with tables.start() as running:
        assert running.is_running
        for number in range(3):
            spark.sql(f"INSERT INTO looped.orders VALUES ({10 + number}, 'bob', {100 * (number + 1)})")
            rows = spark.table("looped.orders").count()
            total = spark.sql("SELECT max(s) FROM (SELECT sum(amount) AS s FROM looped.orders GROUP BY customer)")
            largest = total.first()[0]
            wait_for(lambda rows=rows: one(spark, "counts") == rows)
            wait_for(lambda largest=largest: one(spark, "largest") == largest)

    assert not running.is_running
    assert one(spark, "by_hand") == by_hand
    assert all(tables.verify(f"looped.{name}") for name in ("sums", "largest", "counts"))


def test_an_idle_tick_writes_nothing(spark, tables):
    tables.refresh_all()
    loop = Loop(tables._engine)
    loop.tick()
    before = [spark.sql(f"DESCRIBE HISTORY looped.{name}").count() for name in ("sums", "largest", "counts")]

    for _ in range(3):
        loop.tick()
        time.sleep(0.25)

    assert [spark.sql(f"DESCRIBE HISTORY looped.{name}").count() for name in ("sums", "largest", "counts")] == before


def test_of_two_loops_one_leads_and_the_other_follows_when_it_stops(spark, tables):
    reports: list[str] = []
    folder = open_lease(spark).folder
    first, second = (Lease(folder, 3.0) for _ in range(2))
    loops = [
        Loop(tables._engine, lease=lease, on_run=lambda _, n=name: reports.append(n))
        for name, lease in (("first", first), ("second", second))
    ]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    threads[0].start()
    wait_for(lambda: first.is_held)
    threads[1].start()
    wait_for(lambda: len(reports) >= 2)
    assert set(reports) == {"first"}

    loops[0].stop()
    threads[0].join()
    reports.clear()

    wait_for(lambda: "second" in reports)
    assert set(reports) == {"second"}
    loops[1].stop()
    threads[1].join()
    assert first.holder() is None


def test_a_failing_table_is_tried_again_later_and_stops_no_other(spark, tables):
    spark.sql("USE looped")
    tables.create("ratio", "SELECT id, 100 / (amount - 7) AS ratio FROM orders", schedule="on commit")
    with tables.start():
        spark.sql("INSERT INTO looped.orders VALUES (50, 'eve', 7)")
        rows = spark.table("looped.orders").count()
        wait_for(lambda: one(spark, "counts") == rows)
        spark.sql("DELETE FROM looped.orders WHERE amount = 7")
        spark.sql("INSERT INTO looped.orders VALUES (51, 'eve', 8)")
        wait_for(lambda: spark.table("looped.ratio").where("id = 51").count() == 1)
    tables.drop("looped.ratio")


def test_a_signal_ends_the_loop_cleanly(spark, tables):
    spark.sql("INSERT INTO looped.orders VALUES (60, 'eve', 9)")
    began = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()

    tables.run(until=datetime.now(UTC) + timedelta(seconds=SECONDS))

    assert 1.0 <= time.monotonic() - began < SECONDS / 2
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert all(tables.verify(f"looped.{name}") for name in ("sums", "largest", "counts"))


@pytest.mark.parametrize("until", [datetime(2020, 1, 1), "now", 5])
def test_what_is_no_moment_is_refused(tables, until):
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        tables.run(until=until)


def test_the_loop_ends_at_a_moment(tables):
    tables.refresh_all()
    began = time.monotonic()

    tables.run(until=datetime.now(UTC) + timedelta(seconds=0.5))

    assert 0.5 <= time.monotonic() - began < 10
