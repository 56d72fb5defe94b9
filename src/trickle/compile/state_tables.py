"""Splits state tables off a plan: results that are stored, so that the operators above read them instead of the sources.

    aggregate with a state    -> its state is a state table; the aggregate is a projection of it
    input of a top-k          -> a state table, if joins or aggregates produce it: the next row is then there when one leaves
    inexact aggregate         -> a state table, if another operator reads it: what may differ when computed twice is stored

A state table is maintained like a stream table and read like a source. It pays if it is small compared with its input, which
only its first fill shows: one that turns out big is dropped (``without``). One that is required for exactness is never
dropped: a sum of doubles that is joined, ranked or compared must have the same digits everywhere and at every refresh.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from trickle.algebra.aggregate_state import AggregateState
from trickle.algebra.expr import Col, Column, Output, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Filter,
    GroupMap,
    Join,
    Loop,
    LoopRef,
    Plan,
    Project,
    Scan,
    TopK,
    Window,
)
from trickle.algebra.walk import rebuild, walk
from trickle.model.names import STATE_TABLE_MARK, is_state_table
from trickle.model.types import is_stored, mentions_floating
from trickle.rules.state_additive import finish, state_of
from trickle.rules.state_merged import columns_needed

_REQUIRED: Final = "r"
"""The names of required state tables continue with this, those of others with a number."""


@dataclass(frozen=True, slots=True)
class StateTable:
    """A part of a plan that is stored in its own table.

    Attributes:
        plan: What the table holds.
        state: The aggregate's state that it holds; None for a state table that is maintained as any stream table.
        child: The input of that aggregate.
        is_required: True if the result would not be right without it: it holds values that cannot be computed twice alike.
    """

    name: str
    plan: Plan
    state: AggregateState | None = None
    child: Plan | None = None
    is_required: bool = False


def cut_state_tables(
    plan: Plan,
    without: Collection[str] = (),
    *,
    merged: bool = True,
    only_required: bool = False,
    replaced: Aggregate | None = None,
) -> tuple[Plan, tuple[StateTable, ...]]:
    """Return the plan over its state tables, and the state tables, each after those it reads.

    Args:
        plan: What the table holds.
        without: Names of state tables to leave out.
        merged: True if states may be kept that are not additive.
        only_required: True to cut nothing but what the result would not be right without.
        replaced: The aggregate whose rows in the table are replaced by key: it is never computed for what was.
    """
    cut = _Cut(_top_aggregate(plan), _shown_rows(plan), frozenset(without), replaced, merged=merged)
    return cut.visit(plan, only_required=only_required), tuple(cut.found)


@dataclass(slots=True)
class _Cut:
    """One walk over a plan.

    Attributes:
        shown: The top aggregate, if nothing but the reader's eye looks at its values.
        shown_rows: What stands on top but for the names of its columns.
        without: Names of state tables to leave out.
        replaced: The aggregate whose rows in the table are replaced by key.
        merged: True if states may be kept that are not additive.
        found: The state tables so far.
    """

    shown: Plan | None
    shown_rows: Plan
    without: frozenset[str]
    replaced: Aggregate | None
    merged: bool
    found: list[StateTable] = field(default_factory=list)
    _done: dict[int, Plan] = field(default_factory=dict)
    _candidates: int = 0
    _required: int = 0

    def visit(self, node: Plan, *, only_required: bool) -> Plan:
        """Return a node over state tables; one that several read is cut once."""
        done = self._done.get(id(node))
        if done is None:
            done = self._done[id(node)] = self._cut_at(node, only_required=only_required or isinstance(node, Loop))
        return done

    def _cut_at(self, node: Plan, *, only_required: bool) -> Plan:
        over = rebuild(node, tuple(self.visit(p, only_required=only_required) for p in node.inputs))
        kept = over if only_required else self._cut_if_it_pays(node, over)
        if not _is_inexact(over) or node in (self.replaced, self.shown_rows):
            return kept
        self._required += 1  # also if it is kept otherwise, so that a name always means the same part
        name = f"{STATE_TABLE_MARK}{_REQUIRED}{self._required}"
        return self._cut_required(over, name) if kept is over else kept

    def _cut_required(self, node: Plan, name: str) -> Plan:
        keyed = _with_keys(node) if isinstance(node, Aggregate) else node
        if not _reads_sources(node) or not _can_be_stored(keyed.columns):
            return node
        stored, read = _numbered(keyed, name)
        self.found.append(StateTable(name, stored, is_required=True))
        return read if keyed is node else Project(passthrough(node.columns), read)

    def _cut_if_it_pays(self, node: Plan, over: Plan) -> Plan:
        match over:
            case Aggregate(state=AggregateState() as state, child=child) if _reads_sources(child):
                name = self._next_name()
                is_mergeable = self.merged and _can_be_merged(state, child, is_shown=node is self.shown)
                if name is not None and (state.is_additive or is_mergeable) and _can_be_stored(state.columns):
                    self.found.append(StateTable(name, state_of(state, child), state, child))
                    return finish(state, Scan(name, state.columns))
            case TopK(child=child) if _is_made(child):
                name = self._next_name()
                if name is not None and _can_be_stored(child.columns):
                    stored, read = _numbered(child, name)
                    self.found.append(StateTable(name, stored))
                    return replace(over, child=read)
        return over

    def _next_name(self) -> str | None:
        """Number all candidates, even dropped ones, so that a name always means the same part."""
        self._candidates += 1
        name = f"{STATE_TABLE_MARK}{self._candidates}"
        return None if name in self.without else name


def _numbered(plan: Plan, name: str) -> tuple[Plan, Plan]:
    """Return a plan with its columns named by position, as a table needs them, and the scan that restores them."""
    columns = tuple(new_column(f"c{i}", c.type) for i, c in enumerate(plan.columns))
    pairs = tuple(zip(columns, plan.columns, strict=True))
    stored = Project(tuple(Output(stored, Col(c)) for stored, c in pairs), plan)
    return stored, Project(tuple(Output(c, Col(stored)) for stored, c in pairs), Scan(name, columns))


def _with_keys(node: Aggregate) -> Aggregate:
    """Return an aggregate that shows all its keys, so that its rows can be replaced by them."""
    shown = {o.expr for o in node.outputs}
    hidden = [k for k in dict.fromkeys(node.keys) if k not in shown]
    columns = (new_column(f"k{i}", k.column.type if isinstance(k, Col) else "") for i, k in enumerate(hidden))
    more = tuple(Output(c, k) for c, k in zip(columns, hidden, strict=True))
    return replace(node, outputs=(*node.outputs, *more)) if more else node


def _can_be_stored(columns: tuple[Column, ...]) -> bool:
    return all(c.orderable and is_stored(c.type) for c in columns)


def _can_be_merged(state: AggregateState, child: Plan, *, is_shown: bool) -> bool:
    """Return whether a state that is not additive pays and is safe.

    Over state tables alone, recomputing a group is cheap. A sum of doubles differs in its last digits from one that was added
    up in another order, so no other operator may read it.
    """
    reads_source = any(isinstance(p, Scan) and not is_state_table(p.source) for p in walk(child))
    if not all(c.orderable for c in columns_needed(state, child)):
        return False
    return reads_source and (is_shown or not any(t.kind == "double" for t in state.terms))


def _top_aggregate(plan: Plan) -> Plan | None:
    """Return the top aggregate if everything above it, and all it does itself with sums of doubles, only renames them."""
    while isinstance(plan, Project):
        if not all(isinstance(o.expr, Col) for o in plan.outputs):
            return None
        plan = plan.child
    if not isinstance(plan, Aggregate) or plan.state is None:
        return None
    doubles = {o.column.id for o in plan.state.results if mentions_floating(o.column.type)}
    named = all(isinstance(o.expr, Col) or not doubles & o.expr.refs for o in plan.state.outputs)
    return plan if named else None


def _is_inexact(plan: Plan) -> bool:
    """Return whether a node combines many rows into values whose last digits may differ when computed again."""
    if isinstance(plan, GroupMap):
        return any(mentions_floating(c.type) for c in plan.made)
    return isinstance(plan, Aggregate | Window) and plan.inexact


def _shown_rows(plan: Plan) -> Plan:
    """Return the top node below mere renames. Rows that are not replaced by key are found by nearness."""
    while isinstance(plan, Project) and all(isinstance(o.expr, Col) for o in plan.outputs):
        plan = plan.child
    return Empty(()) if isinstance(plan, Aggregate) else plan


def _reads_sources(plan: Plan) -> bool:
    return any(isinstance(p, Scan) for p in walk(plan)) and not any(isinstance(p, LoopRef) for p in walk(plan))


def _is_made(plan: Plan) -> bool:
    """Return whether joins, groups or windows over sources produce the rows, not a single table."""
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return not isinstance(plan, Scan) and any(isinstance(p, Join | Aggregate | Window) for p in walk(plan))
