"""Lifts recursive CTEs, and tells those whose steps mix rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trickle.algebra.expr import Cast, Col, Column, Output, new_column
from trickle.algebra.plan import (
    InnerJoin,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
)
from trickle.algebra.walk import walk

if TYPE_CHECKING:
    from trickle.catalyst.lift import Lift


def lift_loop(lift: Lift, node: Any) -> Plan:
    """Lift a recursive CTE."""
    anchor, step = lift.plan(node.anchor()), lift.plan(node.recursion())
    depth = node.maxDepth()
    limit = int(depth.get()) if depth.isDefined() else lift.max_depth
    columns = lift.columns(node.output())
    step = _as_types_of(columns, step)
    loop = Loop(int(node.id()), _as_types_of(columns, anchor), step, columns, limit)
    if not _is_linear(step, loop.id):
        text = "A recursive CTE uses its own rows in an aggregate, a window, a LIMIT or an EXISTS."
        lift.obstacle("NON_LINEAR_RECURSION", text, "Move that outside of the recursion, or use mode='full'.")
    return loop


def _as_types_of(columns: tuple[Column, ...], plan: Plan) -> Plan:
    """Cast a plan's columns to the types of others, by position: a sum of decimals in a step is wider than the anchor's."""
    if all(a.type == b.type for a, b in zip(columns, plan.columns, strict=True)):
        return plan
    cast = (
        Output(new_column(c.name, like.type, orderable=c.orderable, handle=like.handle), Cast(Col(c), like))
        for c, like in zip(plan.columns, columns, strict=True)
    )
    return Project(tuple(cast), plan)


def _is_linear(plan: Plan, loop: int) -> bool:
    """Return whether a step treats each row of the last round by itself."""
    inside = [p for p in plan.inputs if any(isinstance(n, LoopRef) and n.loop == loop for n in walk(p))]
    match plan:
        case _ if plan.is_linear:
            pass
        case InnerJoin() if len(inside) <= 1:
            pass
        case SemiJoin() if inside in ([], [plan.left]):
            pass
        case OuterJoin() if inside == [plan.left if plan.kind == "left" else plan.right] and plan.kind != "full":
            pass
        case _ if inside:
            return False
    return all(_is_linear(p, loop) for p in inside)


def lift_loop_ref(lift: Lift, node: Any) -> Plan:
    """Lift a recursive CTE's reference to its own rows."""
    return LoopRef(int(node.loopId()), lift.columns(node.output()))
