"""Fixes an order where Spark leaves it open, so that one set of rows has one result.

Spark may number tied rows, or collect a list, in any order: the order then is whatever the shuffle made of it. Maintenance
needs a function of the rows alone, so Trickle takes one of the orders Spark allows: the query's own keys first, then every
column of the input, ascending, NULLs first.

    ROW_NUMBER, NTILE, LAG, LEAD, ROWS frames           -> the window's order is completed with the input's columns
    FIRST, LAST, NTH_VALUE over RANGE frames            -> the frame stays; its rows are numbered in the completed order
    first(x), any_value(x)                              -> min_by(x, the input's columns)
    last(x)                                             -> max_by(x, the input's columns)
    max_by(x, y), min_by(x, y)                          -> ties of y decided by the input's columns
    collect_list(x), collect_set(x)                     -> sorted
    listagg(x), listagg(x) WITHIN GROUP (ORDER BY y)    -> in the order of y, then x
    mode(x)                                             -> the least of the most frequent values

Sums of floating-point numbers depend on the order too, in their last digits. In windows they are added in one order:

    over the whole partition                            -> by ROWS, in the order completed with the input's columns
    RANGE from the start to the current row             -> by ROWS in that order; for all peers what the last of them has
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.expr import Column, Expr, Opaque, Output, passthrough
from trickle.algebra.plan import Aggregate, Plan, Project, Window
from trickle.algebra.walk import transform
from trickle.catalyst.inexact import is_inexact
from trickle.catalyst.jvm import Jvm, items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.catalyst.lift import Lift

_EXPR: Final = "org.apache.spark.sql.catalyst.expressions."
_SUSPECT: Final = re.compile(
    r"\b(first|first_value|last|last_value|collect_list|collect_set|max_by|min_by|mode|listagg|string_agg|any_value|array_agg)\(",
    re.I,
)
_BY_PEERS: Final = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_BY_ROW: Final = frozenset({"RowNumber", "NTile", "Lag", "Lead"})
_PICKING: Final = frozenset({"First", "Last", "NthValue"})


def fix_order(plan: Plan, jvm: Jvm, lift: Lift) -> Plan:
    """Return the plan with every open order closed."""

    def rule(node: Plan) -> Plan:
        if isinstance(node, Window):
            return _fix_window(node, jvm, lift)
        if isinstance(node, Aggregate) and any(_is_suspect(o.expr) for o in node.outputs):
            fix = _Aggregates(jvm, node.child)
            outputs = tuple(
                Output(o.column, lift.expr(fix.rewrite(o.expr.handle)))
                if isinstance(o.expr, Opaque) and _is_suspect(o.expr)
                else o
                for o in node.outputs
            )
            return replace(node, outputs=outputs)
        return node

    return transform(plan, rule)


def fix_sums(plan: Plan, jvm: Jvm, lift: Lift) -> Plan:
    """Return the plan with floating-point numbers added in one order in every window, or the window marked as inexact."""

    def rule(node: Plan) -> Plan:
        if not isinstance(node, Window):
            return node
        ends = {
            o.column: _sum_end(o.expr.handle, jvm)
            for o in node.functions
            if isinstance(o.expr, Opaque) and is_inexact(jvm, (o.expr.handle,))
        }
        return _fix_sums(node, ends, jvm, lift) if any(end != "known" for end in ends.values()) else node

    return transform(plan, rule)


def _sum_end(expression: Any, jvm: Jvm) -> str:
    """Say how the order in which a window adds is made ``known``: it is, by ``rows``, by the ``last`` peer, or not."""
    frame = expression.windowSpec().frameSpecification()
    lower, upper = jvm.name(frame.lower()), jvm.name(frame.upper())
    if lower.startswith("Unbounded") and upper.startswith("Unbounded"):
        return "rows"
    if jvm.name(frame.frameType()) == "RowFrame$":
        return "known"
    return "last" if lower.startswith("Unbounded") and upper == "CurrentRow$" else "open"


def _fix_sums(node: Window, ends: Mapping[Column, str], jvm: Jvm, lift: Lift) -> Plan:
    ties = [jvm.ascending(c.handle) for c in node.child.columns if c.orderable and c.handle is not None]
    order = [_sort_order(o, jvm) for o in node.order]
    plan = node.child
    if whole := [o for o in node.functions if ends.get(o.column) == "rows"]:
        plan = _window(whole, node.partition, [*order, *ties], plan, jvm, lift)
    if running := [o for o in node.functions if ends.get(o.column) == "last"]:
        own = [lift.column(jvm.attribute(o.column.name, o.column.handle.dataType())) for o in running]
        made = [Output(c, o.expr) for c, o in zip(own, running, strict=True)]
        plan = _window(made, node.partition, [*order, *ties], plan, jvm, lift)
        peers = (*node.partition, *(lift.expr(o.child()) for o in order))
        lasts = [Output(o.column, _last(c, o.expr, jvm, lift)) for c, o in zip(own, running, strict=True)]
        plan = _window(lasts, peers, ties, plan, jvm, lift, whole=True)
    if rest := tuple(o for o in node.functions if ends.get(o.column, "known") in ("known", "open")):
        plan = replace(node, functions=rest, child=plan, inexact="open" in ends.values())
    return plan if plan.columns == node.columns else Project(passthrough(node.columns), plan)


def _last(column: Column, like: Expr, jvm: Jvm, lift: Lift) -> Expr:
    """Return the last value of a column as a window expression; its window comes from who places it."""
    spec = like.handle.windowSpec()  # type: ignore[union-attr]
    return lift.expr(jvm.cls(_EXPR + "WindowExpression")(jvm.call("last", [column.handle]), spec))


def _is_suspect(expr: Expr) -> bool:
    return isinstance(expr, Opaque) and _SUSPECT.search(expr.text) is not None


# -- windows


def _fix_window(node: Window, jvm: Jvm, lift: Lift) -> Plan:
    """Split off the functions that depend on the order of tied rows, and complete their order."""
    kinds = {o.column: _ties_matter(o.expr, jvm) for o in node.functions}
    if not any(kinds.values()):
        return node
    ties = [jvm.ascending(c.handle) for c in node.child.columns if c.orderable and c.handle is not None]
    order = [_sort_order(o, jvm) for o in node.order]
    plan = node.child
    if by_row := [o for o in node.functions if kinds[o.column] == "rows"]:
        plan = _window(by_row, node.partition, [*order, *ties], plan, jvm, lift)
    if among_peers := [o for o in node.functions if kinds[o.column] == "peers"]:
        peers = (*node.partition, *(lift.expr(o.child()) for o in order))
        plan = _window(among_peers, peers, ties, plan, jvm, lift, whole=True)
    if ranked := [o for o in node.functions if kinds[o.column] == "ranked"]:
        plan = _pick_by_number(replace(node, functions=tuple(ranked), child=plan), [*order, *ties], jvm, lift)
    if closed := tuple(o for o in node.functions if not kinds[o.column]):
        plan = replace(node, functions=closed, child=plan)
    return plan if plan.columns == node.columns else Project(passthrough(node.columns), plan)


def _sort_order(expr: Expr, jvm: Jvm) -> Any:
    return expr.handle if isinstance(expr, Opaque) else jvm.ascending(expr.column.handle)  # type: ignore[union-attr]


def _ties_matter(expr: Expr, jvm: Jvm) -> str:
    """Say how a function depends on the order of tied rows: not (empty), by its ``rows``, among its ``peers``, or ``ranked``.

    FIRST and LAST over a RANGE frame that ends at the current row's peers take one value for all peers: the first or last
    of them, so they become a window over the peers. At an unbounded end they mean a row of the whole order. Over any other
    RANGE frame, and where NULLs are passed over, the frame itself matters: peers are in it or not, all at once.
    """
    if not isinstance(expr, Opaque) or jvm.name(expr.handle) != "WindowExpression":
        return ""
    function = expr.handle.windowFunction()
    name = jvm.name(function)
    if name in _BY_PEERS:
        return ""
    if name in _BY_ROW:
        return "rows"
    frame = expr.handle.windowSpec().frameSpecification()
    lower, upper = jvm.name(frame.lower()), jvm.name(frame.upper())
    by_rows = jvm.name(frame.frameType()) == "RowFrame$"
    is_whole = lower.startswith("Unbounded") and upper.startswith("Unbounded")
    inner = jvm.name(function.aggregateFunction()) if name == "AggregateExpression" else name
    if inner not in _PICKING:
        return "rows" if by_rows and not is_whole else ""
    if by_rows or is_whole:
        return "rows"
    picks_end = inner != "NthValue" and not _picking(function, jvm).ignoreNulls()
    end, other = (lower, upper) if inner == "First" else (upper, lower)
    if picks_end and end.startswith("Unbounded") and other == "CurrentRow$":
        return "rows"
    return "peers" if picks_end and end == "CurrentRow$" else "ranked"


def _picking(function: Any, jvm: Jvm) -> Any:
    """Return the function that picks a row: FIRST and LAST come as aggregates."""
    return function.aggregateFunction() if jvm.name(function) == "AggregateExpression" else function


def _pick_by_number(node: Window, order: list[Any], jvm: Jvm, lift: Lift) -> Plan:
    """Number the rows in an order without ties, and let functions pick rows of their own frames by these numbers.

    Law    first(x) = min_by(x, number);  last(x) = max_by(x, number)
           nth_value(x, n) = the n-th of the frame's (number, x), sorted by number
    """
    number_type = jvm.singleton("org.apache.spark.sql.types.IntegerType")
    number = lift.column(jvm.attribute("__number", number_type))
    row_frame, first, current = (jvm.singleton(_EXPR + n) for n in ("RowFrame", "UnboundedPreceding", "CurrentRow"))
    frame = jvm.cls(_EXPR + "SpecifiedWindowFrame")(row_frame, first, current)
    spec = jvm.cls(_EXPR + "WindowSpecDefinition")(jvm.nil, jvm.nil, frame)
    counted = jvm.cls(_EXPR + "WindowExpression")(jvm.cls(_EXPR + "RowNumber")(), spec)
    numbered = _window([Output(number, lift.expr(counted))], node.partition, order, node.child, jvm, lift)
    picked = [_Picked(o, number.handle, jvm, lift) for o in node.functions]
    window = replace(node, functions=tuple(p.collected for p in picked), child=numbered)
    values = {p.output.column: p.value() for p in picked}
    outputs = (
        Output(c, values[c]) if c in values else o for c, o in zip(node.columns, passthrough(node.columns), strict=True)
    )
    return Project(tuple(outputs), window)


class _Picked:
    """One function over numbered rows: what its frame is collected to, and how its value follows."""

    def __init__(self, output: Output, number: Any, jvm: Jvm, lift: Lift) -> None:
        self.output = output
        self._jvm = jvm
        self._lift = lift
        expression = output.expr.handle  # type: ignore[union-attr]
        self._function = _picking(expression.windowFunction(), jvm)
        self._name = jvm.name(self._function)
        self._value = self._function.input() if self._name == "NthValue" else self._function.child()
        place = number
        if self._function.ignoreNulls():
            place = jvm.call("if", [jvm.call("isnotnull", [self._value]), number, jvm.literal(None, number.dataType())])
        match self._name:
            case "First":
                made = jvm.call("min_by", [self._value, place])
            case "Last":
                made = jvm.call("max_by", [self._value, place])
            case _:
                pair = jvm.call("struct", [place, self._value])
                missing = jvm.literal(None, pair.dataType())
                made = jvm.call("collect_list", [jvm.call("if", [jvm.call("isnotnull", [place]), pair, missing])])
        self.column = lift.column(jvm.attribute("__picked", made.dataType()))
        over = jvm.cls(_EXPR + "WindowExpression")(made, expression.windowSpec())
        self.collected = Output(self.column, lift.expr(over))

    def value(self) -> Expr:
        """Return the function's value over the collected column."""
        if self._name != "NthValue":
            return self._lift.expr(self.column.handle)
        jvm = self._jvm
        # By way of a map: the values may be of a type that cannot be sorted.
        by_number = jvm.call("map_from_entries", [self.column.handle])
        numbers = jvm.call("sort_array", [jvm.call("map_keys", [by_number])])
        wanted = jvm.call("try_element_at", [numbers, self._function.offset()])
        return self._lift.expr(jvm.call("try_element_at", [by_number, wanted]))


