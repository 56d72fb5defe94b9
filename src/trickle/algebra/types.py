"""Types by name: the type of a column, if the plan determines it."""

from __future__ import annotations

from trickle.algebra.expr import Col, Column
from trickle.algebra.plan import Aggregate, LoopRef, Plan, Project, Scan, Union


def type_of(plan: Plan, column: Column) -> str:
    """Return the type of a plan's column; an internal column has the type of its value. Empty if unknown."""
    if column.type:
        return column.type
    match plan:
        case Project(outputs=outputs) | Aggregate(outputs=outputs):
            expr = next(o.expr for o in outputs if o.column.id == column.id)
            return type_of(plan.inputs[0], expr.column) if isinstance(expr, Col) else ""
        case Union():
            place = plan.columns.index(column)
            types = {type_of(c, c.columns[place]) for c in plan.children}
            return types.pop() if len(types) == 1 else ""
        case Scan() | LoopRef():
            return ""
    return next((type_of(p, column) for p in plan.inputs if column.id in p.ids), "")
