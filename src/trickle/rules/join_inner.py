"""Change of an inner or cross join, under any condition.

Law    change(L join R) = change(L) join new(R)  +  old(L) join change(R)
Cost   two joins, each with one small side
Needs  both inputs at the old and the new frontier; no stored state
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trickle.rules.derive import join_change, total

if TYPE_CHECKING:
    from trickle.algebra.plan import InnerJoin, Plan
    from trickle.rules.derive import Derive


def change_of_inner_join(plan: Plan, of: Derive) -> Plan:
    """Meet left changes with the new right, and right changes with the old left."""
    join = cast("InnerJoin", plan)
    change = of.change(join.right)
    if join.small == "right":
        # A subquery's one row: often its input changed and its value did not.
        change = of.trigger(change)
    by_left = join_change(join, of.change(join.left), of.new(join.right))
    by_right = join_change(join, of.old(join.left), change)
    return total(by_left, by_right)
