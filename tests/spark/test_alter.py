"""Changing stream tables while others read them."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter

import pytest

from trickle import (
    ConflictError,
    DefinitionError,
    NotDifferentiableError,
    StateError,
    SuspendedError,
    Trickle,
    UnknownTableError,
)
from trickle.engine.alter import Alteration
from trickle.model.events import ApplyPlanned, RefreshStarted
from trickle.refresh.request import Request


@pytest.fixture
def schema(spark):
    spark.sql("CREATE DATABASE altered")
    spark.sql("USE altered")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE altered CASCADE")


@pytest.fixture
def t(spark, schema):
    return Trickle(spark)


@pytest.fixture
def orders(spark, schema):
    spark.sql("CREATE TABLE orders (id INT, day STRING, amount INT) USING delta")
    spark.sql("INSERT INTO orders VALUES (1, 'mon', 5), (2, 'mon', 7), (3, 'tue', 1), (4, NULL, NULL)")
    return "orders"


def rows(spark, name):
    return Counter(tuple(row) for row in spark.table(name).collect())


def is_exact(t, spark, name, query):
    assert rows(spark, name) == Counter(tuple(row) for row in spark.sql(query).collect())
    return bool(t.verify(name))


def versions(spark, name):
    return spark.sql(f"DESCRIBE HISTORY {name}").count()


def test_what_two_alter_at_once_is_not_lost(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    other, between = (
        Trickle(spark),
        [{"owner": "bob"}, {"query": "SELECT day, max(amount) AS m FROM orders GROUP BY day"}],
    )
    t.events.on(RefreshStarted, lambda _: between and other.alter("daily", **between.pop(0)))

    t.alter("daily", "SELECT day, count(*) AS n FROM orders GROUP BY day", schedule="1m")

    assert not between
    definition = Trickle(spark).table("daily").definition
    assert (definition.options.owner, definition.schedule, definition.generation) == ("bob", "1m", 2)
    assert is_exact(t, spark, "daily", "SELECT day, count(*) AS n FROM orders GROUP BY day")

    planned = t._alter.plan("altered.daily", Alteration(words={"comment": "mine"}))
    other.alter("daily", tags={"team": "theirs"})
    with pytest.raises(ConflictError, match="CONCURRENT_ALTER"):
        t._alter.make(planned)
    assert t.alter("daily", comment="mine").definition.options.tags == {"team": "theirs"}


def test_options_are_stored_and_survive_refreshes(t, spark, orders, tmp_path):
    made = t.create(
        "daily",
        "SELECT day, sum(amount) AS total FROM orders GROUP BY day",
        schedule="90s",
        comment="What we earn, it's ${spark.app.name} \\ all",
        partition_by="day",
        properties={"team": "it's $ours"},
        location=str(tmp_path / "elsewhere"),
        tags={"tier": "gold"},
        owner="ann",
        timeout="2m",
    )
    assert (made.schedule, made.options.owner, made.options.timeout) == ("1m30s", "ann", "2m")
    spark.sql("INSERT INTO orders VALUES (5, 'wed', 2), (6, 'mon', 1)")
    assert t.refresh("daily").mode == "differential"
    assert t.table("daily").options == made.options
    detail = spark.sql("DESCRIBE DETAIL daily").first()
    assert detail["partitionColumns"] == ["day"]
    assert detail["description"] == "What we earn, it's ${spark.app.name} \\ all"
    assert detail["properties"]["team"] == "it's $ours"
    assert detail["location"].endswith("elsewhere")
    assert is_exact(t, spark, "daily", "SELECT day, sum(amount) FROM orders GROUP BY day")


def test_options_mode_and_schedule_are_altered_in_place(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day", properties={"a": "1", "b": "2"})
    before = t.table("daily").frontier
    altered = t.alter("daily", mode="differential", schedule="on commit", comment="it's new", properties={"b": "3"})
    assert (altered.mode, altered.schedule, altered.options.comment) == ("differential", "on commit", "it's new")
    assert altered.frontier == before
    detail = spark.sql("DESCRIBE DETAIL daily").first()
    assert (detail["description"], detail["properties"].get("a"), detail["properties"]["b"]) == ("it's new", None, "3")
    stood = versions(spark, "daily")
    t.alter("daily", comment="it's new")
    assert versions(spark, "daily") == stood
    spark.sql("DELETE FROM orders WHERE id = 1")
    assert t.refresh("daily").mode == "differential"
    t.alter("daily", schedule=None, comment=None)
    assert t.table("daily").schedule is None
    assert not spark.sql("DESCRIBE DETAIL daily").first()["description"]
    assert is_exact(t, spark, "daily", "SELECT day, sum(amount) FROM orders GROUP BY day")


def test_another_query_is_swapped_in_by_one_commit_and_readers_get_what_differs(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    t.create("high", "SELECT day, total FROM daily WHERE total > 1")
    # It says the same in other words: nothing happens.
    stood = versions(spark, "daily")
    t.alter("daily", "SELECT  day, SUM(amount)  AS total FROM orders -- so much\nGROUP BY day")
    assert versions(spark, "daily") == stood
    query = "SELECT day, sum(amount) AS total, count(*) AS `how many` FROM orders WHERE id < 4 GROUP BY day"
    other = "SELECT day, sum(amount) AS total, count(*) AS orders FROM orders WHERE id <> 3 GROUP BY day"
    t.alter("daily", other)
    assert is_exact(t, spark, "daily", other)
    assert spark.table("daily").columns == ["day", "total", "orders"]
    report = t.refresh("high")
    assert (report.mode, report.rows_inserted, report.rows_deleted) == ("differential", 0, 0)
    spark.sql("INSERT INTO orders VALUES (7, 'mon', 1)")
    assert t.refresh("daily").mode == "differential"
    assert is_exact(t, spark, "daily", other)
    # Names that files cannot have, and fewer rows.
    t.create("daily", query, replace=True, owner="bob")
    assert t.table("daily").options.owner == "bob"
    spark.sql("UPDATE orders SET amount = 9 WHERE id = 2")
    assert t.refresh("daily").mode == "differential"
    assert is_exact(t, spark, "daily", query)
    assert t.refresh("high").mode == "differential"
    assert is_exact(t, spark, "high", f"SELECT day, total FROM ({query}) WHERE total > 1")


DAILY = "SELECT day, sum(amount) AS total, count(*) AS n FROM orders GROUP BY day"


@pytest.mark.parametrize(
    ("query", "action"),
    [
        ("SELECT sum(amount) AS revenue, day FROM orders GROUP BY day", "evolve"),
        (f"SELECT day, total, n, total * 2 / n AS twice FROM ({DAILY}) WHERE n > 1 OR day IS NULL", "evolve"),
        (f"{DAILY} HAVING sum(amount) > 1", "evolve"),
        ("SELECT day, sum(amount) AS total, max(amount) AS n FROM orders GROUP BY day", "query"),
        (f"SELECT day, total, n FROM ({DAILY}) WHERE n > (SELECT min(amount) FROM orders)", "query"),
        ("SELECT day, sum(amount) AS total FROM orders WHERE id > 1 GROUP BY day", "query"),
    ],
)
def test_rows_that_follow_from_the_stored_ones_are_not_computed_again(t, spark, orders, query, action):
    t.create("daily", DAILY)
    t.create("seen", "SELECT day FROM daily WHERE day = 'mon'")
    stood = t.table("daily").frontier
    spark.sql("INSERT INTO orders VALUES (5, 'wed', 50), (6, 'mon', 1)")
    planned = []
    t.events.on(ApplyPlanned, lambda event: planned.append(str(event.plan)))
    plan = t.apply({"daily": query})
    assert [step.action for step in plan.changes] == [action]
    assert planned[0].startswith(action)
    assert (t.table("daily").frontier == stood) == (action == "evolve")
    assert t.verify("daily")
    report = t.refresh_all()
    assert all(one.mode in ("differential", "no_data") for one in report.tables.values())
    assert report.tables["altered.seen"].rows_inserted + report.tables["altered.seen"].rows_deleted == 0
    assert is_exact(t, spark, "daily", query)


def test_where_spark_leaves_the_answer_open_the_rows_are_computed(t, spark, orders):
    numbered = "SELECT id, day, row_number() OVER (ORDER BY day) AS place FROM orders"
    t.create("places", numbered)
    assert [step.action for step in t.apply({"places": f"SELECT id, place FROM ({numbered})"}).changes] == ["query"]
    assert t.verify("places")


def test_a_query_is_replaced_though_others_refresh_all_the_while(t, spark, orders):
    t.create("daily", DAILY)
    stopped, failures = threading.Event(), []

    def refresh_on_and_on():
        other = Trickle(spark)
        for number in itertools.count(10):
            if stopped.is_set():
                return
            try:
                spark.sql(f"INSERT INTO altered.orders VALUES ({number}, 'mon', 1)")
                other.refresh("altered.daily")
            except SuspendedError:
                time.sleep(0.05)
            except Exception as error:
                failures.append(error)

    thread = threading.Thread(target=refresh_on_and_on)
    thread.start()
    try:
        for function in ("max", "min"):
            t.alter("daily", f"SELECT day, {function}(amount) AS total, count(*) AS n FROM orders GROUP BY day")
    finally:
        stopped.set()
        thread.join()
    assert not failures
    assert t.status("daily")[0].suspended is None
    t.refresh("daily")
    assert is_exact(t, spark, "daily", "SELECT day, min(amount), count(*) FROM orders GROUP BY day")


def test_refreshes_stay_away_for_a_time_only(t, spark, orders):
    t.create("daily", DAILY)
    suspensions, place = t._engine.suspensions, t._engine.tables.find("altered.daily").location
    with suspensions.held_off("altered.daily", place, 60):
        with pytest.raises(SuspendedError):
            t.refresh("daily")
        assert t.status("daily")[0].suspended.cause == "replacement"
    assert t.refresh("daily").mode == "no_data"
    # As if its process had died, and the time were over.
    with suspensions.held_off("altered.daily", place, -1):
        assert t.refresh("daily").mode == "no_data"
        assert t.status("daily")[0].health == "ok"


def test_a_second_engine_does_not_go_on_with_the_old_query(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    other = Trickle(spark)
    opened = other._engine.tables.get(other._engine.qualify("daily"))
    t.alter("daily", "SELECT day, max(amount) AS total FROM orders GROUP BY day")
    spark.sql("INSERT INTO orders VALUES (8, 'tue', 4)")
    # As if it had opened the table just before.
    report = other._engine.refresh_open(opened, Request())
    assert report.mode == "differential"
    assert is_exact(t, spark, "daily", "SELECT day, max(amount) FROM orders GROUP BY day")


def test_partitions_are_altered_with_the_rows(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    t.alter("daily", partition_by=["day"])
    assert spark.sql("DESCRIBE DETAIL daily").first()["partitionColumns"] == ["day"]
    spark.sql("INSERT INTO orders VALUES (9, 'fri', 4)")
    assert t.refresh("daily").mode == "differential"
    assert is_exact(t, spark, "daily", "SELECT day, sum(amount) FROM orders GROUP BY day")


def test_create_replaces_or_leaves_what_is_there(t, spark, orders):
    query = "SELECT day, sum(amount) AS total FROM orders GROUP BY day"
    t.create("daily", query, if_not_exists=True)
    stood = versions(spark, "daily")
    t.create("daily", "SELECT 1 AS one", if_not_exists=True)
    t.create("daily", query, replace=True)
    assert versions(spark, "daily") == stood
    for words in ({"replace": True}, {"if_not_exists": True}):
        with pytest.raises(DefinitionError, match="NAME_TAKEN"):
            t.create("orders", query, **words)


def test_a_dataframe_replaces_a_query_and_itself(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    t.alter("daily", spark.table("orders").groupBy("day").max("amount"))
    assert is_exact(t, spark, "daily", "SELECT day, max(amount) FROM orders GROUP BY day")
    stood = versions(spark, "daily")
    t.alter("daily", spark.table("orders").groupBy("day").max("amount"))
    assert versions(spark, "daily") == stood


def test_tables_that_are_read_are_neither_dropped_nor_renamed(t, spark, orders):
    t.create("a", "SELECT id, amount FROM orders")
    t.create("b", "SELECT id FROM a")
    t.create("c", "SELECT a.id FROM a JOIN b ON a.id = b.id")
    with pytest.raises(DefinitionError, match=r"STILL_READ.*b, .*c"):
        t.drop("a")
    with pytest.raises(DefinitionError, match="STILL_READ"):
        t.rename("a", "z")
    with pytest.raises(DefinitionError, match="BAD_NAME"):
        t.rename("c", "default.c")
    with pytest.raises(DefinitionError, match="CYCLE"):
        t.alter("a", "SELECT id, id AS amount FROM c")
    renamed = t.rename("c", "d")
    spark.sql("INSERT INTO orders VALUES (10, 'sat', 1)")
    t.refresh_all()
    assert rows(spark, renamed.name) == rows(spark, "b")
    assert t.refresh("d").mode == "no_data"
    with pytest.raises(UnknownTableError):
        t.refresh("c")
    t.drop("a", cascade=True)
    assert t.tables() == []


def test_restored_rows_go_on_from_their_own_frontier(t, spark, orders):
    query = "SELECT day, sum(amount) AS total, count(DISTINCT id) AS ids FROM orders GROUP BY day"
    t.create("daily", query)
    first = t.refresh("daily").version
    then, stood = rows(spark, "daily"), t.table("daily").frontier
    spark.sql("UPDATE orders SET amount = 100 WHERE id = 3")
    t.refresh("daily")
    t.restore("daily", first)
    assert rows(spark, "daily") == then
    assert t.table("daily").frontier == stood
    assert t.verify("daily")
    assert t.refresh("daily").mode == "differential"
    assert is_exact(t, spark, "daily", query)
    with pytest.raises(StateError, match="NO_SUCH_VERSION"):
        t.restore("daily", 999)
    t.alter("daily", "SELECT day, max(amount) AS total FROM orders GROUP BY day")
    with pytest.raises(StateError, match="OTHER_QUERY"):
        t.restore("daily", first)


WRONG = (
    ({"colour": "red"}, "UNKNOWN_OPTION"),
    ({"timeout": "soon"}, "BAD_OPTION"),
    ({"max_change_rows": 0}, "BAD_OPTION"),
    ({"partition_by": "moon"}, "BAD_OPTION"),
    ({"partition_by": "day", "cluster_by": "day"}, "BAD_OPTION"),
    ({"properties": {"trickle.definition": "x"}}, "BAD_OPTION"),
    ({"location": "/elsewhere"}, "BAD_OPTION"),
    ({"schedule": "now and then"}, "BAD_SCHEDULE"),
    ({"mode": "fast"}, "BAD_MODE"),
)


def test_wrong_words_change_nothing(t, spark, orders):
    t.create("daily", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    stood = versions(spark, "daily")
    for words, code in WRONG:
        with pytest.raises(DefinitionError, match=code):
            t.alter("daily", **words)
        if "location" not in words:
            with pytest.raises(DefinitionError, match=code):
                t.create("other", "SELECT day FROM orders", **words)
    with pytest.raises(NotDifferentiableError):
        t.alter("daily", "SELECT rand() AS total", mode="differential")
    with pytest.raises(UnknownTableError):
        t.alter("nothing", comment="x")
    assert versions(spark, "daily") == stood
    assert [table.name for table in t.tables()] == ["altered.daily"]
