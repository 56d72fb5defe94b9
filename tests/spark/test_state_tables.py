"""State beside a stream table: a state table ahead of it, lost, too big, or old."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trickle import StateError, Trickle
from trickle.model.cost import Estimate
from trickle.model.options import Options
from trickle.tables.delta.target import DeltaTarget

TOTALS = "SELECT customer, sum(amount) AS total, count(*) AS n FROM sales GROUP BY customer"


@pytest.fixture
def sales(spark):
    """A schema of its own with one small source."""
    spark.sql("CREATE DATABASE with_state")
    spark.sql("USE with_state")
    spark.sql("CREATE TABLE sales (customer STRING, amount DECIMAL(10,2)) USING delta")
    spark.sql("INSERT INTO sales VALUES ('ann', 10), ('bob', 20), ('ann', 5), (NULL, 7)")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE with_state CASCADE")


def folder(spark, name: str) -> Path:
    location = spark.sql(f"DESCRIBE DETAIL {name}").first()["location"]
    return Path(location.removeprefix("file:")) / "_trickle"


class Killed(BaseException):
    """The process ended here."""


def refresh_killed(table, monkeypatch) -> None:
    """Refresh, but end when the state tables are written and the table is not."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        for write in ("apply_bag", "replace_keys"):
            broken.setattr(DeltaTarget, write, killed)
        with pytest.raises(Killed):
            table.refresh()


def test_a_refresh_killed_between_state_table_and_table_is_made_good(spark, sales, monkeypatch):
    table = sales.create("totals", TOTALS, mode="differential")
    spark.sql("INSERT INTO sales VALUES ('ann', 1), ('eve', 2)")
    refresh_killed(table, monkeypatch)
    assert spark.table("totals").count() == 3
    spark.sql("DELETE FROM sales WHERE customer = 'bob'")
    report = table.refresh()

    assert report.mode == "differential"
    assert sales.verify("totals")
    assert spark.table("totals").count() == 3


@pytest.mark.parametrize(
    "after", ["killed", pytest.param("next", marks=pytest.mark.slow), pytest.param("replaced", marks=pytest.mark.slow)]
)
def test_a_refresh_in_full_for_its_cost_leaves_the_state_tables_to_the_next(spark, sales, monkeypatch, after):
    by_count = f"SELECT n, count(*) AS customers, max(total) AS most FROM ({TOTALS}) GROUP BY n"
    monkeypatch.setattr(Estimate, "prefers_full", False)  # on a busy machine either mode may seem the cheaper one
    tables = [sales.create("totals", TOTALS), sales.create("by_count", by_count)]

    def state_table_files() -> set[Path]:
        return {path for table in tables for path in folder(spark, table.name).rglob("*.parquet")}

    spark.sql("INSERT INTO sales VALUES ('eve', 3), ('ann', 1)")
    before = state_table_files()
    with monkeypatch.context() as dear:
        dear.setattr(Estimate, "prefers_full", True)
        reports = [table.refresh() for table in tables]
    assert {(report.mode, report.reason.code) for report in reports} == {("full", "COST")}
    assert before
    assert state_table_files() == before
    assert all(sales.verify(table.name) for table in tables)

    spark.sql("DELETE FROM sales WHERE customer = 'bob'")
    if after == "killed":
        for table in tables:
            refresh_killed(table, monkeypatch)
        spark.sql("INSERT INTO sales VALUES ('bob', 2)")
    if after == "replaced":
        spark.sql("CREATE OR REPLACE TABLE sales USING delta AS SELECT * FROM sales VERSION AS OF 1")
    reports = [table.refresh() for table in tables]
    assert {report.mode for report in reports} == {"full" if after == "replaced" else "differential"}
    assert all(("catch up" in report.steps) == (after != "replaced") for report in reports)
    assert all(sales.verify(table.name) for table in tables)

    spark.sql("INSERT INTO sales VALUES ('bob', 20)")
    reports = [table.refresh() for table in tables]
    assert {report.mode for report in reports} == {"differential"}
    assert not any("catch up" in report.steps for report in reports)
    assert all(sales.verify(table.name) for table in tables)


def test_lost_state_is_built_anew_and_said(spark, sales):
    sales.create("totals", TOTALS)
    sales.create("strict", TOTALS, mode="differential")
    for name in ("totals", "strict"):
        shutil.rmtree(folder(spark, name))
    spark.sql("INSERT INTO sales VALUES ('ann', 1)")

    report = sales.refresh("totals")
    with pytest.raises(StateError) as lost:
        sales.refresh("strict")

    assert (report.mode, report.reason.code) == ("full", "STATE_MISSING")
    assert lost.value.code == "STATE_MISSING"
    assert sales.refresh("strict", full=True).reason.code == "REQUESTED"
    spark.sql("INSERT INTO sales VALUES ('bob', 1)")
    assert {sales.refresh(name).mode for name in ("totals", "strict")} == {"differential"}
    assert sales.verify("totals")
    assert sales.verify("strict")


