"""Change of left, right and full outer joins.

Law    L left join R = (L join R) + pad(L anti R); right and full likewise; the change is the sum of the parts' changes
Cost   that of an inner join and of one or two anti joins; the inputs' changes are computed once
Needs  both inputs at both frontiers; no stored state
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trickle.algebra.expr import WEIGHT, Col, Column, KeyPair, Lit, Output
from trickle.algebra.plan import InnerJoin, OuterJoin, Plan, Project, SemiJoin
from trickle.rules.derive import total

if TYPE_CHECKING:
    from trickle.rules.derive import Derive


def change_of_outer_join(plan: Plan, of: Derive) -> Plan:
    """Add the changes of the pairs and of the rows without a match."""
    join = cast("OuterJoin", plan)
    of.shared_change(join.left)
    of.shared_change(join.right)
    parts: list[Plan] = [of.change(InnerJoin(join.left, join.right, join.keys, join.residual))]
    if join.kind in ("left", "full"):
        alone = SemiJoin(join.left, join.right, join.keys, join.residual, kind="anti")
        parts.append(_pad(of.change(alone), join.columns))
    if join.kind in ("right", "full"):
        swapped = tuple(KeyPair(k.right, k.left, k.null_safe) for k in join.keys)
        alone = SemiJoin(join.right, join.left, swapped, join.residual, kind="anti")
        parts.append(_pad(of.change(alone), join.columns))
    aligned = [Project(tuple(Output(c, Col(c)) for c in (*join.columns, WEIGHT)), parts[0]), *parts[1:]]
    return total(*aligned)


def _pad(change: Plan, columns: tuple[Column, ...]) -> Plan:
    """Fill the columns of the missing side with NULLs."""
    have = change.ids
    outputs = (Output(c, Col(c) if c.id in have else Lit(None, like=c)) for c in columns)
    return Project((*outputs, Output(WEIGHT, Col(WEIGHT))), change)
