"""Change of the operators that combine many rows: aggregate, window, function over groups, top-k.

Law    change(g(R)) = g(new(R) with key in K) - g(old(R) with key in K),  K = the keys of change(R), NULL a key like any other
Cost   the rows of the touched groups or partitions, read at both frontiers; without a key, everything
Needs  the input at both frontiers; no stored state

The law requires nothing of the functions: it covers user-defined aggregates, ordered sets and every window frame. An
aggregate without GROUP BY returns exactly one row before and after, even over no rows. A function over groups of several
inputs sees the groups of one key together, so K contains the keys of all their changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from trickle.algebra.plan import Aggregate, GroupMap, Plan, Shared, TopK, When, Window
from trickle.rules.derive import difference, restrict, total

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr
    from trickle.rules.derive import Derive


def change_of_aggregate(plan: Plan, of: Derive) -> Plan:
    """Recompute the groups that hold a changed row."""
    node = cast("Aggregate", plan)
    return _by_key(node, node.child, node.keys, of)


def law_of_aggregate(node: Aggregate) -> str:
    """Describe the law of an aggregate."""
    return "by key: groups of changed rows recomputed" if node.keys else "one row: recomputed when its input changed"


def change_of_window(plan: Plan, of: Derive) -> Plan:
    """Recompute the partitions that hold a changed row."""
    node = cast("Window", plan)
    return _by_key(node, node.child, node.partition, of)


def law_of_window(node: Window) -> str:
    """Describe the law of a window."""
    if not node.partition:
        return "no PARTITION BY: recomputed when its input changed"
    return "by key: partitions of changed rows recomputed"


def change_of_top_k(plan: Plan, of: Derive) -> Plan:
    """Take the top before and after."""
    node = cast("TopK", plan)
    return _by_key(node, node.child, (), of)


def change_of_group_map(plan: Plan, of: Derive) -> Plan:
    """Call the function for the groups that hold a changed row."""
    node = cast("GroupMap", plan)
    olds = tuple(of.old(c) for c in node.children)
    if not any(node.keys):
        return difference(node, replace(node, children=olds))
    keys = total(*(of.keys(of.change(c), k) for c, k in zip(node.children, node.keys, strict=True)))

    def restricted(children: tuple[Plan, ...]) -> GroupMap:
        kept = (restrict(c, k, keys) for c, k in zip(children, node.keys, strict=True))
        return replace(node, children=tuple(kept))

    return difference(restricted(node.children), restricted(olds))


def _by_key(node: Aggregate | Window | TopK, child: Plan, exprs: tuple[Expr, ...], of: Derive) -> Plan:
    change = of.change(child)
    new, old = of.new(child), of.old(child)
    if exprs:
        keys = of.keys(change, exprs)
        return difference(
            replace(node, child=restrict(new, exprs, keys)), replace(node, child=restrict(old, exprs, keys))
        )
    both = difference(replace(node, child=new), replace(node, child=old))
    trigger = of.trigger(change)
    return When(trigger, both) if isinstance(trigger, Shared) else both
