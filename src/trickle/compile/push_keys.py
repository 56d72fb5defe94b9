"""Moves restrictions to a set of keys down to the scans.

``(A join B) with key in K -> (A with key in K) join (B with key in K)``: a touched group then costs the rows of its keys, not
a join of whole tables. A restriction passes through an operator if the values of its keys do: filters, projections that pass
the columns on, both sides of an equality, group keys, partition keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from trickle.algebra.expr import Col, Expr, KeyPair, Opaque, Output, new_column
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    InnerJoin,
    Join,
    OuterJoin,
    Plan,
    Project,
    RowWise,
    SemiJoin,
    Union,
    Window,
)
from trickle.algebra.walk import transform


@dataclass(frozen=True, slots=True)
class Restriction:
    """Expressions over a plan, each to be equal to a column of a small plan of keys."""

    pairs: tuple[KeyPair, ...]
    keys: Plan

    def over(self, exprs: tuple[Expr, ...], null_safe: tuple[bool, ...] | None = None) -> Restriction:
        """Restrict other expressions to the same keys, under fresh columns."""
        fresh = tuple(Output(new_column(c.name), Col(c)) for c in self.keys.columns)
        by_id = {o.expr.column.id: o.column for o in fresh if isinstance(o.expr, Col)}
        safe = null_safe or tuple(p.null_safe for p in self.pairs)
        pairs = []
        for pair, expr, one in zip(self.pairs, exprs, safe, strict=True):
            key = pair.right.column if isinstance(pair.right, Col) else None
            if key is None:
                message = "a restriction's keys are columns"
                raise TypeError(message)
            pairs.append(KeyPair(expr, Col(by_id[key.id]), one))
        return Restriction(tuple(pairs), Project(fresh, self.keys))

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What is restricted."""
        return tuple(p.left for p in self.pairs)


def is_restriction(plan: Plan) -> bool:
    """Return whether a semi join only keeps the rows of a small set of keys."""
    return (
        isinstance(plan, SemiJoin)
        and plan.kind == "semi"
        and plan.small == "right"
        and not plan.residual
        and bool(plan.keys)
        and all(isinstance(k.right, Col) for k in plan.keys)
    )


def push_keys(plan: Plan) -> Plan:
    """Push every restriction down as far as possible."""

    def rule(node: Plan) -> Plan:
        if isinstance(node, SemiJoin) and is_restriction(node):
            return push(node.left, Restriction(node.keys, node.right))
        return node

    return transform(plan, rule)


def push(plan: Plan, by: Restriction) -> Plan:
    """Restrict a plan, as low as possible."""
    through = THROUGH.get(type(plan))
    below = None if through is None else through(plan, by)
    return SemiJoin(plan, by.keys, by.pairs, small="right") if below is None else below


def _through_filter(plan: Filter, by: Restriction) -> Plan:
    return replace(plan, child=push(plan.child, by))


def _through_project(plan: Project, by: Restriction) -> Plan | None:
    exprs = tuple(_before_project(e, plan) for e in by.exprs)
    return replace(plan, child=push(plan.child, _over(by, exprs))) if all(exprs) else None


def _through_row_wise(plan: RowWise, by: Restriction) -> Plan | None:
    is_handed_on = all(e.refs <= plan.child.ids for e in by.exprs)
    return replace(plan, child=push(plan.child, by)) if is_handed_on else None


def _through_aggregate(plan: Aggregate, by: Restriction) -> Plan | None:
    exprs = tuple(_group_key(e, plan) for e in by.exprs)
    return replace(plan, child=push(plan.child, _over(by, exprs))) if all(exprs) else None


def _through_window(plan: Window, by: Restriction) -> Plan | None:
    is_partition = all(e in plan.partition for e in by.exprs)
    return replace(plan, child=push(plan.child, by)) if is_partition else None