def _window(
    functions: list[Output],
    partition: tuple[Expr, ...],
    order: list[Any],
    child: Plan,
    jvm: Jvm,
    lift: Lift,
    *,
    whole: bool = False,
) -> Window:
    """Put functions into a window of another partition and order, by ROWS."""
    parts = jvm.seq([p.handle if isinstance(p, Opaque) else p.column.handle for p in partition])  # type: ignore[union-attr]
    outputs = []
    for output in functions:
        expression = output.expr.handle  # type: ignore[union-attr]
        frame = expression.windowSpec().frameSpecification()
        lower, upper = frame.lower(), frame.upper()
        if whole:
            lower, upper = jvm.singleton(_EXPR + "UnboundedPreceding"), jvm.singleton(_EXPR + "UnboundedFollowing")
        if whole or jvm.name(frame.frameType()) == "RangeFrame$":
            frame = jvm.cls(_EXPR + "SpecifiedWindowFrame")(jvm.singleton(_EXPR + "RowFrame"), lower, upper)
        spec = jvm.cls(_EXPR + "WindowSpecDefinition")(parts, jvm.seq(order), frame)
        made = jvm.cls(_EXPR + "WindowExpression")(expression.windowFunction(), spec)
        outputs.append(Output(output.column, lift.expr(made)))
    return Window(tuple(outputs), partition, tuple(lift.expr(o) for o in order), child)


