"""From Catalyst's optimised plan to the plan language: one function for each kind of node, listed in ``LIFTERS``.

What cannot be maintained is noted as an obstacle by name, and lifting goes on where it can, so that a user hears of all
obstacles at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.expr import Call, Col, Column, Expr, Lit, Output, new_column
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    InnerJoin,
    Plan,
    Project,
    RowWise,
    Scan,
    Union,
    Values,
)
from trickle.catalyst.jvm import Jvm, items
from trickle.catalyst.lift_aggregates import lift_aggregate
from trickle.catalyst.lift_groups import lift_group_map, lift_udtf
from trickle.catalyst.lift_joins import lift_join, same_columns, single_value
from trickle.catalyst.lift_ranks import keeps_first, lift_limit, lift_window, literals_made
from trickle.catalyst.lift_recursion import lift_loop, lift_loop_ref
from trickle.catalyst.opaque import opaque
from trickle.model.reason import Reason

if TYPE_CHECKING:
    from trickle.tables.contract import SourceTable

ResolveLeaf = Callable[[Any], "SourceTable | None"]


class Lift:
    """One walk over one optimised plan.

    Attributes:
        sources: The sources met, by name.
        obstacles: What stands against maintaining the query by its changes.
    """

    def __init__(self, jvm: Jvm, resolve_leaf: ResolveLeaf, max_depth: int = 100) -> None:
        """Start.

        Args:
            jvm: Catalyst.
            resolve_leaf: Returns the source behind a leaf, None for constant rows, or raises.
            max_depth: How deep a recursion may go; -1 for any depth.
        """
        self.jvm = jvm
        self.max_depth = max_depth
        self.sources: dict[str, SourceTable] = {}
        self.obstacles: list[Reason] = []
        self._resolve_leaf = resolve_leaf
        self._columns: dict[int, Column] = {}
        self._lifted: dict[int, list[tuple[Any, Plan]]] = {}

    def plan(self, node: Any) -> Plan:
        """Lift a node and all below it."""
        name = self.jvm.name(node)
        lifter = LIFTERS.get(name)
        if name in _LIFTED_ONCE:
            return self._once(node, LIFTERS[name])
        if lifter is not None:
            return lifter(self, node)
        if node.children().size() == 0:
            return self._leaf(node)
        code, text = _REFUSED.get(name, ("UNSUPPORTED_OPERATOR", f"{name} is an operator that Trickle does not know."))
        self.obstacle(code, text, "Rewrite the query without it, or use mode='full'.")
        return Empty(self.columns(node.output()))

    def _once(self, node: Any, lifter: Callable[[Lift, Any], Plan]) -> Plan:
        """Lift a node, or find that an equal one has been: a CTE or view used twice is one plan under two names."""
        alike = self._lifted.setdefault(int(node.semanticHash()), [])
        for earlier, plan in alike:
            if earlier.sameResult(node):
                renamed = zip(self.columns(node.output()), self.columns(earlier.output()), strict=True)
                return Project(tuple(Output(new, Col(old)) for new, old in renamed), plan)
        plan = lifter(self, node)
        alike.append((node, plan))
        return plan

    def obstacle(self, code: str, text: str, hint: str) -> None:
        """Note what stands against maintaining the query."""
        reason = Reason(code, text, hint)
        if reason not in self.obstacles:
            self.obstacles.append(reason)

    # -- columns and expressions

    def column(self, attribute: Any) -> Column:
        """Return the column of a Catalyst attribute."""
        id_ = int(attribute.exprId().id())
        known = self._columns.get(id_)
        if known is None:
            data_type = attribute.dataType()
            orderable = self.jvm.is_orderable(attribute)
            known = Column(id_, attribute.name(), data_type.catalogString(), orderable, attribute)
            self._columns[id_] = known
        return known

    def columns(self, attributes: Any) -> tuple[Column, ...]:
        """Return the columns of a sequence of attributes."""
        return tuple(self.column(a) for a in items(attributes))

    def expr(self, expr: Any) -> Expr:
        """Lift an expression: a plain column as such, anything else as an opaque handle."""
        if self.jvm.name(expr) == "AttributeReference":
            return Col(self.column(expr))
        return opaque(expr)

    def exprs(self, seq: Any) -> tuple[Expr, ...]:
        """Lift a sequence of expressions."""
        return tuple(self.expr(e) for e in items(seq))

    def output(self, named: Any) -> Output:
        """Lift a named expression."""
        if self.jvm.name(named) == "Alias":
            expr = self.expr(named.child())
            return Output(self.column(named.toAttribute()), expr)
        column = self.column(named)
        return Output(column, Col(column))

    def outputs(self, seq: Any) -> tuple[Output, ...]:
        """Lift a sequence of named expressions."""
        return tuple(self.output(n) for n in items(seq))

    def conjuncts(self, condition: Any) -> list[Any]:
        """Split a condition at its ANDs."""
        if self.jvm.name(condition) == "And":
            return self.conjuncts(condition.left()) + self.conjuncts(condition.right())
        return [condition]

    # -- subqueries: each uncorrelated scalar subquery becomes a join with its one-row result

    def without_subqueries(self, exprs: list[Any], child: Plan) -> tuple[list[Any], Plan]:
        """Replace scalar subqueries in expressions by columns joined to the child."""
        joined = [child]
        done = [self.replace_subqueries(e, joined) for e in exprs]
        return done, joined[0]

    def replace_subqueries(self, expr: Any, joined: list[Plan]) -> Any:
        """Replace the scalar subqueries in an expression; their rows are joined to the one plan in ``joined``."""
        if not self.jvm.contains(expr, "PLAN_EXPRESSION"):
            return expr
        name = self.jvm.name(expr)
        if name == "ScalarSubquery":
            attribute = self.jvm.attribute("subquery", expr.dataType())
            joined[0] = InnerJoin(joined[0], self._one_row(expr.plan(), self.column(attribute)), small="right")
            return attribute
        if name in ("Exists", "ListQuery", "InSubquery", "LateralSubquery", "DynamicPruningSubquery"):
            text = f"Spark leaves a subquery as an expression ({name})."
            self.obstacle("UNSUPPORTED_SUBQUERY", text, "Move it to WHERE, or write it as a join.")
            return expr
        children = [self.replace_subqueries(c, joined) for c in items(expr.children())]
        return expr.withNewChildren(self.jvm.seq(children))

    def _one_row(self, node: Any, value: Column) -> Plan:
        """Return a subquery's value as exactly one row: NULL if it has no row, an error if it has two."""
        probed = self._probed(node)
        if probed is not None:
            return self._exists(probed, value)
        plan = self.plan(node)
        inner = plan.columns[0]
        if _has_exactly_one_row(plan):
            return Project((Output(value, Col(inner)),), plan)
        count = new_column("n", "bigint")
        found = new_column("value", value.type)
        counted = Aggregate(
            (),
            (Output(count, Call("count", (Lit(1),))), Output(found, Call("first", (Col(inner),)))),
            plan,
        )
        return Project((Output(value, single_value(count, found, value)),), counted)

    def _probed(self, node: Any) -> Any:
        """Return the node that an uncorrelated EXISTS asks for one row: Spark writes `(SELECT 1 … LIMIT 1) IS NOT NULL`."""
        if self.jvm.name(node) != "GlobalLimit" or node.maxRows().isEmpty() or node.maxRows().get() != 1:
            return None
        below = node.child().child() if self.jvm.name(node.child()) == "LocalLimit" else node.child()
        return below if literals_made(self, below) else None

    def _exists(self, probed: Any, value: Column) -> Plan:
        (literal, *_) = literals_made(self, probed)
        plan = self.plan(probed.child())
        count = new_column("n", "bigint")
        counted = Aggregate((), (Output(count, Call("count", (Lit(1),))),), plan)
        found = Call("if", (Call(">", (Col(count), Lit(0))), self.expr(literal), Lit(None, like=value)))
        return Project((Output(value, found),), counted)

    # -- leaves

    def _leaf(self, node: Any) -> Plan:
        columns = self.columns(node.output())
        source = self._resolve_leaf(node)
        if source is None:
            return Values(columns, node, str(node.nodeName()))
        self.sources[source.name] = source
        return Scan(source.name, columns)


