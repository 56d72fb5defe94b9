"""Left running for months: history, verification on a schedule, housekeeping."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trickle import DefinitionError, Options, Trickle
from trickle.engine.upkeep import Housekeeping
from trickle.engine.verification import verify_and_tell
from trickle.model.events import Mismatch, Warned, utc_now
from trickle.model.verification import read_verification
from trickle.schedule.loop import Loop
from trickle.tables.delta.log import last_checkpoint
from trickle.tables.delta.upkeep import read_interval


@pytest.fixture(scope="module")
def months(spark):
    spark.sql("CREATE DATABASE months")
    spark.sql("USE months")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount BIGINT) USING delta")
    spark.sql("INSERT INTO orders SELECT id, concat('c', id % 10), id FROM range(100)")
    options = Options(verify_sample_rows=4, small_files=2, checkpoint_interval=6)
    trickle = Trickle(spark, history="months.refreshes", options=options)
    trickle.create("copies", "SELECT id, amount FROM orders", mode="differential", verify_every="1s")
    trickle.create("totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    trickle.create("best", "SELECT max(total) AS best FROM totals")
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE months CASCADE")


@pytest.fixture
def shop(spark, months):
    spark.sql("USE months")
    return months


def test_every_refresh_is_a_row_of_the_history(spark, shop):
    shop.refresh("copies")
    shop.refresh("copies", full=True)
    shop._engine.history.flush()

    rows = spark.sql("SELECT * FROM months.refreshes WHERE name = 'months.copies' ORDER BY started").collect()

    assert [(r.state, r.action, r.reason, r.trigger) for r in rows] == [
        ("SUCCEEDED", "FULL", "FIRST_REFRESH", "creation"),
        ("SUCCEEDED", "NO_DATA", None, "manual"),
        ("SUCCEEDED", "FULL", "REQUESTED", "manual"),
    ]
    assert (rows[0].rows_inserted, rows[2].frontier, rows[2].steps["write"] > 0) == (100, {"orders": 1}, True)
    shop._engine.history._table.trim("started", utc_now() + timedelta(days=1))
    assert spark.table("months.refreshes").count() == 0
    with pytest.raises(DefinitionError, match="BAD_HISTORY"):
        Trickle(spark, history="months.orders")


def test_big_tables_are_verified_by_a_sample_of_their_keys(shop):
    report = shop.verify("copies", sampled=True)
    grouped = shop.verify("totals", sampled=True)

    assert (report.ok, report.part, 0 <= report.rows < 100) == (True, 25, True)
    assert (grouped.ok, grouped.part) == (True, 3)
    assert shop.verify("copies").part == 1


@pytest.mark.slow
def test_the_loop_verifies_when_idle_and_tells_what_it_finds(spark, shop, caplog):
    heard = []
    shop.events.on(Mismatch, heard.append)
    spark.sql("UPDATE copies SET amount = -1")

    report = verify_and_tell(shop._engine, "months.copies")

    assert (report.ok, [event.table for event in heard]) == (False, ["months.copies"])
    assert "is not what its query returns" in caplog.text
    marks = shop._engine.catalog.marks(shop._engine.catalog.location("months.copies"))
    assert read_verification(marks.verified).ok is False
    shop.refresh("copies", full=True)
    loop = Loop(shop._engine)
    loop._idle._started = utc_now() - timedelta(minutes=50)
    loop._idle._done = {(what, n): utc_now() for what in ("tidy", "warn") for n in shop._engine.members().members}
    loop.tick()
    loop._idle._thread.join()
    marks = shop._engine.catalog.marks(shop._engine.catalog.location("months.copies"))
    assert read_verification(marks.verified).ok is True


def test_small_files_are_merged_and_readers_see_no_change(spark, shop):
    members = shop._engine.members()
    for number in range(4):
        spark.sql(f"INSERT INTO orders VALUES ({200 + number}, 'zoe', 1)")
        assert shop.refresh("copies").mode == "differential"
    place = members.members["months.copies"].table.location
    files = spark.sql("DESCRIBE DETAIL copies").first()["numFiles"]

    done = Housekeeping(shop._engine).tidy("months.copies", members, utc_now())

    assert files > 2
    assert spark.sql("DESCRIBE DETAIL copies").first()["numFiles"] == 1
    assert any(text.startswith("compacted") for text in done)
    checkpointed = last_checkpoint(members.members["months.copies"].table.target.table.folder)
    assert checkpointed >= 0, place
    spark.sql("INSERT INTO orders VALUES (300, 'zoe', 1)")
    assert shop.refresh("copies").mode == "differential"
    assert shop.verify("copies")


def test_a_source_that_will_outrun_its_reader_is_told(spark, shop):
    heard = []
    shop.events.on(Warned, heard.append)
    housekeeping, now, totals = Housekeeping(shop._engine), utc_now(), shop._engine.members().members["months.totals"]
    shop.refresh("totals")
    assert housekeeping.warn("months.totals", totals, now) == []

    spark.sql("INSERT INTO orders VALUES (400, 'zoe', 1)")
    spark.sql("ALTER TABLE orders SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 hours')")
    (text,) = housekeeping.warn("months.totals", totals, now + timedelta(minutes=40))

    assert "1:00:00" in text
    assert [(event.table, event.code) for event in heard] == [("months.totals", "RETENTION_SHORT")]


def test_the_log_of_a_table_is_kept_for_a_reader_that_is_behind(spark, shop):
    shop.refresh_all()
    spark.sql("INSERT INTO orders VALUES (500, 'zoe', 1000000)")
    shop.refresh("totals")
    housekeeping, members = Housekeeping(shop._engine), shop._engine.members()

    assert not [text for text in housekeeping.tidy("months.totals", members, utc_now()) if "is kept" in text]
    done = housekeeping.tidy("months.totals", members, utc_now() + timedelta(days=20))

    assert any("is kept for 40 days" in text for text in done)
    kept = spark.sql("SHOW TBLPROPERTIES totals ('delta.logRetentionDuration')").first()["value"]
    assert timedelta(days=40) <= read_interval(kept) < timedelta(days=41)
    assert shop.refresh("best").mode == "differential"


@pytest.mark.slow
def test_vacuum_spares_what_a_reader_needs(spark, shop):
    shop.refresh_all()
    spark.sql("INSERT INTO orders VALUES (500, 'zoe', 100000)")
    shop.refresh("totals")

    kept = Housekeeping(shop._engine).vacuum("months.totals", shop._engine.members(), utc_now() + timedelta(days=9))

    assert timedelta(days=9) < kept < timedelta(days=9, hours=2)  # best has not read the last version of totals
    assert shop.refresh("best").mode == "differential"
