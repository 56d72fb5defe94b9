"""Change plans are derived once, and again when the tables are no longer what their order of joins stands on."""

from __future__ import annotations

from trickle.algebra.expr import Col, KeyPair, new_column
from trickle.algebra.plan import InnerJoin, Plan, Scan
from trickle.algebra.walk import walk
from trickle.compile.change_plan import ApplyBag
from trickle.compile.program import Program, compile_plan

CHANGED = frozenset({"orders"})


def star() -> Program:
    """Orders with two tables that they meet by a key each."""
    first, second = new_column("a", "bigint"), new_column("b", "bigint")
    orders = Scan("orders", (first, second))
    joined: Plan = orders
    for name, key in (("items", first), ("places", second)):
        other = Scan(name, (new_column("k", "bigint"),))
        joined = InnerJoin(joined, other, (KeyPair(Col(key), Col(other.columns[0])),))
    return compile_plan(joined)


def order(program: Program, items: float, places: float) -> list[str]:
    """The tables in the order in which the change meets them, given how many rows of each have one key."""
    counts = {"items": items, "places": places}
    plan = program.derive(CHANGED, lambda source, _column: counts[source])
    assert isinstance(plan, ApplyBag)
    return [node.source for node in walk(plan.change) if isinstance(node, Scan) and node.source != "orders"]


def test_a_plan_made_without_statistics_is_not_kept_when_there_are_some():
    program = star()
    program.derive(CHANGED)

    assert order(program, 1, 100) == ["items", "places"]
    assert order(program, 100, 1) == ["places", "items"]


def test_the_order_of_joins_follows_growth():
    program = star()
    assert order(program, 2, 3) == ["items", "places"]
    assert order(program, 3, 2) == ["items", "places"], "not for a little"
    assert order(program, 50, 2) == ["places", "items"]
    assert order(program, 50, 900) == ["items", "places"]


def test_a_plan_is_derived_once_while_the_tables_are_about_the_same():
    program = star()
    first = program.derive(CHANGED, lambda _source, _column: 5.0)

    assert program.derive(CHANGED, lambda _source, _column: 12.0) is first
    assert program.derive(CHANGED, lambda _source, _column: 20.0) is not first


def test_only_so_many_plans_are_kept():
    program = star()
    for number in range(200):
        program.derive(frozenset({"orders", f"t{number}"}))

    assert len(program._derived.keys()) == 64
