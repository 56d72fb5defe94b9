"""Small tables for golden plans: scans with named columns, and rows for every table, old and new."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from trickle.algebra.expr import Call, Col, Expr, KeyPair, Lit, Output, new_column
from trickle.algebra.plan import Filter, InnerJoin, Plan, Project, Scan
from trickle.algebra.walk import walk
from trickle.rules.derive import Derive

if TYPE_CHECKING:
    from trickle.testing.evaluate import Bag


def table(name: str, *columns: str) -> Scan:
    """Return a scan of a table of whole numbers."""
    return Scan(name, tuple(new_column(c, "bigint") for c in columns))


def orders() -> Scan:
    return table("orders", "id", "customer", "amount")


def customers() -> Scan:
    return table("customers", "id", "city")


def cities() -> Scan:
    return table("cities", "id", "name")


def col(plan: Plan, name: str) -> Col:
    """Return a column of a plan by its name."""
    return Col(next(c for c in plan.columns if c.name == name))


def out(name: str, expr: Expr) -> Output:
    return Output(new_column(name, "bigint"), expr)


def pick(plan: Plan, *names: str) -> Project:
    """Hand on some columns under their ids."""
    return Project(tuple(Output(col(plan, n).column, col(plan, n)) for n in names), plan)


def positive(plan: Plan, name: str) -> Filter:
    return Filter(Call(">", (col(plan, name), Lit(0))), plan)


def joined(left: Plan, right: Plan, by: str, to: str = "id") -> InnerJoin:
    return InnerJoin(left, right, (KeyPair(col(left, by), col(right, to)),))


def rows_for(*plans: Plan) -> dict[tuple[str, str], Bag]:
    """Return rows for every table that plans read, at the old and the new frontier, and the change between."""
    found: dict[tuple[str, str], Bag] = {}
    for scan in (node for plan in plans for node in walk(plan)):
        if isinstance(scan, Scan) and (scan.source, "new") not in found:
            random = Random(scan.source)
            width = len(scan.base)
            old, new = (_rows(random, width) for _ in range(2))
            kept = _rows(random, width)
            old, new = old + kept, new + kept
            found[scan.source, "old"], found[scan.source, "new"] = old, new
            came, went = new - old, old - new
            found[scan.source, "change"] = Counter(
                {(*r, 1): n for r, n in came.items()} | {(*r, -1): n for r, n in went.items()}
            )
    return found


def _rows(random: Random, width: int) -> Bag:
    return Counter(tuple(random.choice((0, 1, 2, None)) for _ in range(width)) for _ in range(6))


def at_old(plan: Plan) -> Plan:
    """Return a plan over the old frontier."""
    sources = frozenset(p.source for p in walk(plan) if isinstance(p, Scan))
    return Derive(sources, {}).old(plan)
