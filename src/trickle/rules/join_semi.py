"""Change of semi, anti and existence joins (IN, EXISTS, INTERSECT, EXCEPT; NOT; and EXISTS under OR).

Law    change(J(L, R)) = J(change(L), new(R))  +  J(L0, new(R)) - J(L0, old(R)),  L0 = old(L) with a key that changed in R
Cost   left rows of the changed keys, looked up twice; a condition without an equality (NOT IN over NULLs) looks up all of L
Needs  both inputs at both frontiers; no stored state

All matches of a left row have its key, so the right side may be restricted to the same keys. A NULL-aware anti join has no
equality to restrict by (a NULL matches everything): there the law holds with every key changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from trickle.algebra.plan import Empty, Plan, SemiJoin, Shared, When
from trickle.rules.derive import difference, restrict, total

if TYPE_CHECKING:
    from trickle.rules.derive import Derive


def change_of_semi_join(plan: Plan, of: Derive) -> Plan:
    """Look up changed left rows in the new right; look up left rows of changed right keys before and after."""
    join = cast("SemiJoin", plan)
    left, right = of.new(join.left), of.new(join.right)
    return total(_by_left(join, of, right), _by_right(join, of, of.old(left), right))


def law_of_semi_join(join: SemiJoin) -> str:
    """Describe the law of a semi join."""
    if not join.keys:
        return "no equality to look up by: all left rows looked up before and after when the right side changed"
    return "changed left rows looked up; left rows of changed right keys looked up before and after"


def _by_left(join: SemiJoin, of: Derive, right: Plan) -> Plan:
    change = of.change(join.left)
    if join.keys and not isinstance(change, Empty):
        change = of.shared_change(join.left)
        right = _with_keys_of(change, join, of, right)
    return replace(join, left=change, right=right)


def _with_keys_of(change: Plan, join: SemiJoin, of: Derive, right: Plan) -> Plan:
    keys = of.keys(change, tuple(k.left for k in join.keys))
    return restrict(right, tuple(k.right for k in join.keys), keys, null_safe=tuple(k.null_safe for k in join.keys))


def _by_right(join: SemiJoin, of: Derive, left: Plan, right: Plan) -> Plan:
    change = of.change(join.right)
    if isinstance(change, Empty):
        return Empty((*join.columns, *change.columns[-1:]))
    if not join.keys:
        both = difference(replace(join, left=left), replace(join, left=left, right=of.old(right)))
        trigger = of.trigger(change)
        return When(trigger, both) if isinstance(trigger, Shared) else both
    keys = of.keys(change, tuple(k.right for k in join.keys))
    safe = tuple(k.null_safe for k in join.keys)
    touched = restrict(left, tuple(k.left for k in join.keys), keys, null_safe=safe)
    columns = tuple(k.right for k in join.keys)
    return difference(
        replace(join, left=touched, right=restrict(right, columns, keys, null_safe=safe)),
        replace(join, left=touched, right=restrict(of.old(right), columns, keys, null_safe=safe)),
    )
