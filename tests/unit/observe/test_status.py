"""How stream tables are, told from hand-made logs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.unit.observe.lake import NOON, Lake
from trickle.errors import DefinitionError, UnknownTableError
from trickle.model.definition import DEFINITION_PROPERTY, Took
from trickle.model.verification import VERIFIED_PROPERTY, Verification

if TYPE_CHECKING:
    from trickle.model.observed import TableStatus


def status(lake: Lake, name: str) -> TableStatus:
    (found,) = lake.observer().status(name)
    return found


@pytest.fixture
def shop(lake: Lake) -> Lake:
    """Orders, and totals that have all of them."""
    lake.table("orders")
    lake.write("orders", ago=1000)
    lake.stream("totals")
    lake.refresh("totals", {"orders": 1}, ago=900)
    return lake


def test_a_table_that_has_all_of_its_sources_is_ok(shop):
    found = status(shop, "totals")

    assert (found.table, found.health, found.version, found.mode) == ("default.totals", "ok", 1, "auto")
    assert (found.last_refresh, found.last_mode) == (NOON - timedelta(seconds=900), "differential")
    assert (found.age_seconds, found.lag_seconds, found.next_due) == (900, 0, None)


def test_commits_that_are_not_included_are_counted_from_the_oldest(shop):
    shop.write("orders", ago=300)
    shop.write("orders", ago=100)

    found = status(shop, "totals")

    assert (found.health, found.lag_seconds) == ("behind", 300)
    (lag,) = found.sources
    assert (lag.source, lag.included, lag.newest, lag.commits) == ("orders", 1, 3, 2)
    assert lag.oldest == NOON - timedelta(seconds=300)


def test_compaction_is_no_news(shop):
    shop.write("orders", ago=300, changes_data=False, operation="OPTIMIZE")

    assert status(shop, "totals").health == "ok"


def test_an_upstream_refresh_without_rows_is_no_news(shop):
    shop.stream("weekly")
    shop.refresh("weekly", {"totals": 1}, ago=800)
    shop.refresh("totals", {"orders": 1}, ago=700, metrics={"numInsertedRows": 0, "numDeletedRows": 0})

    assert status(shop, "weekly").health == "ok"


def test_a_table_is_behind_what_its_upstream_lacks(shop):
    shop.stream("weekly")
    shop.refresh("weekly", {"totals": 1}, ago=800)
    shop.write("orders", ago=60)

    found = status(shop, "weekly")

    assert (found.health, found.lag_seconds) == ("behind", 60)
    assert [lag.commits for lag in found.sources] == [0]


@pytest.mark.parametrize(
    ("schedule", "ago", "health"),
    [
        ("5m", 200, "behind"),
        ("5m", 340, "late"),
        ("on commit", 20, "behind"),
        ("on commit", 40, "late"),
        ("on commit at most every 20m", 400, "behind"),
        ("*/10 * * * *", 599, "behind"),
        ("*/10 * * * *", 700, "late"),
        (None, 86_400, "behind"),
        ("downstream", 86_400, "behind"),
    ],
)
def test_a_table_is_late_when_a_commit_should_have_come_in(lake, schedule, ago, health):
    lake.table("orders", ago=100_000)
    lake.stream("totals", schedule=schedule)
    lake.refresh("totals", {"orders": 0}, ago=ago + 5)
    lake.write("orders", ago=ago)

    assert status(lake, "totals").health == health


def test_what_the_last_refresh_took_is_no_delay(lake):
    lake.table("orders", ago=100_000)
    lake.stream("totals", schedule="on commit")
    lake.refresh("totals", {"orders": 0}, ago=100, took=Took(inserted=1, deleted=0, seconds=60))
    lake.write("orders", ago=80)

    assert status(lake, "totals").health == "behind"


def test_a_table_that_follows_its_readers_is_due_and_late_as_they_are(shop):
    shop.stream("middle", schedule="downstream")
    shop.refresh("middle", {"orders": 1}, ago=900)
    shop.stream("end", schedule="1m")
    shop.refresh("end", {"middle": 1}, ago=900)
    shop.write("orders", ago=200)

    assert [(s.table, s.health) for s in shop.observer().status()] == [
        ("default.end", "late"),
        ("default.middle", "late"),
        ("default.totals", "behind"),
    ]
    assert status(shop, "middle").next_due == NOON - timedelta(seconds=840)


def test_the_next_time_is_ahead_unless_something_is_missing(lake):
    lake.table("orders", ago=100_000)
    lake.stream("totals", schedule="10m")
    lake.refresh("totals", {"orders": 0}, ago=900)

    assert status(lake, "totals").next_due == NOON + timedelta(seconds=300)

    lake.write("orders", ago=10)
    assert status(lake, "totals").next_due == NOON - timedelta(seconds=300)


@pytest.mark.parametrize(("cause", "health"), [("user", "suspended"), ("fuse", "suspended"), ("failures", "failed")])
def test_a_suspended_table_says_why(shop, cause, health):
    text = {"since": "2026-06-01T11:00:00+00:00", "cause": cause, "code": "DIVIDE_BY_ZERO", "message": "by zero"}
    shop.alter("totals", {"trickle.suspended": json.dumps(text)})

    found = status(shop, "totals")

    assert (found.health, found.next_due) == (health, None)
    assert found.suspended is not None
    assert (found.suspended.cause, found.suspended.code, found.suspended.message) == (
        cause,
        "DIVIDE_BY_ZERO",
        "by zero",
    )
    assert found.suspended.since == NOON - timedelta(hours=1)


def test_what_a_verification_found_is_told_until_a_full_refresh(shop):
    found = Verification(at=(NOON - timedelta(seconds=500)).isoformat(), ok=False, rows=10, missing=1, extra=2, part=5)
    shop.alter("totals", {VERIFIED_PROPERTY: found.model_dump_json()})

    problem = status(shop, "totals").problem
    assert problem is not None
    assert "1 rows missing, 2 extra" in problem
    shop.refresh("totals", {"orders": 1}, ago=400, mode="full", reason="REQUESTED: …")
    assert status(shop, "totals").problem is None


def test_a_change_that_was_skipped_is_told(shop):
    shop.refresh("totals", {"orders": 1}, ago=400, skipped="the change up to orders 1 was skipped")

    assert "does not equal its query" in (status(shop, "totals").problem or "")


def test_a_source_that_is_gone_breaks_a_table(shop):
    for file in (shop.folder / "orders" / "_delta_log").iterdir():
        file.unlink()
    (shop.folder / "orders" / "_delta_log").rmdir()

    found = status(shop, "totals")

    assert (found.health, found.lag_seconds) == ("broken", None)
    assert found.problem is not None
    assert "source 'orders' is not there" in found.problem


def test_a_source_made_anew_leaves_a_table_behind(lake):
    lake.table("orders", id="another")
    lake.stream("totals")
    lake.refresh("totals", {"orders": 0}, ago=900)

    found = status(lake, "totals")

    assert found.health == "behind"
    assert found.sources[0].note == "was made anew"


def test_a_source_that_went_back_leaves_a_table_behind(shop):
    shop.refresh("totals", {"orders": 7}, ago=10)

    found = status(shop, "totals")

    assert (found.health, found.sources[0].note) == ("behind", "went back to an older version")


def test_writes_of_others_are_told(shop):
    shop.write("totals", ago=10, operation="DELETE")

    found = status(shop, "totals")

    assert found.health == "behind"
    assert found.problem is not None
    assert "(DELETE)" in found.problem


@pytest.mark.parametrize(
    ("damage", "code"),
    [("definition", "BAD_DEFINITION"), ("record", "UNREADABLE_RECORD"), ("log", "UNREADABLE_LOG")],
)
def test_what_cannot_be_read_is_broken_and_the_others_are_told(shop, damage, code):
    shop.stream("weekly")
    shop.refresh("weekly", {"orders": 1}, ago=800)
    newest = shop.folder / "totals" / "_delta_log" / f"{1:020d}.json"
    if damage == "definition":
        shop.alter("totals", {DEFINITION_PROPERTY: "{}"})
    elif damage == "record":
        newest.write_text(newest.read_text().replace("refresh_id", "fresh_id"))
    else:
        newest.write_text("not a commit")

    found = {s.table: s for s in shop.observer().status()}

    assert found["default.totals"].health == "broken"
    assert code in str(found["default.totals"].problem)
    assert found["default.weekly"].health == "ok"


def test_copies_and_plain_tables_are_not_listed(shop):
    shop.stream("copied", **{"trickle.table": "of another"})

    assert [s.table for s in shop.observer().status()] == ["default.totals"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders", "is a table, but not a stream table"),
        ("nothing", "does not exist"),
        ("other.totals", "does not exist"),
    ],
)
def test_a_name_that_is_no_stream_table_is_refused(shop, name, text):
    with pytest.raises(UnknownTableError, match=text) as caught:
        shop.observer().status(name)

    assert caught.value.code == "UNKNOWN_TABLE"
    assert "Stream tables here: default.totals." in caught.value.hint


def test_a_near_miss_is_proposed(shop):
    with pytest.raises(UnknownTableError, match=r"Did you mean default.totals\?"):
        shop.observer().history("total")


def test_a_name_that_shares_only_its_schema_with_another_is_no_near_miss(shop):
    with pytest.raises(UnknownTableError) as caught:
        shop.observer().history("nope")

    assert "Did you mean" not in caught.value.hint


@pytest.mark.parametrize("name", ["a b", "", "a.b.c.d", "hive.default.totals"])
def test_what_is_no_name_is_refused(shop, name):
    with pytest.raises(DefinitionError, match="BAD_NAME"):
        shop.observer().status(name)


def test_tables_of_other_schemas_are_found(lake):
    lake.table("shop.orders", id="orders")
    lake.stream("totals")
    lake.refresh("totals", {"shop.orders": 0}, ago=900)

    (lag,) = status(lake, "spark_catalog.default.totals").sources

    assert (lag.source, lag.newest, lag.note) == ("shop.orders", 0, "was made anew")


def test_many_missing_commits_are_not_all_read(shop):
    log = shop.folder / "orders" / "_delta_log"
    shop.write("orders", ago=500)
    for version in range(3, 1500):
        (log / f"{version:020d}.json").hardlink_to(log / f"{2:020d}.json")

    (lag,) = status(shop, "totals").sources

    assert (lag.commits, lag.oldest) == (1498, NOON - timedelta(seconds=500))
