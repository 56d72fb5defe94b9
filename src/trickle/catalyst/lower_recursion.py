"""Lowers recursive CTEs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.plan import Loop, LoopRef
from trickle.catalyst.jvm import items
from trickle.catalyst.lowered import Lowered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trickle.algebra.plan import Plan
    from trickle.catalyst.lower import Lower


def _lower_loop(lower: Lower, plan: Loop) -> Lowered:
    """Build a recursive CTE under an id of its own."""
    jvm = lower.jvm
    anchor = _in_order(lower, plan.anchor)
    number = jvm.singleton("org.apache.spark.sql.catalyst.plans.logical.CTERelationDef").newId()
    outer = lower.loops.get(plan.id)
    lower.loops[plan.id] = number
    step = _in_order(lower, plan.step)
    lower.loops[plan.id] = outer
    ids = [jvm.new_id() for _ in plan.columns]
    depth = jvm.none if plan.max_depth < 0 else jvm.some(plan.max_depth)
    node = jvm.plan("UnionLoop", number, anchor, step, jvm.seq(ids), jvm.none, depth)
    return Lowered(node, dict(zip((c.id for c in plan.columns), items(node.output()), strict=True)))


def _in_order(lower: Lower, plan: Plan) -> Any:
    lowered = lower.lower(plan)
    return lower.jvm.project([lower.jvm.alias(a, a.name()) for a in lowered.named(plan.columns)], lowered.plan)


def _lower_loop_ref(lower: Lower, plan: LoopRef) -> Lowered:
    """Build the reference of a recursive CTE to its own rows."""
    if plan.at == "change":
        return lower.by_position(plan)
    fresh = [c.handle.newInstance() for c in plan.base]
    node = lower.jvm.plan("UnionLoopRef", lower.loops[plan.loop], lower.jvm.seq(fresh), False)
    return Lowered(node, dict(zip((c.id for c in plan.base), fresh, strict=True)))


RECURSION: Final[Mapping[type[Plan], Callable[..., Lowered]]] = {
    Loop: _lower_loop,
    LoopRef: _lower_loop_ref,
}
