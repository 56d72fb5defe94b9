"""Change of the first rows of each partition, from the stored ones and the change alone.

Law    no stored row of a partition was deleted  =>  first(R1) = first(stored + change(R)),  without rows of negative weight
Cost   the change and the stored rows of its partitions; a partition is read if one of its stored rows was deleted
Needs  the stored rows to have all columns of the input, and ranks alone to be kept up to a bound

``first`` is ``rank <= k`` of ROW_NUMBER, RANK or DENSE_RANK: whether a row is kept depends on the rows before it alone. A row
that is not stored has k rows before it, or as many as share k places; while they stay, it stays away. A deleted row that is not
stored was not among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trickle.algebra.expr import Col, Column, Output
from trickle.algebra.plan import Filter, Plan, Project, Scan, Union, Window
from trickle.algebra.walk import transform
from trickle.rules.derive import difference, net, restrict
from trickle.rules.stored_top import deleted_rows, remaining_rows

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr
    from trickle.rules import Derive


@dataclass(frozen=True, slots=True)
class FirstRanks:
    """A plan that keeps the first rows of each partition, and shows all columns of the rows that it ranks.

    Attributes:
        plan: The plan: renamed columns of a filter by ranks over a window.
        window: The window.
        shown: The plan's columns that hold those of the window's input.
    """

    plan: Plan
    window: Window
    shown: tuple[Column, ...]

    @property
    def partition(self) -> tuple[Expr, ...]:
        """The partition by the plan's columns."""
        of = dict(zip(self.window.child.columns, self.shown, strict=True))
        return tuple(Col(of[p.column]) for p in self.window.partition if isinstance(p, Col))


def find_first_ranks(plan: Plan) -> FirstRanks | None:
    """Find a filter by ranks on top of a plan, below mere renames; None if it does not show all of the rows it ranks."""
    node, renames = plan, list[Project]()
    while isinstance(node, Project) and all(isinstance(o.expr, Col) for o in node.outputs):
        renames.append(node)
        node = node.child
    if not (isinstance(node, Filter) and node.keeps_first and isinstance(node.child, Window)):
        return None
    window = node.child
    ranked = window.child.columns
    # Where an open order was closed, some of the ranks are those of a window below.
    if not node.condition.refs <= {o.column.id for o in window.functions}:
        return None
    if not all(c.orderable for c in ranked) or not all(isinstance(p, Col) for p in window.partition):
        return None
    shown = {c.id: c for c in ranked}
    for project in reversed(renames):
        named = {next(iter(o.expr.refs)): o.column for o in project.outputs}
        shown = {id_: named[c.id] for id_, c in shown.items() if c.id in named}
    if len(shown) < len(ranked):
        return None
    return FirstRanks(plan, window, tuple(shown[c.id] for c in ranked))


def change_of_first_ranks(first: FirstRanks, of: Derive, stored: Scan) -> Plan:
    """Return the change of the first rows of each partition that the change touches."""
    window, child = first.window, first.window.child
    change = of.trigger(of.change(child))
    before = of.share(restrict(stored, first.partition, of.keys(change, window.partition)))
    ranked = _as_ranked(first, before)
    hit = of.keys(deleted_rows(ranked, change), window.partition, distinct=True)
    intact = replace(restrict(remaining_rows(ranked, change), window.partition, hit), kind="anti")
    rows = Union((intact, restrict(of.new(child), window.partition, hit)), child.columns)
    return net(difference(_over(first, rows), before))


def change_of_first_ranks_of_all(first: FirstRanks, of: Derive, stored: Scan) -> tuple[Plan, Plan]:
    """Return the stored rows that were deleted, and the change if there are none, where all rows are one partition."""
    change = of.trigger(of.change(first.window.child))
    ranked = _as_ranked(first, stored)
    return deleted_rows(ranked, change), net(difference(_over(first, remaining_rows(ranked, change)), stored))


def _as_ranked(first: FirstRanks, stored: Plan) -> Project:
    """Return stored rows as those that the window ranks."""
    columns = zip(first.window.child.columns, first.shown, strict=True)
    return Project(tuple(Output(ranked, Col(shown)) for ranked, shown in columns), stored)


def _over(first: FirstRanks, rows: Plan) -> Plan:
    """Return the plan over other rows."""
    return transform(first.plan, lambda p: replace(first.window, child=rows) if p is first.window else p)