# -- aggregates


class _Aggregates:
    """Rewrites the order-dependent aggregate functions over one input."""

    def __init__(self, jvm: Jvm, child: Plan) -> None:
        self.jvm = jvm
        self._ties = [c.handle for c in child.columns if c.orderable and c.handle is not None]

    def rewrite(self, expr: Any) -> Any:
        """Rewrite every such function in an expression."""
        if self.jvm.name(expr) == "AggregateExpression":
            return self._aggregate(expr)
        children = list(items(expr.children()))
        done = [self.rewrite(c) for c in children]
        if all(a is b for a, b in zip(children, done, strict=True)):
            return expr
        return expr.withNewChildren(self.jvm.seq(done))

    def _aggregate(self, expr: Any) -> Any:
        function = expr.aggregateFunction()
        name = self.jvm.name(function)
        where = expr.filter().get() if expr.filter().isDefined() else None
        if name in ("First", "Last"):
            if function.ignoreNulls():
                where = self._and(where, self._not_null(function.child()))
            return self._by("min_by" if name == "First" else "max_by", function.child(), self._ties, where)
        if name in ("MaxBy", "MinBy"):
            order = function.orderingExpr()
            where = self._and(where, self._not_null(order))
            return self._by(
                "max_by" if name == "MaxBy" else "min_by", function.valueExpr(), [order, *self._ties], where
            )
        if name in ("CollectList", "CollectSet") and self.jvm.is_orderable(function.child()):
            return self.jvm.call("sort_array", [expr])
        if name == "Mode" and function.reverseOpt().isEmpty():
            args = self.jvm.gateway.new_array(self.jvm.gateway.jvm.Object, 4)
            for i, value in enumerate((function.child(), 0, 0, self.jvm.some(True))):
                args[i] = value
            return function.makeCopy(args).toAggregateExpression(expr.isDistinct(), self.jvm.some(where))
        if name == "ListAgg" and not expr.isDistinct():
            order = [*items(function.orderExpressions()), self.jvm.ascending(function.child())]
            ordered = function.withOrderingWithinGroup(self.jvm.seq(order))
            return ordered.toAggregateExpression(False, self.jvm.some(where))
        return expr

    def _by(self, name: str, value: Any, order: list[Any], where: Any) -> Any:
        key = self.jvm.call("struct", order)
        return self.jvm.call(name, [value, key], where=where)

    def _not_null(self, expr: Any) -> Any:
        return self.jvm.cls(_EXPR + "IsNotNull")(expr)

    def _and(self, left: Any, right: Any) -> Any:
        return right if left is None else self.jvm.conjunction([left, right])
