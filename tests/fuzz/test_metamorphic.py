"""Laws between stream tables: what must come out the same whichever way it is done."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pytest

from trickle import Trickle
from trickle.model.options import OPTIMISATIONS
from trickle.testing.fuzz.changes import Change
from trickle.testing.fuzz.compare import differences
from trickle.testing.fuzz.queries import Queries
from trickle.testing.fuzz.sql import render
from trickle.testing.fuzz.tables import DECIMAL, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trickle.testing.fuzz.database import Database
    from trickle.testing.fuzz.run import Bench

TABLES = (
    Table(
        "a",
        (("id", "bigint"), ("k", "int"), ("s", "string"), ("v", DECIMAL)),
        tuple((n, n % 4 or None, "abcd"[n % 3] * (n % 2 + 1), Decimal(n)) for n in range(12)),
        change_feed=True,
    ),
    Table(
        "b",
        (("id", "bigint"), ("k", "int"), ("w", "int")),
        tuple((n, n % 5, n // 2) for n in range(9)),
    ),
)
COMMITS = (
    Change("a", "insert", rows=((20, 1, "a", Decimal("0.50")), (21, None, None, None))),
    Change("b", "delete", where="k = 2"),
    Change("a", "update", where="k = 3", column="k", value=2),
    Change("b", "insert", rows=((30, 2, 7), (31, 1, None))),
)
WRITTEN = {
    "groups of a join": "SELECT s, sum(v) AS total, max(w) AS most, count(*) AS n FROM a JOIN b USING (k) GROUP BY s",
    "first rows of groups": "SELECT k, count(DISTINCT s) AS n FROM a GROUP BY k ORDER BY n DESC, k LIMIT 3",
    "ranks beside a full join": """
        SELECT *, rank() OVER (PARTITION BY k ORDER BY v, w) AS r
        FROM (SELECT coalesce(a.k, b.k) AS k, v, w FROM a FULL JOIN b ON a.k = b.k AND v > w)
    """,
    "tests by subqueries": """
        SELECT id, s, (SELECT max(w) FROM b WHERE b.k = a.k) AS most FROM a
        WHERE NOT (v > 5 AND k NOT IN (SELECT w FROM b)) OR EXISTS (SELECT 1 FROM b WHERE b.id = a.id)
    """,
    "set operations under LATERAL": """
        SELECT d.k, t.w FROM (SELECT k FROM a EXCEPT SELECT w FROM b) d
        LEFT JOIN LATERAL (SELECT w FROM b WHERE b.k = d.k ORDER BY w, id LIMIT 2) t ON true
    """,
}
DRAWN = {f"drawn {seed}": render(Queries(Random(seed), TABLES, leaves=(3,)).draw(3)) for seed in (11, 12)}
EVERY = pytest.mark.parametrize("sql", [*WRITTEN.values(), *DRAWN.values()], ids=[*WRITTEN, *DRAWN])


@pytest.fixture
def database(bench: Bench) -> Iterator[Database]:
    with bench.database(TABLES) as made:
        yield made


@pytest.fixture
def trickle(bench: Bench) -> Trickle:
    return Trickle(bench.spark)


def same(found: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> bool:
    return differences(found, expected) == ([], [])


@EVERY
def test_ways_to_the_same_rows(database, trickle, sql):
    """Commit by commit or at once, differential or full, all give plain Spark's rows."""
    for name, mode in (("stepwise", "differential"), ("at_once", "differential"), ("twin", "full")):
        trickle.create(name, sql, mode=mode)
    for commit in COMMITS:
        database.change((commit,))
        assert trickle.refresh("stepwise").mode in ("differential", "no_data")
    assert trickle.refresh("at_once").mode == "differential"
    trickle.refresh("twin")

    expected = database.plain_rows(sql)
    assert same(database.rows("stepwise"), expected)
    assert same(database.rows("at_once"), expected)
    assert same(database.rows("twin"), expected)
    assert trickle.refresh("stepwise").mode == "no_data"
    assert trickle.refresh("at_once").mode == "no_data"


@EVERY
def test_insert_then_delete_is_nothing(database, trickle, sql):
    trickle.create("result", sql, mode="differential")
    before = database.rows("result")

    database.change(
        (
            Change("a", "insert", rows=((99, 1, "a", Decimal(3)), (99, None, "b", None))),
            Change("b", "insert", rows=((99, 1, 4),)),
            Change("a", "delete", where="id = 99"),
            Change("b", "delete", where="id = 99"),
        )
    )
    report = trickle.refresh("result")

    assert (report.rows_inserted, report.rows_deleted) == (0, 0)
    assert report.mode in ("differential", "no_data")
    assert same(database.rows("result"), before)


def test_a_stream_table_over_a_stream_table_is_the_composed_query(database, trickle):
    inner = WRITTEN["groups of a join"]
    outer = "SELECT n, count(*) AS groups, max(total) AS most FROM {} GROUP BY n"
    trickle.create("inner_result", inner, mode="differential")
    trickle.create("outer_result", outer.format("inner_result"), mode="differential")
    trickle.create("composed", outer.format(f"({inner})"), mode="differential")

    for commit in COMMITS:
        database.change((commit,))
        for name in ("inner_result", "outer_result", "composed"):
            assert trickle.refresh(name).mode in ("differential", "no_data")
        expected = database.plain_rows(outer.format(f"({inner})"))
        assert same(database.rows("outer_result"), expected)
        assert same(database.rows("composed"), expected)


FEW = slice(3)
REST = pytest.param(slice(3, None), marks=pytest.mark.slow)


@pytest.mark.parametrize("some", [FEW, REST], ids=["few", "rest"])
def test_declared_keys_change_nothing(database, trickle, some):
    names = {f"view{number}": sql for number, sql in enumerate([*WRITTEN.values(), *DRAWN.values()][some])}
    for name, sql in names.items():
        trickle.create(name, sql, mode="differential")
    trickle.declare("a", primary_key="id")
    trickle.declare("b", primary_key="id")

    for half in (COMMITS[:2], COMMITS[2:]):
        database.change(half)
        for name, sql in names.items():
            assert trickle.refresh(name).mode in ("differential", "no_data")
            assert same(database.rows(name), database.plain_rows(sql))
    assert all(trickle.verify(name) for name in names)


@pytest.mark.slow
@EVERY
def test_optimisations_off_alone_and_all(bench, database, sql):
    """Each optimisation is switched off alone, and all of them together, for every query."""
    engines = {f"without_{name}": Trickle(bench.spark, disable={name}) for name in sorted(OPTIMISATIONS)}
    engines["without_any"] = Trickle(bench.spark, disable=OPTIMISATIONS)
    for name, engine in engines.items():
        engine.create(name, sql, mode="differential")

    for half in (COMMITS[:2], COMMITS[2:]):
        database.change(half)
        expected = database.plain_rows(sql)
        for name, engine in engines.items():
            assert engine.refresh(name).mode in ("differential", "no_data"), name
            assert same(database.rows(name), expected), name