def _has_exactly_one_row(plan: Plan) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Aggregate) and not plan.keys


def _lift_project(lift: Lift, node: Any) -> Plan:
    named, child = lift.without_subqueries(list(items(node.projectList())), lift.plan(node.child()))
    return Project(tuple(lift.output(n) for n in named), child)


def _lift_filter(lift: Lift, node: Any) -> Plan:
    child = lift.plan(node.child())
    (condition,), joined = lift.without_subqueries([node.condition()], child)
    keeps = joined is child and keeps_first(lift, node)
    return same_columns(Filter(lift.expr(condition), joined, keeps), child.columns)


def _lift_window_group_limit(lift: Lift, node: Any) -> Plan:
    """A hint that a filter above keeps only the first ranks: the filter alone says the same."""
    return lift.plan(node.child())


def _lift_generate(lift: Lift, node: Any) -> Plan:
    child = lift.plan(node.child())
    given = lift.columns(node.generatorOutput())
    # EXCEPT ALL and INTERSECT ALL generate columns under the very ids they read, so what is made gets ids of its own.
    made = tuple(new_column(c.name, c.type, orderable=c.orderable, handle=c.handle) for c in given)
    refs = frozenset(int(a.exprId().id()) for a in items(node.generator().references().toSeq()))
    generate = RowWise(made, child, f"Generate {node.generator().toString()}", refs, node)
    by_id = {c.id: Output(c, Col(m)) for c, m in zip(given, made, strict=True)}
    wanted = lift.columns(node.output())
    return Project(tuple(by_id.get(c.id, Output(c, Col(c))) for c in wanted), generate)


