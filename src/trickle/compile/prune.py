"""Removes the terms of a change plan that are known to be empty.

A join with an empty side -> nothing; a union of one term -> the term; an anti join against nothing -> its left side.
An aggregate without keys is never empty: it has one row over no rows.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from trickle.algebra.expr import Col, Lit, Output, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
    Iterate,
    LoopRef,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    When,
    Window,
)
from trickle.algebra.walk import transform


def prune(plan: Plan, empty: AbstractSet[str] = frozenset()) -> Plan:
    """Simplify, given the names of shared results and changed sources that turned out empty."""

    def rule(node: Plan) -> Plan:
        match node:
            case Scan(source=source, at="change") if source in empty:
                return Empty(node.columns)
            case LoopRef(loop=loop, at="change") if f"loop{loop}" in empty:
                return Empty(node.columns)
            case Shared(name=name, child=child) if name in empty or isinstance(child, Empty):
                return Empty(node.columns)
            case Iterate(name=name, seed=seed) if name in empty or isinstance(seed, Empty):
                return Empty(node.columns)
            case Iterate():
                return replace(node, step=prune(node.step))
            case Union():
                return _union(node)
            case SemiJoin():
                return _semi_join(node)
            case GroupMap() if all(isinstance(p, Empty) for p in node.inputs):
                return Empty(node.columns)
            case InnerJoin() if any(isinstance(p, Empty) for p in node.inputs):
                return Empty(node.columns)
            case When() if isinstance(node.inputs[0], Empty):
                return Empty(node.columns)
            case Aggregate(keys=()):
                return node
            case Filter() | Project() | RowWise() | Expand() | Window() | TopK() | Aggregate() | When() | Repeat():
                return Empty(node.columns) if isinstance(node.inputs[-1], Empty) else node
        return node

    return transform(plan, rule)


def _union(node: Union) -> Plan:
    kept = tuple(c for c in node.children if not isinstance(c, Empty))
    if not kept:
        return Empty(node.columns)
    if len(kept) == 1:
        only = kept[0]
        if only.columns == node.columns:
            return only
        renamed = zip(node.columns, only.columns, strict=True)
        return Project(tuple(Output(to, Col(c)) for to, c in renamed), only)
    return replace(node, children=kept)


def _semi_join(node: SemiJoin) -> Plan:
    if isinstance(node.left, Empty) or (node.kind == "semi" and isinstance(node.right, Empty)):
        return Empty(node.columns)
    if isinstance(node.right, Empty):
        if node.flag is None:
            return node.left
        flagged = (Output(c, Lit(value=False)) if c == node.flag else passthrough((c,))[0] for c in node.columns)
        return Project(tuple(flagged), node.left)
    return node
