"""When things go wrong: suspended tables, failures in the loop, hooks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trickle import CancelledError, DefinitionError, Options, StateError, SuspendedError, Trickle, UnknownTableError
from trickle.model.events import RefreshFailed, Resumed, Suspended
from trickle.refresh.request import Request
from trickle.schedule.loop import Loop

SECONDS = 60.0
TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture(scope="module")
def failing(spark):
    spark.sql("CREATE DATABASE failing")
    spark.sql("USE failing")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount BIGINT) USING delta")
    spark.sql("INSERT INTO orders VALUES (1,'ann',10),(2,'bob',20)")
    trickle = Trickle(spark)
    trickle.create("totals", TOTALS)
    trickle.create("both", "SELECT o.id, t.total FROM orders o JOIN totals t ON o.customer = t.customer")
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE failing CASCADE")


@pytest.fixture
def shop(spark, failing):
    spark.sql("USE failing")
    return failing


def rows(spark, name):
    return sorted((tuple(r) for r in spark.table(name).collect()), key=repr)


def order(spark, *values):
    spark.sql(f"INSERT INTO orders VALUES {', '.join(map(str, values))}")


def wait_for(condition, do):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        do()
        time.sleep(0.05)


def suspension(shop, name):
    return shop._engine.suspensions.find(name, shop._engine.catalog.location(name))


def test_a_suspended_table_is_passed_over_until_it_is_resumed(spark, shop):
    heard = []
    for kind in (Suspended, Resumed):
        shop.events.on(kind, heard.append)
    before = rows(spark, "totals")

    made = shop.suspend("totals", reason='it\'s "being" repaired')
    assert shop.suspend("totals") == made
    order(spark, (3, "ann", 5))
    report = shop.refresh_all()

    assert (made.cause, made.message) == ("user", 'it\'s "being" repaired')
    assert dict(report.skipped) == {"failing.totals": made}
    assert (report.ok, list(report.tables), report.off_cut) == (True, ["failing.both"], ("failing.both",))
    assert rows(spark, "totals") == before
    assert rows(spark, "both") == [(1, 10), (2, 20), (3, 10)]  # new orders, old totals
    for refused in (lambda: shop.refresh("totals"), lambda: shop.refresh_all(["totals"])):
        with pytest.raises(SuspendedError) as caught:
            refused()
        assert caught.value.code == "SUSPENDED"
        assert "resume" in caught.value.hint
    assert suspension(Trickle(spark), "failing.totals") == made  # whoever looks

    shop.table("totals").resume()
    shop.resume("totals")
    report = shop.refresh_all()

    assert (report.skipped, report.off_cut) == ({}, ())
    assert rows(spark, "both") == [(1, 15), (2, 20), (3, 15)]
    assert report.tables["failing.both"].mode == "differential"
    assert [type(event) for event in heard] == [Suspended, Resumed]
    with pytest.raises(UnknownTableError):
        shop.suspend("orders")


def test_the_loop_suspends_what_keeps_failing_and_nothing_else(spark, shop):
    shop.create("ratio", "SELECT id, 100 div amount AS ratio FROM orders", schedule="on commit", suspend_after=2)
    shop.create("counts", "SELECT count(*) AS n FROM orders", schedule="on commit")
    failures = []
    shop.events.on(RefreshFailed, failures.append)
    order(spark, (4, "eve", 0))
    loop = Loop(shop._engine, list_seconds=0.2)

    wait_for(lambda: suspension(shop, "failing.ratio"), loop.tick)

    made = suspension(shop, "failing.ratio")
    assert (made.cause, made.code) == ("failures", "DIVIDE_BY_ZERO")
    assert {event.table for event in failures} == {"failing.ratio"}
    assert len(failures) == 2
    order(spark, (5, "eve", 1))
    wait_for(lambda: rows(spark, "counts") == [(5,)], loop.tick)
    assert len(failures) == 2

    spark.sql("DELETE FROM orders WHERE amount = 0")
    shop.resume("ratio")
    wait_for(lambda: len(rows(spark, "ratio")) == 4, loop.tick)
    shop.drop("ratio")
    shop.drop("counts")


@pytest.fixture
def fused(spark, shop):
    shop.create("fused", "SELECT id, amount FROM orders", max_change_rows=3)
    yield shop
    shop.drop("fused")


def blow(spark, shop, name="fused"):
    """Change more rows than the fuse lets through."""
    start = spark.sql("SELECT max(id) FROM orders").first()[0] + 1
    order(spark, *((start + n, "eve", 1) for n in range(4)))
    version = head(spark, name)
    with pytest.raises(SuspendedError) as caught:
        shop.refresh(name)
    assert caught.value.code == "FUSE_BLOWN"
    assert (head(spark, name), spark.table(name).where(f"id >= {start}").count()) == (version + 1, 0)  # the suspension
    return start


def head(spark, name):
    return spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()["version"]


def test_a_change_that_blows_the_fuse_waits_until_it_is_applied(spark, fused):
    order(spark, (100, "eve", 1))
    assert fused.refresh("fused").rows_inserted == 1
    blow(spark, fused)
    order(spark, *((200 + n, "eve", 1) for n in range(4)))  # came later: it is not part of the change that waits

    with pytest.raises(SuspendedError, match="SUSPENDED"):
        fused.refresh("fused")
    assert fused.refresh_all().skipped["failing.fused"].cause == "fuse"
    report = fused.resume("fused", apply=True)

    assert (report.mode, report.rows_inserted, report.warnings) == ("differential", 4, ())
    with pytest.raises(SuspendedError, match="FUSE_BLOWN"):
        fused.refresh("fused")
    assert fused.resume("fused", full=True).mode == "full"
    assert fused.verify("fused")
    with pytest.raises(StateError, match="NO_CHANGE_WAITS"):
        fused.resume("fused", apply=True)
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        fused.resume("fused", full=True, skip=True)


def test_a_change_that_is_skipped_is_told_until_all_rows_are_recomputed(spark, fused):
    start = blow(spark, fused)

    report = fused.resume("fused", skip=True)

    assert (report.rows_inserted, [w.code for w in report.warnings]) == (0, ["CHANGE_SKIPPED"])
    assert fused.verify("fused").missing == 4
    order(spark, (start + 100, "eve", 1))
    later = fused.refresh("fused")
    assert (later.mode, later.rows_inserted, [w.code for w in later.warnings]) == (
        "differential",
        1,
        ["CHANGE_SKIPPED"],
    )
    fitting, _ = fused.read(["fused", "totals"])
    assert fitting.where(f"id >= {start}").count() == 0  # a cut from before the change was skipped
    assert fused.refresh("fused", full=True).warnings == ()
    assert fused.verify("fused")


def test_a_recompute_blows_the_fuse_only_by_the_rows_that_differ(spark, shop):
    shop.create("whole", "SELECT id, amount FROM orders", mode="full", max_change_ratio=0.25)
    stored = spark.table("whole").count()
    order(spark, (1000, "eve", 1))
    assert (shop.refresh("whole").rows_inserted, stored > 4) == (stored + 1, True)

    spark.sql("DELETE FROM orders WHERE id % 2 = 1")
    with pytest.raises(SuspendedError, match="max_change_ratio"):
        shop.refresh("whole")

    assert spark.table("whole").count() == stored + 1
    shop.resume("whole", apply=True)
    assert shop.verify("whole")
    shop.drop("whole")


def test_a_refresh_past_its_time_is_cancelled_with_its_spark_jobs(spark, shop):
    shop.create("slow", "SELECT id, length(space(cast(id AS INT))) AS n FROM orders")
    version, began = head(spark, "slow"), time.monotonic()
    spark.sql("INSERT INTO orders SELECT 5000 + id, 'slow', 1 FROM range(3)")

    def sleepy(step):
        shop.spark.range(1).rdd.map(lambda _: time.sleep(30)).count()

    with pytest.raises(CancelledError) as caught:
        shop._engine.refresh("slow", Request(timeout=1.0, before_step=sleepy))

    assert caught.value.code == "TIMED_OUT"
    assert time.monotonic() - began < 20
    assert head(spark, "slow") == version
    assert not spark.sparkContext.getJobTags()
    for timeout in (0, -1, "soon", True):
        with pytest.raises(DefinitionError, match="BAD_OPTION"):
            shop.refresh("slow", timeout=timeout)
    assert shop.refresh("slow", timeout="5m").rows_inserted == 3
    shop.drop("slow")


def test_a_refresh_tells_that_its_upstream_is_behind_or_brings_it_up(spark, shop):
    shop.refresh_all()
    order(spark, (6000, "zoe", 1))

    warned = shop.refresh("both")
    assert [w.code for w in warned.warnings] == ["STALE_UPSTREAM"]
    assert "totals" in warned.warnings[0].text
    report = shop.refresh("both", upstream=True)

    assert (report.table, report.warnings) == ("failing.both", ())
    assert shop.refresh("both").warnings == ()
    assert spark.table("both").where("id = 6000 AND total = 1").count() == 1


def test_what_was_written_can_be_read(spark, shop):
    report = shop.write_and_refresh(lambda: order(spark, (7000, "amy", 3)), ["both"])

    assert (report.ok, set(report.tables)) == (True, {"failing.totals", "failing.both"})
    assert spark.table("both").where("id = 7000 AND total = 3").count() == 1
    before = head(spark, "orders")
    shop.suspend("totals")
    with pytest.raises(SuspendedError):
        shop.write_and_refresh(lambda: order(spark, (7001, "amy", 3)), ["both"])
    shop.resume("totals")
    for write, tables in (("INSERT", ["both"]), (lambda: None, None), (lambda: None, "both")):
        with pytest.raises(DefinitionError, match="BAD_OPTION"):
            shop.write_and_refresh(write, tables)
    assert head(spark, "orders") == before


@pytest.mark.slow
@pytest.mark.parametrize("options", [Options(), Options(commit_rows=0, commit_actions=0)], ids=["driver", "spark"])
def test_a_fuse_holds_back_what_state_tables_have_already(spark, shop, options):
    trickle = Trickle(spark, options=options)
    query = "SELECT customer, avg(amount) AS mean, max(amount) AS most FROM orders GROUP BY customer"
    trickle.create("means", query, max_change_rows=2)
    before = rows(spark, "means")
    order(spark, *((8000 + n, f"new{n}-{options.commit_rows}", n) for n in range(4)))
    files = {path.name for path in (warehouse_of(trickle, "failing.means")).glob("*.parquet")}

    with pytest.raises(SuspendedError, match="FUSE_BLOWN"):
        trickle.refresh("means")
    assert rows(spark, "means") == before
    assert {path.name for path in (warehouse_of(trickle, "failing.means")).glob("*.parquet")} == files
    order(spark, (8100, f"later-{options.commit_rows}", 1))
    report = trickle.resume("means", apply=True)

    assert (report.mode, report.rows_inserted) == ("differential", 4)
    assert trickle.refresh("means").rows_inserted == 1
    assert trickle.verify("means")
    order(spark, *((8200 + n, f"more{n}-{options.commit_rows}", n) for n in range(4)))
    with pytest.raises(SuspendedError, match="FUSE_BLOWN"):
        trickle.refresh("means")
    trickle.resume("means", skip=True)
    assert trickle.verify("means").missing == 4
    order(spark, (8300, f"fresh-{options.commit_rows}", 50))
    assert trickle.refresh("means").mode == "differential"
    assert trickle.verify("means").missing == 4
    trickle.refresh("means", full=True)
    assert trickle.verify("means")
    trickle.drop("means")


def warehouse_of(trickle, name):
    return Path(trickle._engine.catalog.location(name).removeprefix("file:"))
