"""Lets each scan read only the columns the query uses.

``Scan orders(12 columns) -> Scan orders(3 columns)``: fewer bytes read, and an update of an unused column cancels out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trickle.algebra.plan import (
    Aggregate,
    Expand,
    Filter,
    GroupMap,
    Join,
    Loop,
    Plan,
    Project,
    RowWise,
    Scan,
    TopK,
    Union,
    Window,
)
from trickle.algebra.walk import transform, walk

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr


def narrow_scans(plan: Plan) -> Plan:
    """Drop the columns of scans that nothing reads; a scan keeps one column at least, to count rows by."""
    used = {c.id for c in plan.columns}
    for node in walk(plan):
        used |= _kept_whole(node)
        for expr in expressions(node):
            used |= expr.refs

    def rule(node: Plan) -> Plan:
        if isinstance(node, Scan):
            kept = tuple(c for c in node.base if c.id in used) or node.base[:1]
            return replace(node, base=kept)
        return node

    return transform(plan, rule)


def _kept_whole(node: Plan) -> frozenset[int]:
    """Name the columns that a node reads by position."""
    if isinstance(node, Union | Loop | GroupMap):
        return frozenset(c.id for child in node.inputs for c in child.columns)
    return node.refs if isinstance(node, RowWise) else frozenset()


def expressions(node: Plan) -> Iterator[Expr]:
    """Give the expressions of a node."""
    match node:
        case Filter():
            yield node.condition
        case Project():
            yield from (o.expr for o in node.outputs)
        case Join():
            yield from (e for k in node.keys for e in (k.left, k.right))
            yield from node.residual
        case Aggregate():
            yield from node.keys
            yield from (o.expr for o in node.outputs)
        case Window():
            yield from (*node.partition, *node.order, *(o.expr for o in node.functions))
        case Expand():
            yield from (e for p in node.projections for e in p)
        case TopK():
            yield from node.order
