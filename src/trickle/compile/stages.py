"""Cuts a plan into stages: results kept in tables of their own, so that what stands above reads them instead of sources.

    aggregate with a state    -> its state is a stage; the aggregate is a projection of it
    input of a top-k          -> a stage, if joins or aggregates make it: the next row is then at hand when one leaves

A stage is maintained like a stream table of its own and read like a source. It pays if it is small against its input, which
only its first fill tells: one that turns out big is left out (``without``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from trickle.algebra.expr import Col, Column, Output, new_column
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    Join,
    Loop,
    LoopRef,
    Plan,
    Project,
    Scan,
    Sums,
    TopK,
    Window,
)
from trickle.algebra.walk import rebuild, walk
from trickle.compile.merge import columns_needed
from trickle.compile.sums import finished, state_of

MARK: Final = "@"
"""Names of stages begin with it; no source's name does."""

_NOT_STORED: Final = re.compile(r"interval|void|variant|time\(|collate")
"""Types that a Delta table does not hold, or whose equal values differ."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a plan that has a table of its own.

    Attributes:
        plan: What the table holds.
        sums: The aggregate it is the state of; None for a stage that is maintained as any stream table.
        child: The input of that aggregate.
    """

    name: str
    plan: Plan
    sums: Sums | None = None
    child: Plan | None = None


def is_stage(source: str) -> bool:
    """Tell a stage's name from a source's."""
    return source.startswith(MARK)


def cut(plan: Plan, without: Collection[str] = (), *, merged: bool = True) -> tuple[Plan, tuple[Stage, ...]]:
    """Give the plan over its stages, and the stages, each after those it reads.

    ``merged`` says whether states may be kept that are not additive.
    """
    found: list[Stage] = []
    shown = _shown(plan)
    memo: dict[int, Plan] = {}
    count = 0

    def named() -> str | None:
        """Number the candidates, also those left out, so that a name always means the same part."""
        nonlocal count
        count += 1
        name = f"{MARK}{count}"
        return None if name in without else name

    def visit(node: Plan) -> Plan:
        done = memo.get(id(node))
        if done is None:
            done = memo[id(node)] = node if isinstance(node, Loop) else stand_on(node)
        return done

    def stand_on(node: Plan) -> Plan:
        over = rebuild(node, tuple(visit(p) for p in node.inputs))
        match over:
            case Aggregate(sums=Sums() as sums, child=child) if _reads_sources(child):
                name = named()
                kept = sums.is_additive or (merged and _can_be_merged(sums, child, is_shown=node is shown))
                if name is not None and kept and _can_be_stored(sums.columns):
                    found.append(Stage(name, state_of(sums, child), sums, child))
                    return finished(sums, Scan(name, sums.columns))
            case TopK(child=child) if _is_made(child):
                name = named()
                if name is not None and _can_be_stored(child.columns):
                    stored, read = _numbered(child, name)
                    found.append(Stage(name, stored))
                    return replace(over, child=read)
        return over

    top = visit(plan)
    return top, tuple(found)


def _numbered(plan: Plan, name: str) -> tuple[Plan, Plan]:
    """Give a plan with its columns named by place, as a table needs it, and the scan that gives them back."""
    columns = tuple(new_column(f"c{i}", c.type) for i, c in enumerate(plan.columns))
    pairs = tuple(zip(columns, plan.columns, strict=True))
    stored = Project(tuple(Output(stored, Col(c)) for stored, c in pairs), plan)
    return stored, Project(tuple(Output(c, Col(stored)) for stored, c in pairs), Scan(name, columns))


def _can_be_stored(columns: tuple[Column, ...]) -> bool:
    return all(c.orderable and not _NOT_STORED.search(c.type) for c in columns)


def _can_be_merged(sums: Sums, child: Plan, *, is_shown: bool) -> bool:
    """Tell whether a state that is not additive pays and harms nobody.

    Over stages alone a group is soon computed anew. A sum of doubles differs in its last digits from one that is added up
    in another order: nothing but the reader's eye may look at it.
    """
    reads_source = any(isinstance(p, Scan) and not is_stage(p.source) for p in walk(child))
    if not all(c.orderable for c in columns_needed(sums, child)):
        return False
    return reads_source and (is_shown or not any(t.kind == "double" for t in sums.terms))


def _shown(plan: Plan) -> Plan | None:
    """Give the top aggregate if all that stands above it, and all it does itself with sums of doubles, is to name them."""
    while isinstance(plan, Project):
        if not all(isinstance(o.expr, Col) for o in plan.outputs):
            return None
        plan = plan.child
    if not isinstance(plan, Aggregate) or plan.sums is None:
        return None
    doubles = {o.column.id for o in plan.sums.results if "double" in o.column.type}
    named = all(isinstance(o.expr, Col) or not doubles & o.expr.refs for o in plan.sums.outputs)
    return plan if named else None


def _reads_sources(plan: Plan) -> bool:
    return any(isinstance(p, Scan) for p in walk(plan)) and not any(isinstance(p, LoopRef) for p in walk(plan))


def _is_made(plan: Plan) -> bool:
    """Tell whether rows are made by joins, groups or windows of sources, not handed on from one table."""
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return not isinstance(plan, Scan) and any(isinstance(p, Join | Aggregate | Window) for p in walk(plan))
