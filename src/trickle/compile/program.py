"""A compiled definition: the plan, how its change is applied, and the change plans derived so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from trickle.algebra.expr import Col, Column
from trickle.algebra.plan import Aggregate, Empty, Filter, Iterate, Plan, Project, Scan, TopK, Window
from trickle.algebra.walk import transform, walk
from trickle.compile.narrow import narrow_scans
from trickle.compile.order_joins import order_joins
from trickle.compile.prune import prune
from trickle.compile.push_keys import push_keys
from trickle.rules import CHANGE_RULES, Derive
from trickle.rules.derive import difference, net, restrict

Pass = Callable[[Plan], Plan]

# Rewrites of the plan itself, in order. Each can be switched off by name and then costs time, never exactness.
PASSES: Final[Mapping[str, Pass]] = {"narrow_scans": narrow_scans}

# Rewrites of a change plan, in order; these too can be switched off.
CHANGE_PASSES: Final[Mapping[str, Pass]] = {"push_keys": push_keys, "order_joins": order_joins}

# What can be switched off by ``Trickle(spark, disable={…})``.
OPTIMISATIONS: Final = frozenset({*PASSES, *CHANGE_PASSES, "replace_keys", "stored_top"})


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
    """

    change: Plan | None = None
    keys: Plan | None = None
    rows: Plan | None = None

    @property
    def roots(self) -> tuple[Plan, ...]:
        """What must be evaluated."""
        return tuple(p for p in (self.change, self.keys, self.rows) if p is not None)


@dataclass(slots=True)
class Program:
    """A plan ready to be refreshed."""

    plan: Plan
    disable: frozenset[str] = frozenset()
    keyed: Keyed | None = None
    _derived: dict[tuple[frozenset[str], frozenset[str]], ChangePlan] = field(default_factory=dict)

    @property
    def used(self) -> dict[str, tuple[str, ...]]:
        """The columns read of each source; a source read twice counts both."""
        found: dict[str, dict[str, None]] = {}
        for node in walk(self.plan):
            if isinstance(node, Scan):
                found.setdefault(node.source, {}).update((c.name, None) for c in node.base)
        return {source: tuple(names) for source, names in found.items()}

    def derive(self, changed: frozenset[str], inserts_only: frozenset[str]) -> ChangePlan:
        """Give the change plan for a set of changed sources; derived once."""
        key = (changed, inserts_only)
        if key not in self._derived:
            self._derived[key] = self._derive(changed, inserts_only)
        return self._derived[key]

    def _derive(self, changed: frozenset[str], inserts_only: frozenset[str]) -> ChangePlan:
        of = Derive(changed, CHANGE_RULES, inserts_only=inserts_only)
        if self.keyed is None and "stored_top" not in self.disable and is_whole(self.plan):
            return ChangePlan(change=self._improve(net(difference(self.plan, Scan(SELF, self.plan.columns)))))
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

    def _improve(self, plan: Plan) -> Plan:
        plan = prune(plan)
        for name, rewrite in CHANGE_PASSES.items():
            if name not in self.disable:
                plan = rewrite(plan)
        return transform(plan, lambda p: replace(p, step=self._improve(p.step)) if isinstance(p, Iterate) else p)


def compile_plan(plan: Plan, disable: frozenset[str] = frozenset()) -> Program:
    """Run the passes and choose how changes are applied."""
    for name, rewrite in PASSES.items():
        if name not in disable:
            plan = rewrite(plan)
    keyed = None if "replace_keys" in disable and not _has_floats(plan) else find_keys(plan)
    return Program(plan, disable, keyed)


def _has_floats(plan: Plan) -> bool:
    """Tell whether rows hold floating-point numbers.

    A sum may come out otherwise in its last bits, so such a row is found by its key, not by its values.
    """
    return any("double" in c.type or "float" in c.type for c in plan.columns)


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
