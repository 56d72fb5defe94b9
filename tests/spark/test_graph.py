"""Stream tables over stream tables: one run, one cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trickle import DefinitionError, SourceError, StateError, SuspendedError, Trickle, UnknownTableError
from trickle.model.definition import RefreshRecord
from trickle.schedule.idle import Idle

NAMES = ("sums", "counts", "means", "rich")
MEANS = "SELECT s.customer, total, n FROM sums s JOIN counts c ON s.customer = c.customer"


@pytest.fixture(scope="module")
def diamond(spark):
    """Two tables over orders, a third over both, and a fourth over that one and people."""
    spark.sql("CREATE DATABASE graph")
    spark.sql("USE graph")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount BIGINT) USING delta")
    spark.sql("INSERT INTO orders VALUES (1,'ann',10),(2,'bob',20),(3,'ann',5)")
    spark.sql("CREATE TABLE people (name STRING, city STRING) USING delta")
    spark.sql("INSERT INTO people VALUES ('ann','Oslo'),('bob','Rome')")
    trickle = Trickle(spark)
    trickle.create("sums", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    trickle.create("counts", "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    trickle.create("means", MEANS)
    trickle.create("rich", "SELECT city, sum(total) AS total FROM means JOIN people ON name = customer GROUP BY city")
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE graph CASCADE")


@pytest.fixture
def graph(spark, diamond):
    """The diamond, with all its tables at one cut."""
    spark.sql("USE graph")
    assert diamond.refresh_all(NAMES)
    return diamond


def order(spark, *values):
    spark.sql(f"INSERT INTO orders VALUES {', '.join(map(str, values))}")


def head(spark, name):
    return spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()["version"]


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def expected_totals(spark, version):
    return rows(spark.sql(f"SELECT customer, sum(amount) FROM orders VERSION AS OF {version} GROUP BY customer"))


def test_a_run_brings_every_table_to_one_cut(spark, graph):
    order(spark, (4, "bob", 7))

    report = graph.refresh_all(NAMES)

    assert report.ok
    assert list(report.tables) == ["graph.counts", "graph.sums", "graph.means", "graph.rich"]
    assert {r.mode for r in report.tables.values()} == {"differential"}
    assert report.cut == {"orders": head(spark, "orders"), "people": head(spark, "people")}
    assert all(graph.verify(name) for name in NAMES)
    assert {r.mode for r in graph.refresh_all(NAMES).tables.values()} == {"no_data"}


def test_tables_side_by_side_give_the_same(spark, graph):
    for number in range(2):
        order(spark, (10 + number, "ann", number + 1))
        assert graph.refresh_all(NAMES, workers=3)

    assert all(graph.verify(name) for name in NAMES)


def test_a_run_goes_to_the_versions_asked_for(spark, graph):
    order(spark, (4, "bob", 7))
    between = head(spark, "orders")
    order(spark, (5, "bob", 8))

    assert graph.refresh_all(NAMES, at={"orders": between}).cut["orders"] == between

    assert [row[:2] for row in rows(spark.table("means"))] == expected_totals(spark, between)


def test_a_run_takes_no_table_back_that_others_have_brought_further(spark, graph):
    graph.create("strict", "SELECT customer, min(amount) AS least FROM orders GROUP BY customer", mode="differential")
    began = head(spark, "orders")
    order(spark, (4, "bob", 7))

    def come_between(name, _):
        if name == "graph.counts":  # the first of the run
            order(spark, (5, "bob", 1))
            graph.refresh("sums")
            graph.refresh("strict")

    report = graph._engine.refresh_all(None, None, on_outcome=come_between)

    assert report.ok
    assert report.cut["orders"] == began + 1
    modes = {name.removeprefix("graph."): done.mode for name, done in report.tables.items()}
    assert modes == dict.fromkeys(("counts", "means", "rich"), "differential") | {
        "sums": "no_data",
        "strict": "no_data",
    }
    assert set(report.off_cut) == {"graph.sums", "graph.strict", "graph.means", "graph.rich"}
    assert rows(spark.table("sums")) == expected_totals(spark, began + 2)
    assert graph._engine.refresh_all(None, {"orders": began + 1}).tables["graph.sums"].mode == "full"
    report = graph.refresh_all()
    assert (report.off_cut, all(graph.verify(name) for name in NAMES)) == ((), True)
    graph.drop("strict")


def test_a_run_that_is_ended_begins_no_other_table(spark, graph):
    order(spark, (4, "bob", 7))
    members, done = graph._engine.members(), []

    for workers in (1, 2):
        done.clear()
        report = graph._engine.run_members(
            members,
            [*members.members],
            workers=workers,
            on_outcome=lambda name, _: done.append(name),
            is_ended=lambda: len(done) >= workers,  # noqa: B023
        )
        assert set(report.tables) == set(done)
        assert len(done) < len(NAMES)
        assert report.ok


def test_a_table_that_is_suspended_after_the_run_began_is_skipped(spark, graph):
    order(spark, (4, "bob", 7))
    before = head(spark, "sums")

    report = graph._engine.refresh_all(None, None, on_outcome=lambda *_: graph.suspend("sums"))

    assert report.ok
    assert [*report.skipped] == ["graph.sums"]
    assert head(spark, "sums") == before + 1  # the suspension itself
    assert set(report.off_cut) == {"graph.means", "graph.rich"}
    graph.resume("sums")
    with pytest.raises(SuspendedError):
        graph.write_and_refresh(lambda: order(spark, (5, "bob", 7)) or graph.suspend("sums"), ["means"])
    graph.resume("sums")


def test_some_tables_are_refreshed_with_all_that_they_read(spark, graph):
    order(spark, (4, "bob", 7))

    assert set(graph.refresh_all(["means"]).tables) == {"graph.sums", "graph.counts", "graph.means"}


def test_what_changes_no_row_stops_the_run(spark, graph):
    before = head(spark, "means")
    spark.sql("UPDATE orders SET id = id + 1000")  # a column that no table reads

    report = graph.refresh_all(NAMES)

    sums, means = report.tables["graph.sums"], report.tables["graph.means"]
    assert (sums.mode, sums.rows_inserted, sums.rows_deleted) == ("differential", 0, 0)
    assert means.mode == "no_data"
    assert head(spark, "means") == before
    every_commit = Trickle(spark, options=graph.options.__class__(idle_versions=0))
    assert every_commit.refresh_all(NAMES).tables["graph.means"].mode == "differential"
    assert head(spark, "means") == before + 1


def test_upstream_that_is_recomputed_sends_down_only_what_differs(spark, graph):
    order(spark, (4, "bob", 7))

    assert graph.refresh("sums", full=True).mode == "full"
    means = graph.refresh_all(NAMES).tables["graph.means"]

    assert (means.mode, means.changed) == ("differential", {"sums": 2, "counts": 2})


def test_a_failure_stops_only_what_reads_it(spark, graph):
    graph.create("ratio", "SELECT id, 100 / amount AS ratio FROM orders WHERE amount < 100")
    graph.create("best", "SELECT max(ratio) AS best FROM ratio")
    order(spark, (4, "bob", 0))

    report = graph.refresh_all([*NAMES, "best"], workers=2)

    assert not report
    codes = {name: error.code for name, error in report.errors.items()}
    assert codes == {"graph.ratio": "DIVIDE_BY_ZERO", "graph.best": "UPSTREAM_FAILED"}
    assert set(report.tables) == {f"graph.{name}" for name in NAMES}
    spark.sql("DELETE FROM orders WHERE amount = 0")
    assert graph.refresh_all(["best"])
    assert graph.verify("best")
    graph.drop("best")
    graph.drop("ratio")


def test_a_table_that_cannot_be_opened_stops_what_reads_it(spark, graph):
    spark.sql("CREATE TABLE passing (id INT) USING delta")
    graph.create("gone", "SELECT count(*) AS n FROM passing")
    graph.create("below", "SELECT n, o.id FROM gone JOIN orders AS o ON o.id > n")
    spark.sql("DROP TABLE passing")
    order(spark, (5, "bob", 7))

    for report in (graph.refresh_all(), graph.refresh_all(["below"], workers=2)):
        assert report.errors["graph.below"].code == "UPSTREAM_FAILED"
        assert "graph.below" not in report.tables
    assert set(graph.refresh_all().errors) == {"graph.gone", "graph.below"}
    graph.drop("gone", cascade=True)


def test_frames_of_one_cut_belong_together_while_a_run_is_going_on(spark, graph):
    before = head(spark, "orders")
    order(spark, (4, "bob", 7))
    graph.refresh("sums")  # as if a run had come this far

    sums, means = graph.read(["sums", "means"])

    assert rows(sums) == expected_totals(spark, before)
    assert [row[:2] for row in rows(means)] == rows(sums)
    graph.refresh_all(NAMES)
    sums, means = graph.read(["sums", "means"])
    assert rows(sums) == expected_totals(spark, before + 1)
    assert [row[:2] for row in rows(means)] == rows(sums)


def test_a_table_that_a_run_left_alone_belongs_to_its_cut(spark, graph):
    spark.sql("UPDATE orders SET id = id + 1000")  # a column that no table reads
    spark.sql("INSERT INTO people VALUES ('eve','Bonn')")
    graph.refresh_all(NAMES)

    frames = graph.read(NAMES)

    assert [rows(frame) for frame in frames] == [rows(spark.table(name)) for name in NAMES]


def test_a_version_after_a_refresh_belongs_to_the_cut_of_that_refresh(spark, graph):
    order(spark, (4, "bob", 7))
    for name in ("sums", "counts"):
        graph.refresh(name)
    graph.suspend("sums")
    graph.resume("sums")
    spark.sql("OPTIMIZE counts")
    graph.refresh("means")

    sums, means = graph.read(["sums", "means"])

    assert rows(sums) == expected_totals(spark, head(spark, "orders"))
    assert [row[:2] for row in rows(means)] == rows(sums)


def test_each_commit_records_the_base_versions_it_stands_for(spark, graph):
    order(spark, (4, "bob", 7))
    graph.refresh_all(NAMES)

    _, text = next(graph._engine.tables.get("graph.rich").target.records(1))

    base = RefreshRecord.model_validate_json(text).base
    assert base is not None
    assert {(b.name, b.version) for b in base.values()} == {
        ("orders", head(spark, "orders")),
        ("people", head(spark, "people")),
    }


def test_what_spark_recomputes_has_no_cut_and_is_not_verified_by_itself(spark, graph):
    graph.create("random", "SELECT id, rand() AS r FROM orders", verify_every="1d", schedule="downstream")
    graph.create("below", "SELECT count(r) AS n FROM random")
    order(spark, (4, "bob", 7))

    report = graph.refresh_all()

    assert set(report.off_cut) == {"graph.random", "graph.below"}
    for name in report.off_cut:
        _, text = next(graph._engine.tables.get(name).target.records(1))
        assert RefreshRecord.model_validate_json(text).base is None
    now = datetime.now(UTC)
    idle, found = Idle(graph._engine, now - timedelta(days=2)), set()
    while task := idle._next(graph._engine.members().only([]), now):
        idle._done[task[:2]] = now
        found.add(task[0])
    assert found == {"tidy", "warn", "vacuum"}
    graph.drop("random", cascade=True)


def test_sources_that_do_not_belong_together_have_no_base(spark, graph):
    order(spark, (4, "bob", 7))
    graph.refresh("sums")
    graph.refresh("means")

    _, text = next(graph._engine.tables.get("graph.means").target.records(1))

    assert RefreshRecord.model_validate_json(text).base is None


def test_tables_without_a_common_cut_say_so(spark, graph):
    order(spark, (4, "bob", 7))
    graph.create("late", "SELECT count(*) AS n FROM orders")

    with pytest.raises(StateError) as caught:
        graph.read(["late", "sums"])

    assert caught.value.code == "NO_COMMON_CUT"
    assert "refresh_all" in str(caught.value.hint)
    graph.refresh_all(["late", "sums"])
    assert len(graph.read(["late", "sums"])) == 2
    graph.drop("late")


@pytest.mark.parametrize(
    ("call", "error", "code"),
    [
        (lambda t: t.refresh_all(["nobody"]), UnknownTableError, "UNKNOWN_TABLE"),
        (lambda t: t.refresh_all("sums"), DefinitionError, "BAD_OPTION"),
        (lambda t: t.refresh_all(workers=0), DefinitionError, "BAD_OPTION"),
        (lambda t: t.refresh_all(at={"nobody": 1}), SourceError, "UNKNOWN_SOURCE"),
        (lambda t: t.refresh_all(at={"orders": 9999}), SourceError, "NO_SUCH_VERSION"),
        (lambda t: t.read(["orders"]), UnknownTableError, "UNKNOWN_TABLE"),
    ],
)
def test_bad_input_is_named(graph, call, error, code):
    with pytest.raises(error) as caught:
        call(graph)

    assert caught.value.code == code
