"""A compiled definition: the plan, how its change is applied, and the change plans derived so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from trickle.algebra.expr import Col, Column
from trickle.algebra.plan import Aggregate, Empty, Filter, Iterate, Plan, Project, Scan, Sums, TopK, Window
from trickle.algebra.walk import often_read, transform, walk
from trickle.compile.merge import merge
from trickle.compile.narrow import narrow_scans
from trickle.compile.order_joins import Partners, order_joins
from trickle.compile.prune import prune
from trickle.compile.push_keys import push_keys
from trickle.compile.stages import Stage, cut
from trickle.compile.sums import state_change
from trickle.compile.top import can_use_stored, from_stored
from trickle.rules import CHANGE_RULES, Derive
from trickle.rules.derive import difference, net, restrict

Pass = Callable[[Plan], Plan]

# Rewrites of the plan itself, in order. Each can be switched off by name and then costs time, never exactness.
PASSES: Final[Mapping[str, Pass]] = {"narrow_scans": narrow_scans}

# Rewrites of a change plan, in order; these too can be switched off.
CHANGE_PASSES: Final = ("push_keys", "order_joins")

SELF: Final = ""
"""The name under which a change plan reads the stream table's own rows."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """The plan's rows are unique by some of its columns, which are the group keys of its top aggregate.

    Attributes:
        keys: The output columns that hold the key, in the order of the aggregate's keys; empty for a single-row result.
        aggregate: The top aggregate.
    """

    keys: tuple[Column, ...]
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What to compute in a refresh.

    Attributes:
        change: The netted change of the whole plan, for a bag apply; None if keys are replaced.
        keys: For keys to be replaced: the touched keys.
        rows: For keys to be replaced: the new rows of those keys.
        broken: For keys to be replaced: rows that tell that the stored ones are not what they should be.
        delta: For an additive state: what is added to it.
        quick: The same as ``change``, computed from less.
        unless: Rows that forbid the quick way.
    """

    change: Plan | None = None
    keys: Plan | None = None
    rows: Plan | None = None
    broken: Plan | None = None
    delta: Plan | None = None
    quick: Plan | None = None
    unless: Plan | None = None


@dataclass(slots=True)
class Program:
    """A plan ready to be refreshed.

    Attributes:
        plan: What the table holds, over sources and stages.
        stage: What this is the program of, if it is a stage's.
        stages: The programs of the stages it reads, each after those that it reads itself.
        whole: What the table holds, over sources alone.
        partners: How many rows of a source have one value of a column; better told before the first change plan.
    """

    plan: Plan
    disable: frozenset[str] = frozenset()
    keyed: Keyed | None = None
    stage: Stage | None = None
    stages: tuple[Program, ...] = ()
    whole: Plan = field(default_factory=lambda: Empty(()))
    partners: Partners = lambda _source, _column: 1.0
    _derived: dict[frozenset[str], ChangePlan] = field(default_factory=dict)

    @property
    def used(self) -> dict[str, tuple[str, ...]]:
        """The columns read of each source and stage; a source read twice counts both."""
        return columns_read(self.plan)

    def derive(self, changed: frozenset[str]) -> ChangePlan:
        """Give the change plan for a set of changed sources; derived once."""
        if changed not in self._derived:
            self._derived[changed] = self._derive(changed)
        return self._derived[changed]

    def _derive(self, changed: frozenset[str]) -> ChangePlan:
        of = Derive(changed, CHANGE_RULES, often_read=often_read(self.plan))
        if self.stage is not None and self.stage.sums is not None and self.stage.child is not None:
            return self._derive_state(self.stage.sums, self.stage.child, of)
        if self.keyed is None and "stored_top" not in self.disable and is_whole(self.plan):
            stored = Scan(SELF, self.plan.columns)
            change = self._improve(net(difference(self.plan, stored)))
            if not can_use_stored(self.plan):
                return ChangePlan(change=change)
            unless, quick = from_stored(self.plan, of, stored)
            return ChangePlan(change=change, quick=self._improve(quick), unless=self._improve(unless))
        if self.keyed is None:
            return ChangePlan(change=self._improve(net(of.change(self.plan))))
        aggregate = self.keyed.aggregate
        change = of.change(aggregate.child)
        if not aggregate.keys:
            return ChangePlan(keys=self._improve(of.trigger(change)), rows=self.plan)
        keys = of.keys(change, aggregate.keys, distinct=True)
        touched = replace(aggregate, child=restrict(aggregate.child, aggregate.keys, keys))
        rows = transform(self.plan, lambda p: touched if p is aggregate else p)
        return ChangePlan(keys=self._improve(keys), rows=self._improve(rows))

    def _derive_state(self, sums: Sums, child: Plan, of: Derive) -> ChangePlan:
        if sums.is_additive:
            return ChangePlan(delta=self._improve(state_change(sums, of.change(child))))
        merged = merge(sums, child, of, Scan(SELF, self.plan.columns))
        keys, rows, broken = map(self._improve, (merged.keys, merged.rows, merged.broken))
        return ChangePlan(keys=keys, rows=rows, broken=broken)

    def _improve(self, plan: Plan) -> Plan:
        plan = prune(plan)
        if "push_keys" not in self.disable:
            plan = push_keys(plan)
        if "order_joins" not in self.disable:
            plan = order_joins(plan, self.partners)
        return transform(plan, lambda p: replace(p, step=self._improve(p.step)) if isinstance(p, Iterate) else p)


