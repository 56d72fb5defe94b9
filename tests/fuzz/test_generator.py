"""The generator itself, without Spark: reproducible, covers what it should, shrinks, says no clearly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from trickle.testing.fuzz import __main__ as command
from trickle.testing.fuzz import choose as choosing
from trickle.testing.fuzz.case import Case, Failure, View, draw_case
from trickle.testing.fuzz.compare import differences
from trickle.testing.fuzz.queries import Queries
from trickle.testing.fuzz.report import script
from trickle.testing.fuzz.shrink import shrink
from trickle.testing.fuzz.sql import Relation, constructs
from trickle.testing.fuzz.tables import Row, Table, draw_table


def test_the_same_seed_and_number_give_the_same_case():
    assert draw_case(7, 12) == draw_case(7, 12)
    assert draw_case(7, 12) != draw_case(7, 13)
    assert draw_case(7, 12) != draw_case(8, 12)


def test_every_way_to_build_a_query_is_drawn():
    found: set[str] = set()
    for number in range(1500):
        rng = Random(number)
        found |= constructs(Queries(rng, (draw_table(rng, "a"), draw_table(rng, "b"))).draw())

    joins = {f"{natural}{kind}JOIN" for natural in ("", "NATURAL ") for kind in ("", "LEFT ", "RIGHT ", "FULL ")}
    using = {f"{kind}JOIN USING" for kind in ("", "LEFT ", "RIGHT ", "FULL ")}
    sets = {"UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"}
    subqueries = {
        "EXISTS",
        "NOT EXISTS",
        "IN subquery",
        "NOT IN subquery",
        "scalar subquery",
        "correlated scalar subquery",
    }
    groups = {"GROUP BY", "GROUPING SETS", "ROLLUP", "CUBE", "HAVING", "FILTER", "DISTINCT", "PIVOT", "UNPIVOT"}
    orders = {"LIMIT", "OFFSET", "window", "window in an expression", "top-N by rank"}
    laterals = {
        f"{how}: {what}" for how in ("LATERAL", "LEFT JOIN LATERAL") for what in ("top-N", "aggregate", "UNION")
    }
    others = {
        "LEFT SEMI JOIN",
        "LEFT ANTI JOIN",
        "CROSS JOIN",
        "recursion",
        "CTE used twice",
        "VALUES",
        "part of a nested column",
        "CASE",
        "casts",
    }
    assert joins | using | sets | subqueries | groups | orders | laterals | others <= found


def test_a_case_shrinks_to_what_makes_it_fail():
    case = next(
        case
        for case in (draw_case(3, number, views=1) for number in range(300))
        if "INTERSECT" in case.views[0].constructs and len(case.views[0].sql) > 800
    )

    def check(case: Case) -> Failure | None:
        has_rows = any(change.rows for round_ in case.rounds for change in round_)
        return Failure(case, "wrong", "") if "INTERSECT (" in case.views[0].sql and has_rows else None

    small = shrink(Failure(case, "wrong", ""), check, seconds=120).case

    assert len(small.views[0].sql) < 250
    assert [len(round_) for round_ in small.rounds] == [1]
    assert len(small.rounds[0][0].rows) <= 1 or small.rounds[0][0].kind == "merge"
    assert sum(len(table.rows) for table in small.tables) == 0


def test_a_failure_is_written_as_a_program():
    case = draw_case(3, 1, views=1)
    text = script(Failure(case, "rows differ", "two\nlines"), "make fuzz SEED=3 CASE=1")

    compile(text, "failure", "exec")
    assert case.views[0].sql in text or repr(case.views[0].sql) in text


def test_a_view_may_be_plain_text():
    assert View("SELECT 1", "default").sql == "SELECT 1"
    assert isinstance(draw_case(1, 1).views[0].query, Relation)


class Answers:
    """Plain Spark whose answers are known: by a query, over the first rows and over later ones."""

    def __init__(self, answers: dict[str, tuple[list[Row], list[Row]]], tables: int) -> None:
        self.answers = answers
        self.tables = tables
        self.shown = 0

    def show(self, table: Table, rows: Iterable[Row]) -> None:
        assert all(len(row) == len(table.columns) for row in rows)
        self.shown += 1

    def rows(self, sql: str) -> list[Row]:
        return self.answers[sql][self.shown > self.tables]


def test_views_are_chosen_that_have_rows_and_change(monkeypatch):
    monkeypatch.setattr(choosing, "ANYWAY", 0.0)
    answers = {
        "empty": ([], [(1,)]),
        "changes": ([(1,)], [(2,)]),
        "stays": ([(1,)], [(1,)]),
        "too long": ([(n,) for n in range(choosing.RESULT_ROWS + 1)], []),
        "grows": ([(1,)], [(1,), (1,)]),
        "late": ([(1,)], []),
    }
    case = replace(draw_case(7, 1), views=tuple(View(sql, "default") for sql in answers))

    def chosen(count: int) -> list[str]:
        return [view.sql for view in choosing.choose(Answers(answers, len(case.tables)), case, count).views]

    assert chosen(2) == ["changes", "grows"]
    assert chosen(9) == ["changes", "grows", "late"]
    monkeypatch.setattr(choosing, "ANYWAY", 1.0)
    assert chosen(3) == ["empty", "changes", "stays"]


def test_rounds_are_fewer_where_spark_does_most():
    lengths = {regime: len(draw_case(7, 3, regime=regime).rounds) for regime in ("default", "big changes")}
    assert lengths["big changes"] <= lengths["default"]
    assert len(draw_case(7, 3, regime="default without driver_execution").rounds) == lengths["big changes"]


@pytest.mark.parametrize(
    ("found", "expected", "extra", "missing"),
    [
        ([(1,), (1,)], [(1,)], 1, 0),
        ([(math.nan, None)], [(math.nan, None)], 0, 0),
        ([(0.0,)], [(-0.0,)], 0, 0),
        ([(0.1 + 0.2, "a")], [(0.3, "a")], 0, 0),
        ([(0.3001, "a")], [(0.3, "a")], 1, 1),
        ([({"a": 1, "b": [2]},)], [({"a": 1, "b": [2]},)], 0, 0),
        ([(None,)], [(0,)], 1, 1),
        ([(math.inf,)], [(-math.inf,)], 1, 1),
    ],
)
def test_rows_are_compared_as_bags(found, expected, extra, missing):
    too_many, lacking = differences(found, expected)
    assert (len(too_many), len(lacking)) == (extra, missing)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--minutes", "soon"], "minutes"),
        (["--minutes", "-1"], "minutes"),
        (["--seed", "x"], "whole number"),
        (["--case", "-3"], "whole number"),
        (["--regime", "nothing at all"], "look-ups"),
        (["--regime", "default without everything"], "key_lookup"),
    ],
)
def test_bad_input_is_told_with_what_is_valid(arguments, told, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