def _lift_eval_udf(lift: Lift, node: Any) -> Plan:
    child = lift.plan(node.child())
    refs = frozenset(int(a.exprId().id()) for u in items(node.udfs()) for a in items(u.references().toSeq()))
    return RowWise(
        lift.columns(node.resultAttrs()), child, f"{lift.jvm.name(node)} {node.udfs().toString()}", refs, node
    )


def _lift_expand(lift: Lift, node: Any) -> Plan:
    child = lift.plan(node.child())
    # Expand may hand a column on under its own id; its output gets ids of its own at lowering either way.
    return Expand(tuple(lift.exprs(p) for p in items(node.projections())), lift.columns(node.output()), child)


def _lift_union(lift: Lift, node: Any) -> Plan:
    return Union(tuple(lift.plan(c) for c in items(node.children())), lift.columns(node.output()))


def _lift_child(lift: Lift, node: Any) -> Plan:
    """Sorting and repartitioning change no rows; a table keeps no order."""
    return lift.plan(node.child())


def _lift_sample(lift: Lift, node: Any) -> Plan:
    lift.obstacle("TABLESAMPLE", "TABLESAMPLE picks other rows at each run.", "Remove it, or use mode='full'.")
    return lift.plan(node.child())


_BATCHES: Final = ("PARTITION_FUNCTION", "A Python function over whole batches of rows may mix rows in any way.")
_REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "MapInPandas": _BATCHES,
    "MapInArrow": _BATCHES,
    "ScriptTransformation": ("SCRIPT_TRANSFORM", "TRANSFORM hands rows to a program that may mix them in any way."),
}

_LIFTED_ONCE: Final = frozenset({"Aggregate", "Join", "Window", "Union", "Expand", "Generate", "GlobalLimit"})

LIFTERS: Final[Mapping[str, Callable[[Lift, Any], Plan]]] = {
    "Project": _lift_project,
    "Filter": _lift_filter,
    "Aggregate": lift_aggregate,
    "Window": lift_window,
    "WindowGroupLimit": _lift_window_group_limit,
    "Join": lift_join,
    "Generate": _lift_generate,
    "BatchEvalPython": _lift_eval_udf,
    "ArrowEvalPython": _lift_eval_udf,
    "BatchEvalPythonUDTF": lift_udtf,
    "ArrowEvalPythonUDTF": lift_udtf,
    "FlatMapGroupsInPandas": lift_group_map,
    "FlatMapGroupsInArrow": lift_group_map,
    "FlatMapCoGroupsInPandas": lift_group_map,
    "FlatMapCoGroupsInArrow": lift_group_map,
    "Expand": _lift_expand,
    "Union": _lift_union,
    "Sort": _lift_child,
    "Repartition": _lift_child,
    "RepartitionByExpression": _lift_child,
    "RebalancePartitions": _lift_child,
    "CollectMetrics": _lift_child,
    "SubqueryAlias": _lift_child,
    "GlobalLimit": lift_limit,
    "LocalLimit": lift_limit,
    "Offset": lift_limit,
    "Sample": _lift_sample,
    "UnionLoop": lift_loop,
    "UnionLoopRef": lift_loop_ref,
}