def _over(by: Restriction, exprs: tuple[Expr | None, ...]) -> Restriction:
    return by.over(tuple(e for e in exprs if e is not None))


def _before_project(expr: Expr, project: Project) -> Expr | None:
    """Return the expression over the project's input, None if the project computes it."""
    if isinstance(expr, Col):
        return next((o.expr for o in project.outputs if o.column == expr.column), None)
    handed_on = frozenset(o.column.id for o in project.outputs if o.is_passthrough)
    return expr if isinstance(expr, Opaque) and expr.refs <= handed_on else None


def _group_key(expr: Expr, node: Aggregate) -> Expr | None:
    """Return the group key that an output column holds."""
    return next((o.expr for o in node.outputs if Col(o.column) == expr and o.expr in node.keys), None)


def _through_union(union: Union, by: Restriction) -> Plan | None:
    if not all(isinstance(e, Col) and e.column in union.columns for e in by.exprs):
        return None
    places = [union.columns.index(e.column) for e in by.exprs if isinstance(e, Col)]
    return replace(
        union, children=tuple(push(c, by.over(tuple(Col(c.columns[i]) for i in places))) for c in union.children)
    )


def _through_semi_join(join: SemiJoin, by: Restriction) -> Plan | None:
    return replace(join, left=push(join.left, by)) if is_restriction(join) else _through_join(join, by)


def _through_join(join: Join, by: Restriction) -> Plan | None:
    """Restrict the side that has the keys, and by the join's equalities the other side too.

    Keys of one side alone must not drop rows that an outer join pads on the other side.
    """
    kind = join.kind if isinstance(join, OuterJoin) else "inner"
    on_left = all(e.refs <= join.left.ids for e in by.exprs)
    on_right = not on_left and all(e.refs <= join.right.ids for e in by.exprs)
    if on_left and kind in ("inner", "left"):
        other = _matching(by, {k.left: k for k in join.keys}, to_right=True)
        right = join.right if other is None else push(join.right, other)
        return replace(join, left=push(join.left, by), right=right)
    if on_right and isinstance(join, InnerJoin | OuterJoin) and kind in ("inner", "right"):
        other = _matching(by, {k.right: k for k in join.keys}, to_right=False)
        left = join.left if other is None else push(join.left, other)
        return replace(join, left=left, right=push(join.right, by))
    if isinstance(join, InnerJoin) and not on_left and not on_right:
        return _through_both(join, by)
    return None


def _matching(by: Restriction, keys: dict[Expr, KeyPair], *, to_right: bool) -> Restriction | None:
    pairs = [(p, keys[p.left]) for p in by.pairs if p.left in keys]
    if not pairs:
        return None
    exprs = tuple(k.right if to_right else k.left for _, k in pairs)
    part = Restriction(tuple(p for p, _ in pairs), by.keys)
    return part.over(exprs)


def _through_both(join: InnerJoin, by: Restriction) -> Plan | None:
    """Handle keys from both sides: restrict each side to its part, and check the pairs above."""
    sides = []
    for side in (join.left, join.right):
        mine = tuple(p for p in by.pairs if p.left.refs <= side.ids)
        part = Restriction(mine, by.keys)
        sides.append(push(side, part.over(tuple(p.left for p in mine))) if mine else side)
    if sides[0] is join.left and sides[1] is join.right:
        return None
    narrowed = replace(join, left=sides[0], right=sides[1])
    return SemiJoin(narrowed, by.keys, by.pairs, small="right")


THROUGH: Final[Mapping[type[Plan], Callable[..., Plan | None]]] = {
    Filter: _through_filter,
    Project: _through_project,
    RowWise: _through_row_wise,
    Aggregate: _through_aggregate,
    Window: _through_window,
    Union: _through_union,
    InnerJoin: _through_join,
    OuterJoin: _through_join,
    SemiJoin: _through_semi_join,
}
"""How a restriction passes through each kind of node; it stays above any other node."""
