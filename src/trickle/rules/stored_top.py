"""Change of the first k rows, from the stored ones and the change alone.

Law    no stored row was deleted  =>  top(R1) = top(stored + change(R)),  without rows of negative weight
Cost   k rows and the change; the input itself is read only if a stored row was deleted
Needs  the stored rows to have all columns that decide the order, and no OFFSET

A row outside the first k can enter only if one of the k leaves. A deleted row that is not stored was not among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trickle.algebra.expr import WEIGHT, Call, Col, Lit, passthrough
from trickle.algebra.plan import Filter, Plan, Project, Repeat, Scan, SemiJoin, TopK
from trickle.algebra.walk import sources
from trickle.model.names import is_state_table
from trickle.rules.derive import difference, net, restrict, total, weighted

if TYPE_CHECKING:
    from trickle.rules import Derive


def can_use_stored(plan: Plan) -> bool:
    """Return whether the stored rows are enough to rank new ones among them, and the input is not small itself."""
    return (
        isinstance(plan, TopK)
        and plan.limit is not None
        and plan.offset == 0
        and all(c.orderable for c in plan.columns)
        and not all(is_state_table(source) for source in sources(plan))
    )


def change_from_stored(plan: Plan, of: Derive, stored: Scan) -> tuple[Plan, Plan]:
    """Return the stored rows that were deleted, and the change of the top if there are none."""
    if not isinstance(plan, TopK):
        message = "only a top-k has stored rows to rank among"
        raise TypeError(message)
    change = of.trigger(of.change(plan.child))
    return deleted_rows(stored, change), net(difference(replace(plan, child=remaining_rows(stored, change)), stored))


def deleted_rows(stored: Plan, change: Plan) -> SemiJoin:
    """Return the stored rows that a change deletes a copy of."""
    went = Filter(Call("<", (Col(WEIGHT), Lit(0))), change)
    return restrict(stored, tuple(map(Col, stored.columns)), Project(passthrough(stored.columns), went))


def remaining_rows(stored: Plan, change: Plan) -> Plan:
    """Return what stored rows and a change make together, without rows of negative weight."""
    both = Filter(Call(">", (Col(WEIGHT), Lit(0))), net(total(weighted(stored, 1), change)))
    return Project(passthrough(stored.columns), Repeat(both))
