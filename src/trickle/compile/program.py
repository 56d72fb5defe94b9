"""A compiled definition: the plan, how its change is applied, and the change plans derived so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from trickle.algebra.expr import Col, Column
from trickle.algebra.plan import Aggregate, Empty, Filter, Iterate, Plan, Project, Scan, TopK, Window
from trickle.algebra.walk import often_read, transform, walk
from trickle.compile.change_plan import AddToState, ApplyBag, ChangePlan, ReplaceKeys, Shortcut
from trickle.compile.narrow_scans import narrow_scans
from trickle.compile.order_joins import FanOut, magnitude, order_joins, unit_fan_out
from trickle.compile.prune import prune
from trickle.compile.push_keys import push_keys
from trickle.compile.state_tables import StateTable, cut_state_tables
from trickle.model.cache import Cache
from trickle.model.options import DEFAULT
from trickle.rules import CHANGE_RULES, Derive
from trickle.rules.derive import difference, net, restrict
from trickle.rules.state_additive import change_of_state
from trickle.rules.state_merged import merge
from trickle.rules.stored_ranks import change_of_first_ranks, change_of_first_ranks_of_all, find_first_ranks
from trickle.rules.stored_top import can_use_stored, change_from_stored

if TYPE_CHECKING:
    from trickle.algebra.aggregate_state import AggregateState

Pass = Callable[[Plan], Plan]

# Rewrites of the plan itself, in order. Each can be switched off by name, which costs time but never exactness.
PASSES: Final[Mapping[str, Pass]] = {"narrow_scans": narrow_scans}

# Rewrites of a change plan, in order, given the fan-outs of the sources; these too can be switched off.
CHANGE_PASSES: Final[Mapping[str, Callable[[Plan, FanOut], Plan]]] = {
    "push_keys": lambda plan, _: push_keys(plan),
    "order_joins": order_joins,
}

SELF: Final = ""
"""The name under which a change plan reads the stream table's own rows."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """The plan's rows are unique by some of its columns, which are the group keys of its top aggregate.

    Attributes:
        keys: The output columns of the key, in the order of the aggregate's keys; empty for a single-row result.
        aggregate: The top aggregate.
    """

    keys: tuple[Column, ...]
    aggregate: Aggregate


@dataclass(slots=True)
class Program:
    """A plan ready to be refreshed.

    Attributes:
        plan: The plan of the table, over sources and state tables.
        state_table: The state table that this is the program of, if any.
        state_tables: The programs of the state tables it reads, each after those that it reads itself.
        whole: The plan of the table, over sources alone.
        plans_kept: How many change plans are kept.
        used: The columns read from each source and state table; those of a source that is read twice together.
        used_by_query: The columns that the whole plan reads from each source.
    """

    plan: Plan
    disable: frozenset[str] = frozenset()
    keyed: Keyed | None = None
    state_table: StateTable | None = None
    state_tables: tuple[Program, ...] = ()
    whole: Plan = field(default_factory=lambda: Empty(()))
    plans_kept: int = DEFAULT.change_plans_kept
    used: Mapping[str, tuple[str, ...]] = field(init=False)
    used_by_query: Mapping[str, tuple[str, ...]] = field(init=False)
    _derived: Cache[frozenset[str], _Derived] = field(init=False)

    def __post_init__(self) -> None:
        """Start without change plans. A refresh asks often for the columns, also one with nothing to do."""
        self.used, self.used_by_query = columns_read(self.plan), columns_read(self.whole)
        self._derived = Cache("change plans", self.plans_kept)

    def derive(self, changed: frozenset[str], fan_out: FanOut = unit_fan_out) -> ChangePlan:
        """Return the change plan for a set of changed sources.

        It is derived once, and again when a ``fan_out`` that decided its join order changed by a factor of four.
        """
        known = self._derived.known(changed)
        if known is not None and all(magnitude(fan_out(*asked)) == size for asked, size in known.asked.items()):
            return known.plan
        asked: dict[tuple[str, str], int] = {}

        def ask(source: str, column: str) -> float:
            count = fan_out(source, column)
            asked[source, column] = magnitude(count)
            return count

        plan = _Derivation(self, ask).change_plan(changed)
        self._derived.put(changed, _Derived(plan, asked))
        return plan


@dataclass(frozen=True, slots=True)
class _Derived:
    """A change plan, and the size of each fan-out that its derivation used."""

    plan: ChangePlan
    asked: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class _Derivation:
    """The derivation of one change plan of a program."""

    program: Program
    fan_out: FanOut

    def change_plan(self, changed: frozenset[str]) -> ChangePlan:
        """Derive it."""
        program = self.program
        of = Derive(changed, CHANGE_RULES, often_read=often_read(program.plan))
        if (
            program.state_table is not None
            and program.state_table.state is not None
            and program.state_table.child is not None
        ):
            return self._derive_state(program.state_table.state, program.state_table.child, of)
        stored, uses_stored = Scan(SELF, program.plan.columns), "stored_top" not in program.disable
        first = find_first_ranks(program.plan) if uses_stored else None
        if program.keyed is None and uses_stored and needs_all_rows(program.plan):
            change = self._improve(net(difference(program.plan, stored)))
            if can_use_stored(program.plan):
                unless, quick = change_from_stored(program.plan, of, stored)
            elif first is not None:
                unless, quick = change_of_first_ranks_of_all(first, of, stored)
            else:
                return ApplyBag(change)
            return ApplyBag(change, Shortcut(self._improve(quick), self._improve(unless)))
        if program.keyed is None:
            change = self._improve(net(of.change(program.plan)))
            if first is None:
                return ApplyBag(change)
            quick = self._improve(change_of_first_ranks(first, of, stored))
            return ApplyBag(change, Shortcut(quick, unless=None, if_at_hand=True))
        aggregate = program.keyed.aggregate
        change = of.change(aggregate.child)
        if not aggregate.keys:
            return ReplaceKeys((), self._improve(of.trigger(change)), program.plan)
        keys = of.keys(change, aggregate.keys, distinct=True)
        touched = replace(aggregate, child=restrict(aggregate.child, aggregate.keys, keys))
        rows = transform(program.plan, lambda p: touched if p is aggregate else p)
        return ReplaceKeys(program.keyed.keys, self._improve(keys), self._improve(rows))

    def _derive_state(self, state: AggregateState, child: Plan, of: Derive) -> ChangePlan:
        program = self.program
        if state.is_additive:
            return AddToState(state, self._improve(change_of_state(state, of.change(child))))
        merged = merge(state, child, of, Scan(SELF, program.plan.columns))
        touched, rows, broken = map(self._improve, (merged.keys, merged.rows, merged.broken))
        return ReplaceKeys(tuple(k.column for k in state.keys), touched, rows, broken)

    def _improve(self, plan: Plan) -> Plan:
        program = self.program
        plan = prune(plan)
        for name, rewrite in CHANGE_PASSES.items():
            if name not in program.disable:
                plan = rewrite(plan, self.fan_out)
        return transform(plan, lambda p: replace(p, step=self._improve(p.step)) if isinstance(p, Iterate) else p)


def columns_read(plan: Plan) -> dict[str, tuple[str, ...]]:
    """List the columns that a plan reads from each source."""
    found: dict[str, dict[str, None]] = {}
    for node in walk(plan):
        if isinstance(node, Scan):
            found.setdefault(node.source, {}).update((c.name, None) for c in node.base)
    return {source: tuple(names) for source, names in found.items()}


def compile_plan(
    plan: Plan,
    disable: frozenset[str] = frozenset(),
    without: Collection[str] = (),
    plans_kept: int = DEFAULT.change_plans_kept,
    *,
    keeps_state: bool = True,
) -> Program:
    """Run the passes, split off state tables and choose how changes are applied.

    Args:
        plan: The lifted plan.
        disable: Names of optimisations to leave out.
        without: Names of state tables to leave out.
        plans_kept: How many change plans are kept.
        keeps_state: False for a query that is only ever recomputed.
    """
    for name, rewrite in PASSES.items():
        if name not in disable:
            plan = rewrite(plan)
    keyed = find_result_key(plan)
    top: Plan = plan
    state_tables: tuple[StateTable, ...] = ()
    if keeps_state:
        top, state_tables = cut_state_tables(
            plan,
            without,
            merged="merged_state" not in disable,
            only_required="state_tables" in disable,
            replaced=None if keyed is None else keyed.aggregate,
        )
    parts = [
        _program(part, disable, state_table)
        for part, state_table in ((top, None), *((s.plan, s) for s in state_tables))
    ]
    program, *below = (replace(part, plans_kept=plans_kept) for part in parts)
    return replace(program, state_tables=tuple(below), whole=plan)


def _program(plan: Plan, disable: frozenset[str], state_table: StateTable | None = None) -> Program:
    is_state = state_table is not None and state_table.state is not None  # a merge gives rows by key
    keyed = find_result_key(plan)
    # A row whose last digits may differ is found by its key, not by its values.
    by_key = "replace_keys" not in disable or is_state or (keyed is not None and keyed.aggregate.inexact)
    return Program(plan, disable, keyed if by_key else None, state_table)


def find_result_key(plan: Plan) -> Keyed | None:
    """Find a top aggregate whose keys are all in the result; projections and HAVING may stand above it."""
    above: list[Project] = []
    node = plan
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            above.append(node)
        elif isinstance(node, Filter) and not _has_keys_below(node):
            return None
        node = node.child
    if not isinstance(node, Aggregate) or isinstance(node.child, Empty):
        return None
    visible: list[Column] = []
    for key in node.keys:
        column = next((o.column for o in node.outputs if o.expr == key), None)
        for project in reversed(above):
            column = column and next((o.column for o in project.outputs if o.expr == Col(column)), None)
        if column is None:
            return None
        visible.append(column)
    return Keyed(tuple(visible), node)


def needs_all_rows(plan: Plan) -> bool:
    """Return whether a result depends on its whole input: a top-k, or a window without PARTITION BY, on top.

    Such a result is recomputed and compared with the stored rows, so that the old one need not be computed.
    """
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return isinstance(plan, TopK) or (isinstance(plan, Window) and not plan.partition)


def _has_keys_below(node: Plan) -> bool:
    """A filtered single-row result may have no row, so it cannot be replaced as the one row."""
    while isinstance(node, Project | Filter):
        node = node.child
    return isinstance(node, Aggregate) and bool(node.keys)
