"""Lifts aggregates: their keys and outputs, the subqueries among these, and their form as a state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trickle.algebra.expr import Col, Opaque, Output
from trickle.algebra.plan import Aggregate, Plan, Project
from trickle.catalyst.inexact import is_inexact
from trickle.catalyst.jvm import items
from trickle.catalyst.lift_state import lift_state

if TYPE_CHECKING:
    from trickle.catalyst.lift import Lift


def lift_aggregate(lift: Lift, node: Any) -> Plan:
    """Lift an aggregate with its form as a state, if it has one."""
    child = lift.plan(node.child())
    named = list(items(node.aggregateExpressions()))
    grouping = list(items(node.groupingExpressions()))
    # Of its own expressions: the node's bits tell of subqueries anywhere below too.
    if not any(lift.jvm.contains(e, "PLAN_EXPRESSION") for e in named + grouping):
        return replace(_aggregate(lift, grouping, named, child), state=lift_state(lift, node))
    if not grouping:
        return _lift_global_aggregate_with_subqueries(lift, named, child)
    done, joined = lift.without_subqueries(named + grouping, child)
    plain = _aggregate(lift, done[len(named) :], done[: len(named)], joined)
    extra = tuple(Col(c) for c in joined.columns if c.id not in child.ids)
    return replace(plain, keys=(*plain.keys, *extra))


def _aggregate(lift: Lift, grouping: list[Any], named: list[Any], child: Plan) -> Aggregate:
    """Build an aggregate in which an output that is a key is that key's very expression."""
    keys = tuple(lift.expr(g) for g in grouping)
    computed = [(g, k) for g, k in zip(grouping, keys, strict=True) if isinstance(k, Opaque)]

    def output(one: Any) -> Output:
        lifted = lift.output(one)
        if isinstance(lifted.expr, Opaque):
            for expr, key in computed:
                if one.child().semanticEquals(expr):
                    return Output(lifted.column, key)
        return lifted

    return Aggregate(keys, tuple(output(n) for n in named), child, inexact=is_inexact(lift.jvm, named))


def _lift_global_aggregate_with_subqueries(lift: Lift, named: list[Any], child: Plan) -> Plan:
    """Aggregate first, then combine with subqueries: a join below would lose the one row of an empty input."""
    found: list[Output] = []
    below = [child]

    def extract(expr: Any) -> Any:
        if lift.jvm.name(expr) == "AggregateExpression":
            inner = lift.replace_subqueries(expr, below)
            attribute = lift.jvm.attribute("agg", inner.dataType())
            found.append(Output(lift.column(attribute), lift.expr(inner)))
            return attribute
        if expr.children().size() == 0:
            return expr
        return expr.withNewChildren(lift.jvm.seq([extract(c) for c in items(expr.children())]))

    outer = [extract(n) for n in named]
    aggregate = Aggregate((), tuple(found), below[0], inexact=is_inexact(lift.jvm, named))
    done, joined = lift.without_subqueries(outer, aggregate)
    return Project(tuple(lift.output(n) for n in done), joined)
