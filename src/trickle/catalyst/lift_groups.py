"""Lifting Python functions that make rows of rows: table functions of each row, and functions over groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.plan import GroupMap, Plan, RowWise
from trickle.catalyst.jvm import items
from trickle.catalyst.lift_joins import same_columns

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr
    from trickle.catalyst.lift import Lift


@dataclass(frozen=True, slots=True)
class Grouped:
    """A Catalyst node that calls a function for groups, and under it what brings the rows of each input into groups.

    Attributes:
        node: The node.
        below: For each input the nodes between it and ``node``, the uppermost first.
    """

    node: Any
    below: tuple[tuple[Any, ...], ...]


def lift_group_map(lift: Lift, node: Any) -> Plan:
    """Lift a pandas or Arrow function over groups, of one input or of two.

    Spark puts a projection below it that gives the keys and after them all columns, so that a key which is a column occurs
    twice. The projection stays with the function; the keys are read from it.
    """
    inputs = list(items(node.children()))
    keys: list[tuple[Expr, ...]] = []
    below: list[tuple[Any, ...]] = []
    for child, width in zip(inputs, key_widths(node), strict=True):
        if width and lift.jvm.name(child) == "Project" and not _has_subquery(lift, child):
            below.append((child,))
            keys.append(tuple(lift.output(n).expr for n in list(items(child.projectList()))[:width]))
        else:
            below.append(())
            keys.append(lift.exprs(child.output())[:width])
    children = tuple(lift.plan(nodes[0].child() if nodes else c) for c, nodes in zip(inputs, below, strict=True))
    label = f"{lift.jvm.name(node)} {node.functionExpr().name()}"
    made = lift.columns(node.output())
    return GroupMap(tuple(keys), children, made, label, Grouped(node, tuple(below)))


def _has_subquery(lift: Lift, project: Any) -> bool:
    return any(lift.jvm.contains(n, "PLAN_EXPRESSION") for n in items(project.projectList()))


def key_widths(node: Any) -> list[int]:
    """Say for a function over groups how many of each input's first columns are its key."""
    if node.children().size() == 1:
        return [int(node.groupingAttributes().size())]
    return [int(node.leftGroupingLen()), int(node.rightGroupingLen())]


def lift_udtf(lift: Lift, node: Any) -> Plan:
    """Lift a Python table function: of each row by itself, or of a table in partitions."""
    udtf = node.udtf()
    tables = udtf.tableArguments()
    if tables.isDefined() and any(items(tables.get())):
        return _over_partitions(lift, node)
    child = lift.plan(node.child())
    refs = frozenset(int(a.exprId().id()) for a in items(udtf.references().toSeq()))
    made = lift.columns(node.resultAttrs())
    return same_columns(RowWise(made, child, f"UDTF {udtf.name()}", refs, node), lift.columns(node.output()))


_BETWEEN: Final = frozenset({"Project", "Sort"})


def _over_partitions(lift: Lift, node: Any) -> Plan:
    """Lift a function of a table in partitions: Spark brings each one's rows together below it, sorted by its key."""
    by_key = node.udtf().pythonUDTFPartitionColumnIndexes().isDefined()
    nodes = _down_to_division(lift, node.child(), by_key=by_key)
    if not nodes or node.requiredChildOutput().nonEmpty():
        text = f"{node.udtf().name()}() takes a whole table whose rows are not partitioned."
        lift.obstacle("TABLE_ARGUMENT", text, "Say PARTITION BY or WITH SINGLE PARTITION, or use mode='full'.")
        return lift.plan(node.child())
    division = nodes[-1]
    child = lift.plan(division.child())
    keys = lift.exprs(division.partitionExpressions()) if by_key else ()
    return GroupMap(
        (keys,), (child,), lift.columns(node.resultAttrs()), f"UDTF {node.udtf().name()}", Grouped(node, (nodes,))
    )


def _down_to_division(lift: Lift, node: Any, *, by_key: bool) -> tuple[Any, ...]:
    """Return the nodes from this one to the one that brings the rows of a partition into one task; none if there is none."""
    nodes: list[Any] = []
    while lift.jvm.name(node) in _BETWEEN:
        nodes.append(node)
        node = node.child()
    if by_key:
        is_division = lift.jvm.name(node) == "RepartitionByExpression"
    else:
        # A hint may ask for several tasks, which is not a single partition.
        is_division = lift.jvm.name(node) == "Repartition" and node.numPartitions() == 1
    return (*nodes, node) if is_division else ()
