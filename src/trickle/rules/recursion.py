"""Change of a recursive CTE, T = B + F(T, E) with F linear in T.

Law    change(T) = D0 + D1 + …,  D0 = change(B) + (F(T0, E1) - F(T0, E0)),  D(k+1) = F(Dk, E1),  T0 = old(T)
Cost   the rows that the change reaches, step by step; if E changed, T0 too
Needs  T0; no stored state

F(T1, E1) - F(T0, E0) = F(T1 - T0, E1) + (F(T0, E1) - F(T0, E0)): the change of T feeds on itself, starting from the changes
of B and E. Rows have multiplicities, so a row that is still reachable on another path keeps a positive count: deletions need
no delete-and-rederive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trickle.algebra.expr import WEIGHT, Col, Output
from trickle.algebra.plan import Iterate, Loop, LoopRef, Plan, Project, Union
from trickle.algebra.walk import transform
from trickle.rules.derive import net

if TYPE_CHECKING:
    from trickle.rules.derive import Derive


def change_of_loop(plan: Plan, of: Derive) -> Plan:
    """Start from the changes of the base and the edges, and apply the step until nothing is added."""
    loop = cast("Loop", plan)
    columns = (*loop.columns, WEIGHT)
    parts = [of.change(loop.anchor)]
    if of.touches(loop.step):
        parts.append(_with_old_rows(of.change(loop.step), loop, of))
    seed = net(Union(tuple(parts), columns))
    step = net(Union((of.within(loop.id).change(loop.step),), columns))
    return Iterate(of.new_name(), loop.id, seed, step, loop.max_depth)


def _with_old_rows(change: Plan, loop: Loop, of: Derive) -> Plan:
    """Let the recursive reference stand for all old rows."""
    rows = of.share(of.old(loop))

    def rule(node: Plan) -> Plan:
        if isinstance(node, LoopRef) and node.loop == loop.id:
            return Project(tuple(Output(c, Col(r)) for c, r in zip(node.base, rows.columns, strict=True)), rows)
        return node

    return transform(change, rule)
