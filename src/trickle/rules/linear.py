"""Change of the operators that process each row independently.

Law    change(f(R)) = f(change(R)) for filter, project, generators, UDF evaluation, expand; of a union, the sum of changes
Cost   the size of the change
Needs  nothing but the change; no snapshot, no stored state
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from trickle.algebra.expr import WEIGHT, Col, Output
from trickle.algebra.plan import Expand, Filter, LoopRef, Plan, Project, RowWise, Scan, Union

if TYPE_CHECKING:
    from trickle.rules.derive import Derive


def change_of_scan(plan: Plan, of: Derive) -> Plan:  # noqa: ARG001
    """Read what the source's commits did."""
    return replace(cast("Scan", plan), at="change")


def change_of_loop_ref(plan: Plan, of: Derive) -> Plan:  # noqa: ARG001
    """Return the rows that the last round of a recursion added."""
    return replace(cast("LoopRef", plan), at="change")


def change_of_filter(plan: Plan, of: Derive) -> Plan:
    """Filter the change."""
    node = cast("Filter", plan)
    return replace(node, child=of.change(node.child))


def change_of_project(plan: Plan, of: Derive) -> Plan:
    """Project the change and keep the weight."""
    node = cast("Project", plan)
    return Project((*node.outputs, Output(WEIGHT, Col(WEIGHT))), of.change(node.child))


def change_of_row_wise(plan: Plan, of: Derive) -> Plan:
    """Generate from, or evaluate over, the changed rows only."""
    node = cast("RowWise", plan)
    return replace(node, child=of.change(node.child))


def change_of_expand(plan: Plan, of: Derive) -> Plan:
    """Expand the changed rows, each copy with its row's weight."""
    node = cast("Expand", plan)
    projections = tuple((*p, Col(WEIGHT)) for p in node.projections)
    return Expand(projections, (*node.made, WEIGHT), of.change(node.child))


def change_of_union(plan: Plan, of: Derive) -> Plan:
    """Add the children's changes."""
    node = cast("Union", plan)
    return Union(tuple(of.change(c) for c in node.children), (*node.columns, WEIGHT))