def test_a_state_table_that_is_too_big_is_left_out_for_good(spark, sales):
    Trickle(spark, options=Options(state_rows=2)).create("totals", TOTALS, mode="differential")
    assert not list(folder(spark, "totals").glob("*"))
    spark.sql("INSERT INTO sales VALUES ('ann', 1), ('eve', 2)")

    report = Trickle(spark).refresh("totals")

    assert report.mode == "differential"
    assert not list(folder(spark, "totals").glob("*"))
    assert sales.verify("totals")


def test_state_keeps_no_old_files(spark, sales):
    table = sales.create("totals", TOTALS, mode="differential")
    for amount in range(5):
        spark.sql(f"INSERT INTO sales VALUES ('ann', {amount})")
        assert table.refresh().mode == "differential"

    assert 1 <= len(list(folder(spark, "totals").rglob("*.parquet"))) <= 6
    assert sales.verify("totals")


def test_invalidated_groups_are_read_again(spark, sales):
    """A greatest value that goes, and a sum of doubles whose digits went with a great number, are computed from rows."""
    spark.sql("CREATE TABLE measured (place STRING, x BIGINT, y DOUBLE) USING delta")
    spark.sql("INSERT INTO measured VALUES ('a', 1, 1.0D), ('a', 5, 0.5D), ('b', 3, 2.0D), ('b', NULL, NULL)")
    sums = "min(x) AS least, max(x) AS greatest, avg(x) AS mean, sum(y) AS total, avg(y) AS middle"
    by_place, in_all = (
        sales.create("by_place", f"SELECT place, {sums} FROM measured GROUP BY place", mode="differential"),
        sales.create("in_all", f"SELECT {sums} FROM measured", mode="differential"),
    )
    changes = (
        "INSERT INTO measured VALUES ('a', 9, 1e17D), ('c', 0, -1.0D), (NULL, 2, 0.0D)",
        "DELETE FROM measured WHERE x IN (0, 9)",
        "INSERT INTO measured VALUES ('b', 4, double('NaN')), ('a', -3, 0.25D)",
        "DELETE FROM measured WHERE isnan(y) OR x = -3",
        "DELETE FROM measured",
    )
    for change in changes:
        spark.sql(change)
        assert {t.refresh().mode for t in (by_place, in_all)} == {"differential"}, change
        assert all(sales.verify(name) for name in ("by_place", "in_all")), change
        if "DELETE FROM measured WHERE x" in change:
            assert spark.table("by_place").where("place = 'a'").first()[1:] == (1, 5, 3.0, 1.5, 0.75)

    assert "the state of an aggregate" in str(by_place.explain())


def test_a_change_that_needs_more_digits_than_its_sum_is_recomputed(spark, sales):
    spark.sql("CREATE TABLE wide (k INT, v DECIMAL(38, 0)) USING delta")
    spark.sql(f"INSERT INTO wide VALUES (1, {9 * 10**37}), (2, 5)")
    query = "SELECT k, sum(v) AS s FROM wide GROUP BY k"
    loose, strict = sales.create("loose", query), sales.create("strict", query, mode="differential")
    spark.sql("UPDATE wide SET v = -v WHERE k = 1")

    report = loose.refresh()
    with pytest.raises(StateError) as refused:
        strict.refresh()

    assert (report.mode, report.reason.code) == ("full", "SUM_OVERFLOW")
    assert refused.value.code == "SUM_OVERFLOW"
    assert strict.refresh(full=True).mode == "full"
    spark.sql("UPDATE wide SET v = v + 1")
    for table in (loose, strict):
        assert table.refresh().mode == "differential"
        assert {tuple(row) for row in spark.table(table.name).collect()} == {(1, 1 - 9 * 10**37), (2, 6)}


BY_SPARK = pytest.param(Options(disable={"driver_execution", "driver_io"}), marks=pytest.mark.slow)


@pytest.mark.parametrize("options", [Options(), BY_SPARK])
def test_a_sum_wraps_around_as_in_spark_without_ansi_mode(spark, sales, options):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        spark.sql("CREATE TABLE longs (k INT, v BIGINT) USING delta")
        spark.sql(f"INSERT INTO longs VALUES (1, {2**63 - 1}), (1, 2), (2, -{2**63 - 1} - 1), (2, -1), (3, 1)")
        query = "SELECT k, sum(v) AS s FROM longs GROUP BY k"
        trickle = Trickle(spark, options=options)
        trickle.create("sums", query, mode="differential")
        for statement in (
            f"INSERT INTO longs VALUES (1, {2**63 - 1}), (3, {2**63 - 1})",
            "DELETE FROM longs WHERE v = 2",
            f"DELETE FROM longs WHERE v = {2**63 - 1}",
            "UPDATE longs SET v = -v",
        ):
            spark.sql(statement)
            assert trickle.refresh("sums").mode == "differential"
            assert {*spark.table("sums").collect()} == {*spark.sql(query).collect()}, statement
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
