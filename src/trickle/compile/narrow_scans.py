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
from trickle.algebra.walk import rebuild, walk

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr, Output


def narrow_scans(plan: Plan) -> Plan:
    """Drop the columns of scans and projections that nothing reads; one is always kept, to count rows by."""
    used = _used(plan)
    done: dict[int, Plan] = {}

    def narrowed(node: Plan) -> Plan:
        if id(node) not in done:
            inputs = tuple(map(narrowed, node.inputs))
            if isinstance(node, Scan):
                done[id(node)] = replace(node, base=tuple(c for c in node.base if c.id in used) or node.base[:1])
            elif isinstance(node, Project):
                done[id(node)] = replace(node, outputs=_kept_outputs(node, used), child=inputs[0])
            else:
                done[id(node)] = rebuild(node, inputs)
        return done[id(node)]

    return narrowed(plan)


def _used(plan: Plan) -> frozenset[int]:
    """Name the columns that are read for the result, directly or by what is made of them."""
    nodes = list(walk(plan))
    used = frozenset(c.id for c in plan.columns).union(*(_kept_whole(node) for node in nodes))
    while True:
        read = (o.expr for n in nodes if isinstance(n, Project) for o in _kept_outputs(n, used))
        others = (e for n in nodes if not isinstance(n, Project) for e in expressions(n))
        more = used.union(*(e.refs for e in (*read, *others)))
        if more == used:
            return used
        used = more


def _kept_outputs(project: Project, used: frozenset[int]) -> tuple[Output, ...]:
    return tuple(o for o in project.outputs if o.column.id in used) or project.outputs[:1]


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
