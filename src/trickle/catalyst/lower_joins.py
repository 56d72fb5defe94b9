"""Lowers joins, with the hint which side is small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.plan import InnerJoin, OuterJoin, SemiJoin
from trickle.catalyst.jvm import items
from trickle.catalyst.lowered import Lowered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trickle.algebra.plan import Join, Plan
    from trickle.catalyst.lower import Lower


def _join(lower: Lower, plan: Join, left: Lowered, right: Lowered, kind: Any) -> Any:
    condition = lower.condition(plan, left, right)
    # In one task a hash table is built beside the rows; elsewhere the small side is sent to them.
    strategy = "SHUFFLE_HASH" if lower.in_one_task and plan.keys else "BROADCAST"
    hint = lower.jvm.hint(plan.small if lower.hints else None, strategy)
    return lower.jvm.plan("Join", left.plan, right.plan, kind, lower.jvm.some(condition), hint)


def _lower_inner_join(lower: Lower, plan: InnerJoin) -> Lowered:
    """Build an inner or cross join."""
    left, right = lower.lower(plan.left), lower.lower(plan.right)
    joined = _join(lower, plan, left, right, lower.jvm.join_type("Inner"))
    return Lowered(joined, {**left.attributes, **right.attributes})


_OUTER: Final = {"left": "LeftOuter", "right": "RightOuter", "full": "FullOuter"}


def _lower_outer_join(lower: Lower, plan: OuterJoin) -> Lowered:
    """Build an outer join; above it the padded side's attributes may be NULL."""
    left, right = lower.lower(plan.left), lower.lower(plan.right)
    joined = _join(lower, plan, left, right, lower.jvm.join_type(_OUTER[plan.kind]))
    # The padded side's attributes are nullable above the join, so they are taken from the join itself.
    given = {a.exprId().id(): a for a in items(joined.output())}
    return Lowered(joined, {k: given[a.exprId().id()] for s in (left, right) for k, a in s.attributes.items()})


def _lower_semi_join(lower: Lower, plan: SemiJoin) -> Lowered:
    """Build a semi, anti or existence join."""
    left, right = lower.lower(plan.left), lower.lower(plan.right)
    attributes = dict(left.attributes)
    if plan.flag is None:
        kind = lower.jvm.join_type("LeftSemi" if plan.kind == "semi" else "LeftAnti")
    else:
        boolean = lower.jvm.singleton("org.apache.spark.sql.types.BooleanType")
        flag = lower.jvm.attribute(plan.flag.name, boolean).withNullability(False)
        attributes[plan.flag.id] = flag
        kind = lower.jvm.cls("org.apache.spark.sql.catalyst.plans.ExistenceJoin")(flag)
    return Lowered(_join(lower, plan, left, right, kind), attributes)


JOINS: Final[Mapping[type[Plan], Callable[..., Lowered]]] = {
    InnerJoin: _lower_inner_join,
    OuterJoin: _lower_outer_join,
    SemiJoin: _lower_semi_join,
}