def columns_read(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Name the columns that a plan reads of each source."""
    found: dict[str, dict[str, None]] = {}
    for node in walk(plan):
        if isinstance(node, Scan):
            found.setdefault(node.source, {}).update((c.name, None) for c in node.base)
    return {source: tuple(names) for source, names in found.items()}


def compile_plan(
    plan: Plan, disable: frozenset[str] = frozenset(), without: Collection[str] = (), *, keeps_state: bool = True
) -> Program:
    """Run the passes, cut the plan into stages and choose how changes are applied.

    Args:
        plan: The lifted plan.
        disable: Names of optimisations to leave out.
        without: Names of stages to leave out.
        keeps_state: False for a query that is only ever recomputed.
    """
    for name, rewrite in PASSES.items():
        if name not in disable:
            plan = rewrite(plan)
    keyed = find_keys(plan)
    top: Plan = plan
    stages: tuple[Stage, ...] = ()
    if keeps_state:
        top, stages = cut(
            plan,
            without,
            merged="merged_state" not in disable,
            only_needed="stages" in disable,
            replaced=None if keyed is None else keyed.aggregate,
        )
    return replace(_program(top, disable), stages=tuple(_program(s.plan, disable, s) for s in stages), whole=plan)


def _program(plan: Plan, disable: frozenset[str], stage: Stage | None = None) -> Program:
    is_state = stage is not None and stage.sums is not None  # a merge gives rows by key
    keyed = find_keys(plan)
    # What may come out otherwise in its last digits is found by its key, not by its values.
    by_key = "replace_keys" not in disable or is_state or (keyed is not None and keyed.aggregate.inexact)
    return Program(plan, disable, keyed if by_key else None, stage)


def find_keys(plan: Plan) -> Keyed | None:
    """Find a top aggregate whose keys are all visible in the result; projections and HAVING may stand above it."""
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


def is_whole(plan: Plan) -> bool:
    """Tell whether a result hangs on all its input at once: a top-k, or a window without PARTITION BY, on top.

    Such a result is computed anew and compared with what is stored, which saves computing the old one.
    """
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return isinstance(plan, TopK) or (isinstance(plan, Window) and not plan.partition)


def _has_keys_below(node: Plan) -> bool:
    """A filtered single-row result may have no row, so it cannot be replaced as the one row."""
    while isinstance(node, Project | Filter):
        node = node.child
    return isinstance(node, Aggregate) and bool(node.keys)
