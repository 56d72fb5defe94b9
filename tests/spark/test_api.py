"""The verbs as a user calls them, on Delta tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from decimal import Decimal
from pathlib import Path

import pytest

import trickle
from trickle import DefinitionError, NotDifferentiableError, SourceError, StateError, Trickle, UnknownTableError
from trickle.model.cost import Estimate


@pytest.fixture
def shop(spark):
    """A schema of its own with two small sources; dropped with all that was made in it."""
    spark.sql("CREATE DATABASE shop")
    spark.sql("USE shop")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(10,2)) USING delta")
    spark.sql("INSERT INTO orders VALUES (1,'ann',10),(2,'bob',20),(3,'ann',5),(3,'ann',5),(4,NULL,7)")
    spark.sql("CREATE TABLE customers (name STRING, city STRING) USING delta")
    spark.sql("INSERT INTO customers VALUES ('ann','Oslo'),('bob','Rome')")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE shop CASCADE")


TOTALS = "SELECT customer, sum(amount) AS total, avg(amount) AS mean, count(*) AS n FROM orders GROUP BY customer"


def rows(spark, name):
    return sorted((tuple(r) for r in spark.table(name).collect()), key=repr)


def test_a_stream_table_follows_inserts_updates_and_deletes(spark, shop):
    table = shop.create("totals", TOTALS, mode="differential")
    assert spark.table("totals").columns == ["customer", "total", "mean", "n"]

    spark.sql("UPDATE orders SET customer = 'bob' WHERE id = 1")
    spark.sql("DELETE FROM orders WHERE customer IS NULL")
    report = table.refresh()

    assert (report.mode, report.reason) == ("differential", None)
    assert (report.rows_inserted, report.rows_deleted) == (2, 3)
    assert report.frontier == table.frontier == {"orders": 3}
    assert report.seconds > 0
    assert {"look", "compute", "commit"} <= set(report.steps)
    assert rows(spark, "totals") == [
        ("ann", Decimal("10.00"), Decimal("5.000000"), 2),
        ("bob", Decimal("30.00"), Decimal("15.000000"), 2),
    ]
    assert shop.verify("totals")

    assert shop.refresh("totals").mode == "no_data"
    changes = spark.sql("SELECT _change_type FROM table_changes('totals', 2)").collect()
    assert len(changes) >= 4
    assert spark.sql("SELECT count(*) FROM totals VERSION AS OF 2").first()[0] == 3


def test_one_of_two_equal_rows_goes(spark, shop):
    shop.create("copies", "SELECT id, customer FROM orders WHERE id >= 3")
    spark.sql("INSERT INTO orders VALUES (9,'zoe',1)")
    spark.sql("DELETE FROM orders WHERE id = 3")
    spark.sql("INSERT INTO orders VALUES (3,'ann',5)")

    report = shop.refresh("copies")

    assert (report.mode, report.rows_inserted, report.rows_deleted) == ("differential", 1, 1)
    assert rows(spark, "copies") == [(3, "ann"), (4, None), (9, "zoe")]


def test_commits_that_cancel_advance_the_frontier_without_data(spark, shop):
    table = shop.create("totals", TOTALS)
    spark.sql("INSERT INTO orders VALUES (8,'kim',1)")
    spark.sql("DELETE FROM orders WHERE id = 8")

    report = table.refresh()

    assert (report.mode, report.rows_inserted, report.rows_deleted) == ("differential", 0, 0)
    assert table.frontier == {"orders": 3}
    assert table.refresh().mode == "no_data"


def test_stream_tables_read_stream_tables_and_views(spark, shop):
    shop.create("totals", TOTALS)
    spark.sql("CREATE VIEW rich AS SELECT * FROM totals WHERE total >= 20")
    shop.create("rich_by_city", "SELECT city, count(*) AS n FROM rich JOIN customers ON customer = name GROUP BY city")
    spark.sql("INSERT INTO orders VALUES (7,'ann',100)")

    assert shop.refresh("totals").mode == "differential"
    assert shop.refresh("rich_by_city").mode == "differential"
    assert rows(spark, "rich_by_city") == [("Oslo", 1), ("Rome", 1)]

    spark.sql("ALTER VIEW rich AS SELECT * FROM totals WHERE total >= 50")
    report = shop.refresh("rich_by_city")
    assert (report.mode, report.reason.code) == ("full", "DEFINITION_CHANGED")
    assert rows(spark, "rich_by_city") == [("Oslo", 1)]


def test_refresh_to_given_versions(spark, shop):
    shop.create("totals", TOTALS)
    for amount in (1, 2):
        spark.sql(f"INSERT INTO orders VALUES (5,'eve',{amount})")

    assert shop.refresh("totals", at={"orders": 2}).frontier == {"orders": 2}
    assert spark.table("totals").where("customer = 'eve'").first()["total"] == Decimal(1)
    for bad, code in (({"orders": 99}, "NO_SUCH_VERSION"), ({"nope": 1}, "UNKNOWN_SOURCE")):
        with pytest.raises(SourceError) as error:
            shop.refresh("totals", at=bad)
        assert error.value.code == code


def test_full_refreshes_say_why(spark, shop):
    shop.create("totals", TOTALS)
    assert shop.refresh("totals", full=True).reason.code == "REQUESTED"

    spark.sql("DELETE FROM totals WHERE customer = 'ann'")
    spark.sql("INSERT INTO orders VALUES (5,'eve',1)")
    report = shop.refresh("totals")
    assert (report.mode, report.reason.code) == ("full", "TABLE_MODIFIED")
    assert shop.verify("totals")

    spark.sql("DROP TABLE orders")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(10,2)) USING delta")
    spark.sql("INSERT INTO orders VALUES (1,'new',1)")
    assert shop.refresh("totals").reason.code == "SOURCE_REPLACED"
    assert rows(spark, "totals") == [("new", Decimal("1.00"), Decimal("1.000000"), 1)]

    shop.create("picked", "SELECT id, rand() AS r FROM orders")
    assert shop.refresh("picked").reason.code == "NON_DETERMINISTIC"
    shop.create("dated", "SELECT id, current_date() AS d FROM orders")
    assert (shop.refresh("dated").mode, shop.refresh("dated").reason.code) == ("full", "TIME_DEPENDENT")


def test_a_global_aggregate_over_nothing_has_one_row(spark, shop):
    shop.create("whole", "SELECT sum(amount) AS s, count(*) AS n FROM orders")
    spark.sql("DELETE FROM orders")

    assert shop.refresh("whole").mode == "differential"
    assert rows(spark, "whole") == [(None, 0)]


def test_dataframe_definitions_are_kept(spark, shop):
    from pyspark.sql import functions as F

    frame = spark.table("orders").groupBy("customer").agg(F.max("amount").alias("most"))
    shop.create("most", frame, mode="differential")
    spark.sql("INSERT INTO orders VALUES (5,'ann',99)")

    again = Trickle(spark)

    assert again.refresh("most").mode == "differential"
    assert again.verify("most")
    assert again.table("most").query is None


def test_a_session_variable_counts_with_its_value_at_creation(spark, shop):
    spark.sql("DECLARE OR REPLACE VARIABLE least BIGINT DEFAULT 4")
    shop.create("late", "SELECT id FROM orders WHERE id >= least", mode="differential")
    spark.sql("SET VARIABLE least = 99")
    spark.sql("DROP TEMPORARY VARIABLE least")
    spark.sql("INSERT INTO orders VALUES (5,'ann',1),(3,'ann',1)")

    report = Trickle(spark).refresh("late")

    assert report.mode == "differential"
    assert rows(spark, "late") == [(4,), (5,)]


def test_tables_explain_validate_and_drop(spark, shop):
    shop.create("totals", TOTALS)

    assert [t.name for t in shop.tables() if t.name.startswith("shop.")] == ["shop.totals"]
    text = shop.explain("totals")
    assert "by key" in text
    assert "Scan orders change" in text
    assert shop.validate(TOTALS)
    refused = shop.validate("SELECT rand() AS r, now() AS t FROM orders LIMIT 3")
    assert {o.code for o in refused.obstacles} == {"NON_DETERMINISTIC", "TIME_DEPENDENT", "LIMIT_WITHOUT_ORDER"}
    assert all(o.hint for o in refused.obstacles)

    shop.drop("totals")
    assert not spark.catalog.tableExists("shop.totals")
    with pytest.raises(UnknownTableError, match="does not exist"):
        shop.refresh("totals")
    with pytest.raises(UnknownTableError, match="not a stream table"):
        shop.refresh("orders")


def foreseen(text: str) -> tuple[str, list[str]]:
    """The mode and the steps that an explanation ends with."""
    mode, *steps = text.rpartition("Next refresh, as things are now: ")[2].splitlines()
    return mode, [step.strip() for step in steps]


def test_explain_foresees_what_refresh_does(spark, shop, monkeypatch):
    """Whatever happened: nothing, new rows, external writes, lost state."""
    monkeypatch.setattr(Estimate, "prefers_full", False)  # on a busy machine either mode may seem the cheaper one
    table = shop.create("totals", TOTALS)
    strict = shop.create("strict", TOTALS, mode="differential")
    state = Path(spark.sql("DESCRIBE DETAIL totals").first()["location"].removeprefix("file:")) / "_trickle"
    events = {
        "no_data": lambda: None,
        "differential": lambda: spark.sql("INSERT INTO orders SELECT * FROM orders LIMIT 1"),
        "TABLE_MODIFIED": lambda: spark.sql("DELETE FROM totals"),
        "STATE_MISSING": lambda: (
            shutil.rmtree(state),
            spark.sql("INSERT INTO orders SELECT * FROM orders LIMIT 1"),
        ),
    }
    for expected, happen in events.items():
        happen()
        versions = spark.sql("DESCRIBE HISTORY totals").count()
        mode, steps = foreseen(table.explain())
        assert spark.sql("DESCRIBE HISTORY totals").count() == versions
        report = table.refresh()

        assert mode == report.mode
        assert expected in (report.mode, report.reason.code if report.reason else None)
        assert report.reason is None or any(str(report.reason) in step for step in steps)
    spark.sql("DELETE FROM strict")
    mode, (step,) = foreseen(strict.explain())
    assert mode == "an error"
    assert "TABLE_MODIFIED" in step
    with pytest.raises(StateError, match="TABLE_MODIFIED"):
        strict.refresh()


BAD = {
    "SELECT * FROM nowhere": "BAD_SQL",
    "SELEC 1": "BAD_SQL",
    "DROP TABLE orders": "NOT_A_QUERY",
    "SELECT id, id FROM orders": "DUPLICATE_COLUMN",
    "SELECT id AS _change_type FROM orders": "RESERVED_COLUMN",
    "SELECT map(id, 1) AS m FROM orders": "UNSUPPORTED_TYPE",
    "SELECT NULL AS n FROM orders": "UNSUPPORTED_TYPE",
    "SELECT * FROM held": "TEMPORARY_VIEW",
    "SELECT * FROM files": "UNSUPPORTED_SOURCE",
}


def test_bad_input_is_named_and_leaves_nothing_behind(spark, shop, warehouse_folder):
    spark.createDataFrame([(1,)], "a INT").createOrReplaceTempView("held")
    spark.sql("CREATE TABLE files (a INT) USING parquet")
    for query, code in BAD.items():
        with pytest.raises(DefinitionError) as error:
            shop.create("bad", query)
        assert (error.value.code, bool(error.value.hint)) == (code, True), query
    for query in ("SELECT id FROM orders LIMIT 2", "SELECT uuid() AS u FROM orders"):
        with pytest.raises(NotDifferentiableError):
            shop.create("bad", query, mode="differential")
    for name, code in {
        "a b": "BAD_NAME",
        "": "BAD_NAME",
        "__trickle_x": "RESERVED_NAME",
        "orders": "NAME_TAKEN",
    }.items():
        with pytest.raises(DefinitionError) as error:
            shop.create(name, "SELECT id FROM orders")
        assert error.value.code == code, name
    with pytest.raises(DefinitionError, match="BAD_MODE"):
        shop.create("bad", "SELECT id FROM orders", mode="sometimes")

    assert spark.catalog.tableExists("shop.orders")
    assert not spark.catalog.tableExists("shop.bad")
    assert not (warehouse_folder / "shop.db" / "bad").exists()
    spark.catalog.dropTempView("held")


@pytest.mark.slow
def test_another_process_refreshes_from_where_this_one_stood(spark, shop, warehouse_folder):
    shop.create("totals", TOTALS)
    spark.sql("INSERT INTO orders VALUES (5,'eve',1)")
    code = f"""
        import trickle
        spark = trickle.local_session({str(warehouse_folder)!r}, cores=1, memory="1g")
        t = trickle.Trickle(spark)
        report = t.refresh("shop.totals")
        print(report.mode, report.frontier["orders"], bool(t.verify("shop.totals")))
        t.create("shop.made_there", "SELECT customer FROM shop.orders WHERE amount > 5")
    """
    there = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=240
    )

    assert there.stdout.split() == ["differential", "2", "True"], there.stderr
    assert shop.refresh("totals").mode == "no_data"
    assert spark.table("totals").where("customer = 'eve'").count() == 1
    assert shop.table("made_there").refresh().mode == "no_data"


def test_memory_tells_what_is_remembered(spark, shop):
    shop.create("totals", TOTALS)
    spark.sql("INSERT INTO orders VALUES (8,'eve',3)")
    shop.refresh("totals")

    sizes = shop.memory()

    assert {"columns", "change plans", "file footers", "log commits", "look-ups", "stored rows"} <= set(sizes)
    assert sizes["log commits"].entries > 0
    assert 0 < sizes["stored rows"].bytes <= sizes["stored rows"].max_bytes
    assert all(s.entries <= s.max_entries for s in sizes.values() if s.max_entries)


def test_the_public_names_are_these():
    assert sorted(trickle.__all__) == [
        "ApplyPlan",
        "ApplyStep",
        "CancelledError",
        "ConflictError",
        "DefinitionError",
        "Explanation",
        "Lineage",
        "NotDifferentiableError",
        "Options",
        "PastRefresh",
        "Reason",
        "RefreshReport",
        "RunReport",
        "SessionError",
        "SourceError",
        "SparkError",
        "Spec",
        "SqlSyntaxError",
        "StateError",
        "StreamTable",
        "SuspendedError",
        "TableOptions",
        "TableStatus",
        "Trickle",
        "TrickleError",
        "UnknownTableError",
        "Validation",
        "VerifyReport",
        "enable_sql",
        "local_session",
        "stream_table",
    ]
