"""The recursion from a plan to its change plan.

``Derive`` answers three questions about any plan: its rows at the old frontier, at the new one, and what changed between.
The laws themselves are one module each; ``CHANGE_RULES`` in the package lists them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from trickle.algebra.expr import WEIGHT, Call, Col, Expr, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Filter,
    InnerJoin,
    Iterate,
    LoopRef,
    Plan,
    Project,
    Scan,
    SemiJoin,
    Shared,
    Union,
)
from trickle.algebra.walk import transform, walk


@dataclass(frozen=True, slots=True)
class Rule:
    """How the change of a kind of node follows from its inputs.

    Attributes:
        change: Returns the change plan of a node.
        law: The law in a sentence, for ``explain``; for some kinds it depends on the node.
    """

    change: Callable[[Plan, Derive], Plan]
    law: str | Callable[..., str] = ""

    def law_of(self, node: Plan) -> str:
        """Return the law of a node in a sentence."""
        return self.law if isinstance(self.law, str) else self.law(node)

    @property
    def cost(self) -> str:
        """What has to be read besides the change, as the module of the law says it."""
        found = re.search(r"^Cost +(.+)$", sys.modules[self.change.__module__].__doc__ or "", re.MULTILINE)
        return "" if found is None else found[1]


def weighted(plan: Plan, weight: int) -> Project:
    """Add a weight to plain rows: +1 to insert them, -1 to delete them."""
    return Project((*passthrough(plan.columns), Output(WEIGHT, Lit(weight))), plan)


def difference(new: Plan, old: Plan) -> Union:
    """Return the change ``new - old`` of two plans with the same columns."""
    return Union((weighted(new, 1), weighted(old, -1)), (*new.columns, WEIGHT))


def total(*changes: Plan) -> Plan:
    """Add changes that have the same columns."""
    return changes[0] if len(changes) == 1 else Union(changes, changes[0].columns)


def net(change: Plan) -> Plan:
    """Sum the weights of equal rows and drop the zeros; rows that cannot be compared (maps) are left as they are."""
    rows = change.columns[:-1]
    if not all(c.orderable for c in rows):
        return change
    summed = Output(WEIGHT, Call("sum", (Col(WEIGHT),)))
    grouped = Aggregate(tuple(Col(c) for c in rows), (*passthrough(rows), summed), change)
    return Filter(Call("!", (Call("=", (Col(WEIGHT), Lit(0))),)), grouped)


class Derive:
    """Derives change plans, given which sources changed.

    Attributes:
        changed: The sources that changed; all others are the same at both frontiers.
        loops: Recursion ids whose reference stands for a change (while the step of a recursion is derived).
    """

    def __init__(
        self,
        changed: frozenset[str],
        rules: Mapping[type[Plan], Rule],
        *,
        loops: frozenset[int] = frozenset(),
        often_read: frozenset[int] = frozenset(),
    ) -> None:
        """Start a derivation; ``often_read`` are the identities of plans that are read in several places."""
        self._often_read = often_read
        self.changed = changed
        self.loops = loops
        self._rules = rules
        # The memos are keyed by identity; `_alive` keeps every plan alive, so that no later one gets its id.
        self._changes: dict[int, Plan] = {}
        self._olds: dict[int, Plan] = {}
        self._touched: dict[int, bool] = {}
        self._alive: list[Plan] = []
        self._count = 0

    def touches(self, plan: Plan) -> bool:
        """Return whether a plan reads anything that changed."""
        known = self._touched.get(id(plan))
        if known is None:
            known = any(
                (isinstance(p, Scan) and p.source in self.changed) or (isinstance(p, LoopRef) and p.loop in self.loops)
                for p in walk(plan)
            )
            self._touched[id(plan)] = known
            self._alive.append(plan)
        return known

    def old(self, plan: Plan) -> Plan:
        """Return the plan over the old frontier."""

        def back(node: Plan) -> Plan:
            if isinstance(node, Scan) and node.at == "new" and node.source in self.changed:
                return replace(node, at="old")
            return node

        self._alive.append(plan)
        return transform(plan, back, self._olds)

    def new(self, plan: Plan) -> Plan:
        """Return the plan over the new frontier: the plan itself."""
        return plan

    def change(self, plan: Plan) -> Plan:
        """Return the change plan: the plan's columns and the weight."""
        known = self._changes.get(id(plan))
        if known is None:
            known = self._rules[type(plan)].change(plan, self) if self.touches(plan) else Empty((*plan.columns, WEIGHT))
            if id(plan) in self._often_read:
                known = self.share(known)
            self._changes[id(plan)] = known
        return known

    def shared_change(self, plan: Plan) -> Plan:
        """Return the change of a plan as a result computed once, however often it is read."""
        change = self.share(self.change(plan))
        self._changes[id(plan)] = change
        return change

    def share(self, plan: Plan) -> Plan:
        """Mark a result to be computed once; a scan already is."""
        if isinstance(plan, Scan | Shared | Iterate | Empty):
            return plan
        return Shared(self.new_name(), plan)

    def new_name(self) -> str:
        """Name a result that is computed once."""
        self._count += 1
        return f"s{self._count}"

    def within(self, loop: int) -> Derive:
        """Derive inside a recursion's step, where only the recursive reference changes."""
        return Derive(frozenset(), self._rules, loops=frozenset((loop,)))

    def trigger(self, change: Plan) -> Plan:
        """Return the netted change as a shared result, which shows whether anything changed at all."""
        return self.share(change if isinstance(change, Scan | Shared | Iterate | Empty) else net(change))

    def keys(self, plan: Plan, exprs: tuple[Expr, ...], *, distinct: bool = False) -> Plan:
        """Return the values of some expressions over a plan, under fresh columns.

        A computed result is read again as it is: duplicates do not matter to a restriction. Anything else is computed
        once, without duplicates.
        """
        outputs = tuple(Output(new_column(f"k{i}"), e) for i, e in enumerate(exprs))
        values = Project(outputs, plan)
        if _is_computed(plan) and not distinct:
            return values
        columns = values.columns
        return self.share(Aggregate(tuple(Col(c) for c in columns), passthrough(columns), values))


def _is_computed(plan: Plan) -> bool:
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return isinstance(plan, Shared | Iterate) or (isinstance(plan, Scan) and plan.at == "change")


def restrict(plan: Plan, exprs: tuple[Expr, ...], keys: Plan, *, null_safe: bool | tuple[bool, ...] = True) -> SemiJoin:
    """Keep the rows whose expressions' values are among the keys."""
    safe = null_safe if isinstance(null_safe, tuple) else (null_safe,) * len(exprs)
    # Each use of a key set gets its own columns, so that it can be joined with itself.
    renamed = tuple(Output(new_column(c.name), Col(c)) for c in keys.columns)
    pairs = tuple(KeyPair(e, Col(o.column), s) for e, o, s in zip(exprs, renamed, safe, strict=True))
    return SemiJoin(plan, Project(renamed, keys), pairs, small="right")


def join_change(join: InnerJoin, left: Plan, right: Plan) -> InnerJoin:
    """Replace the inputs of an inner join and mark the side that is a change as small."""
    return replace(join, left=left, right=right, small="left" if left.is_change else "right")
