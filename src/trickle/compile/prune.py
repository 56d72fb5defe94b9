"""Removes the terms of a change plan that are known to be empty.

A join with an empty side -> nothing; a union of one term -> the term; an anti join against nothing -> its left side.
``has_no_rows_over`` of each kind of node says what it is over an empty input: an aggregate without keys has one row.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from trickle.algebra.expr import Col, Lit, Output, passthrough
from trickle.algebra.plan import Empty, Iterate, LoopRef, Plan, Project, Scan, SemiJoin, Shared, Union
from trickle.algebra.walk import transform


def prune(plan: Plan, empty: AbstractSet[str] = frozenset()) -> Plan:
    """Simplify, given the names of shared results and changed sources that turned out empty."""

    def rule(node: Plan) -> Plan:
        match node:
            case Scan(source=source, at="change") if source in empty:
                return Empty(node.columns)
            case LoopRef(loop=loop, at="change") if f"loop{loop}" in empty:
                return Empty(node.columns)
            case Shared(name=name) | Iterate(name=name) if name in empty:
                return Empty(node.columns)
            case Iterate(seed=seed) if not isinstance(seed, Empty):
                return replace(node, step=prune(node.step))
            case Union():
                return _union(node)
        if node.inputs and node.has_no_rows_over([isinstance(p, Empty) for p in node.inputs]):
            return Empty(node.columns)
        return _without_partners(node) if isinstance(node, SemiJoin) and isinstance(node.right, Empty) else node

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


def _without_partners(node: SemiJoin) -> Plan:
    """Return the left rows of an anti or existence join: none has a match."""
    if node.flag is None:
        return node.left
    flagged = (Output(c, Lit(value=False)) if c == node.flag else passthrough((c,))[0] for c in node.columns)
    return Project(tuple(flagged), node.left)
