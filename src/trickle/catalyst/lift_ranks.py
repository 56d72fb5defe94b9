"""Lifting what ranks rows: windows, and limits over a sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.expr import Col, Output, passthrough
from trickle.algebra.plan import Filter, Plan, Project, TopK, Window
from trickle.catalyst.jvm import items
from trickle.catalyst.lift_joins import same_columns

if TYPE_CHECKING:
    from trickle.catalyst.lift import Lift

_RANKS: Final = frozenset({"RowNumber", "Rank", "DenseRank"})
_BOUNDS: Final = frozenset({"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo"})
_ANY_ROWS: Final = (
    "LIMIT without ORDER BY may keep any rows.",
    "Add ORDER BY beside the LIMIT, or use mode='full'.",
)


def lift_window(lift: Lift, node: Any) -> Plan:
    """Lift a window; one without an order may stand for a LIMIT."""
    if node.orderSpec().size() == 0:
        sorted_ = _window_over_sort(lift, node)
        if sorted_ is not None:
            return sorted_
        if any(lift.jvm.name(n.child().windowFunction()) == "RowNumber" for n in items(node.windowExpressions())):
            # Spark itself asks for an order here, so this is a LIMIT inside LATERAL.
            lift.obstacle("LIMIT_WITHOUT_ORDER", *_ANY_ROWS)
    child = lift.plan(node.child())
    named, joined = lift.without_subqueries(list(items(node.windowExpressions())), child)
    window = Window(
        tuple(lift.output(n) for n in named), lift.exprs(node.partitionSpec()), lift.exprs(node.orderSpec()), joined
    )
    return same_columns(window, (*child.columns, *(o.column for o in window.functions)))


def _window_over_sort(lift: Lift, node: Any) -> Plan | None:
    """ORDER BY … LIMIT inside LATERAL: Spark ranks without an order, over rows it has sorted before.

    ``Window without order over projections over Sort -> Window in the sort's order``; the columns sorted by are carried up.
    """
    between = []
    below = node.child()
    while lift.jvm.name(below) in ("Project", "Filter"):
        between.append(below)
        below = below.child()
    if lift.jvm.name(below) != "Sort":
        return None
    plan = lift.plan(below.child())
    order = list(items(below.order()))
    needed = [c for c in plan.columns if any(c.id in lift.expr(o).refs for o in order)]
    for step in reversed(between):
        if lift.jvm.name(step) == "Filter":
            plan = Filter(lift.expr(step.condition()), plan)
            continue
        outputs = lift.outputs(step.projectList())
        given = {o.column.id for o in outputs}
        plan = Project((*outputs, *passthrough(tuple(c for c in needed if c.id not in given))), plan)
    functions = tuple(
        Output(lift.column(n.toAttribute()), lift.expr(lift.jvm.with_order(n.child(), order)))
        for n in items(node.windowExpressions())
    )
    window = Window(functions, lift.exprs(node.partitionSpec()), tuple(lift.expr(o) for o in order), plan)
    return same_columns(window, lift.columns(node.output()))


def keeps_first(lift: Lift, node: Any) -> bool:
    """Return whether a filter keeps the rows of a window that computes ranks alone, up to some rank: ``rank() … <= 3``."""
    window = node.child()
    if lift.jvm.name(window) != "Window":
        return False
    made = [n.child().windowFunction() for n in items(window.windowExpressions())]
    if not {lift.jvm.name(function) for function in made} <= _RANKS:
        return False
    ranks = {int(n.exprId().id()) for n in items(window.windowExpressions())}
    return all(_is_bound(lift, condition, ranks) for condition in lift.conjuncts(node.condition()))


def _is_bound(lift: Lift, condition: Any, ranks: set[int]) -> bool:
    """Return whether a condition bounds a rank from above."""
    name = lift.jvm.name(condition)
    if name not in _BOUNDS:
        return False
    sides = (condition.left(), condition.right())
    rank, bound = reversed(sides) if name.startswith("Greater") else sides
    if name == "EqualTo" and lift.jvm.name(rank) == "Literal":
        rank, bound = bound, rank
    if lift.jvm.name(rank) != "AttributeReference" or lift.jvm.name(bound) != "Literal":
        return False
    value = bound.value()
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number and int(rank.exprId().id()) in ranks and (name != "EqualTo" or value <= 1)


def lift_limit(lift: Lift, node: Any) -> Plan:
    """ORDER BY … LIMIT [OFFSET]: a chain of limits and offsets over a sort."""
    limit: int | None = None
    offset = 0
    below = node
    # From the outside in: a limit seen inside an offset counts the offset's rows too.
    while lift.jvm.name(below) in ("GlobalLimit", "LocalLimit", "Offset"):
        expr = below.offsetExpr() if lift.jvm.name(below) == "Offset" else below.limitExpr()
        number = int(expr.eval(None))
        if lift.jvm.name(below) == "Offset":
            offset += number
        else:
            limit = number - offset if limit is None else min(limit, max(number - offset, 0))
        below = below.child()
    projects = []
    while lift.jvm.name(below) == "Project":
        projects.append(below)
        below = below.child()
    top = projects[0] if projects else below
    if literals_made(lift, top):
        # Spark writes DISTINCT over constants as LIMIT 1: of equal rows it does not matter which.
        child = lift.plan(top)
        return TopK(tuple(Col(c) for c in child.columns), limit, offset, child)
    if lift.jvm.name(below) != "Sort":
        lift.obstacle("LIMIT_WITHOUT_ORDER", *_ANY_ROWS)
        return lift.plan(node.child())
    child = lift.plan(below.child())
    order = (*lift.exprs(below.order()), *(Col(c) for c in child.columns if c.orderable))
    plan: Plan = TopK(order, limit, offset, child)
    for project in reversed(projects):
        plan = Project(lift.outputs(project.projectList()), plan)
    return plan


def literals_made(lift: Lift, node: Any) -> list[Any]:
    """Return the literals that a node makes of each row or group below it; none if it gives anything else."""
    match lift.jvm.name(node):
        case "Project":
            named = list(items(node.projectList()))
        case "Aggregate" if node.groupingExpressions().size():
            named = list(items(node.aggregateExpressions()))
        case _:
            return []
    is_constant = all(lift.jvm.name(n) == "Alias" and lift.jvm.name(n.child()) == "Literal" for n in named)
    return [n.child() for n in named] if is_constant else []
