"""From the plan language back to Catalyst: one function for each kind of node, listed in ``LOWERERS``.

Every lowered node gets expression ids of its own, so a plan may be used many times in one tree (as change plans do) and
never meets itself. A user's expression is carried over by renaming its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.expr import WEIGHT, Call, Cast, Col, Column, Expr, Lit, Opaque, Output
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    Iterate,
    Join,
    Plan,
    Project,
    Repeat,
    Scan,
    Shared,
    TopK,
    Union,
    Values,
    When,
    Window,
)
from trickle.catalyst.jvm import Jvm, analysed_plan, items
from trickle.catalyst.lower_functions import FUNCTIONS
from trickle.catalyst.lower_joins import JOINS
from trickle.catalyst.lower_recursion import RECURSION
from trickle.catalyst.lowered import Lowered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GREATEST_INT: Final = 2**31 - 1
"""Spark counts the rows of a limit in an INT."""

# Returns the DataFrame behind a scan or a shared result.
Leaf = Callable[[Plan], "DataFrame"]


class Lower:
    """Builds Catalyst plans for one set of leaves."""

    def __init__(self, jvm: Jvm, leaf: Leaf, *, hints: bool = True, in_one_task: bool = False) -> None:
        """Start.

        Args:
            jvm: Catalyst.
            leaf: Returns the DataFrame of a leaf.
            hints: True if what the plan calls small is.
            in_one_task: True if all leaves are rows that the driver holds.
        """
        self.jvm = jvm
        self.leaf = leaf
        self.hints = hints
        self.in_one_task = in_one_task
        self.handles: dict[int, Any] = {}
        self.loops: dict[int, Any] = {}

    def frame(self, plan: Plan) -> DataFrame:
        """Return a plan as a DataFrame with its columns' names."""
        lowered = self.lower(plan)
        named = self.jvm.project(lowered.named(plan.columns), lowered.plan)
        return self.jvm.frame(named, in_one_task=self.in_one_task)

    def lower(self, plan: Plan) -> Lowered:
        """Lower a node and all below it."""
        for column in plan.columns:
            if column.handle is not None:
                self.handles.setdefault(column.id, column.handle)
        return LOWERERS[type(plan)](self, plan)

    def with_new_ids(self, relation: Any) -> tuple[Any, list[Any]]:
        """Return a leaf under new expression ids."""
        made, attributes = _with_new_ids(relation, self.jvm)
        return self.in_one_partition(made), attributes

    def by_position(self, leaf: Plan) -> Lowered:
        """Lower a computed result: it may hold two columns of one name, so they go by position."""
        relation, attributes = self.with_new_ids(analysed_plan(self.leaf(leaf)))
        return Lowered(relation, dict(zip((c.id for c in leaf.columns), attributes, strict=True)))

    def in_one_partition(self, plan: Any) -> Any:
        """Put rows of the driver into one partition: of a coalesced one Spark knows that it needs no exchange."""
        return self.jvm.plan("Repartition", 1, False, plan) if self.in_one_task else plan

    # -- expressions

    def exprs(self, exprs: Sequence[Expr], inputs: Sequence[Lowered]) -> list[Any]:
        """Lower expressions over inputs; all opaque ones are renamed in one call."""
        opaque: dict[int, Opaque] = {}

        def collect(expr: Expr | None) -> None:
            if isinstance(expr, Opaque):
                opaque[expr.key] = expr
            elif isinstance(expr, Call):
                for arg in expr.args:
                    collect(arg)
                collect(expr.where)
            elif isinstance(expr, Cast):
                collect(expr.expr)

        for expr in exprs:
            collect(expr)
        attributes = {k: v for i in inputs for k, v in i.attributes.items()}
        found = list(opaque.values())
        refs = sorted(frozenset[int]().union(*(o.refs for o in found)))
        renaming = [(self.handles[r], attributes[r]) for r in refs]
        renamed = self.jvm.rename([o.handle for o in found], renaming)
        done = dict(zip((o.key for o in found), renamed, strict=True))
        return [self._expr(e, attributes, done) for e in exprs]

    def _expr(self, expr: Expr, attributes: Mapping[int, Any], done: Mapping[int, Any]) -> Any:
        match expr:
            case Col(column):
                return attributes[column.id]
            case Lit(value, like):
                if like is None:
                    return self.jvm.literal(value)
                return self.jvm.literal(value, self.type_of(like))
            case Opaque(key):
                return done[key]
            case Cast(inner, like):
                return self.jvm.cast(self._expr(inner, attributes, done), self.type_of(like))
            case Call(name, args, distinct, where):
                condition = None if where is None else self._expr(where, attributes, done)
                made = [self._expr(a, attributes, done) for a in args]
                return self.jvm.call(name, made, distinct=distinct, where=condition)

    def type_of(self, column: Column) -> Any:
        """Return the Catalyst type of a column."""
        handle = column.handle if column.handle is not None else self.handles.get(column.id)
        if handle is not None:
            return handle.dataType()
        parser = self.jvm.cls("org.apache.spark.sql.types.DataType")
        return parser.fromDDL(column.type)

    def named(self, outputs: Sequence[Output], inputs: Sequence[Lowered]) -> tuple[list[Any], dict[int, Any]]:
        """Lower named expressions; return them and the attribute of each column."""
        exprs = self.exprs([o.expr for o in outputs], inputs)
        made: list[Any] = []
        attributes: dict[int, Any] = {}
        used: set[int] = set()
        for output, expr in zip(outputs, exprs, strict=True):
            if isinstance(output.expr, Col) and output.is_passthrough and output.column.id not in used:
                made.append(expr)
                attributes[output.column.id] = expr
            else:
                alias = self.jvm.alias(expr, output.column.name)
                made.append(alias)
                attributes[output.column.id] = alias.toAttribute()
            used.add(output.column.id)
        return made, attributes

    def condition(self, join: Join, left: Lowered, right: Lowered) -> Any:
        """Lower a join's condition; None if it has none."""
        lefts = self.exprs([k.left for k in join.keys], [left])
        rights = self.exprs([k.right for k in join.keys], [right])
        safe = [k.null_safe for k in join.keys]
        equal = [self.jvm.equal(a, b, null_safe=s) for a, b, s in zip(lefts, rights, safe, strict=True)]
        return self.jvm.conjunction([*equal, *self.exprs(join.residual, [left, right])])


def _lower_leaf(lower: Lower, plan: Plan) -> Lowered:
    columns = plan.columns
    relation, attributes = lower.with_new_ids(analysed_plan(lower.leaf(plan)))
    by_name = {a.name(): a for a in attributes}
    return Lowered(relation, {c.id: by_name[c.name] for c in columns})


def _lower_shared(lower: Lower, plan: Plan) -> Lowered:
    return lower.by_position(plan)


def _with_new_ids(relation: Any, jvm: Jvm) -> tuple[Any, list[Any]]:
    """Return a relation under new expression ids."""
    while jvm.name(relation) in ("SubqueryAlias", "View"):
        relation = relation.child()
    if jvm.name(relation) in (
        "LogicalRelation",
        "LocalRelation",
        "LogicalRDD",
        "InMemoryRelation",
        "LogicalQueryStage",
    ):
        relation = relation.newInstance()
        return relation, list(items(relation.output()))
    named = [jvm.alias(a, a.name()) for a in items(relation.output())]
    return jvm.project(named, relation), [n.toAttribute() for n in named]


def _lower_values(lower: Lower, plan: Values) -> Lowered:
    relation, attributes = lower.with_new_ids(plan.handle)
    return Lowered(relation, dict(zip((c.id for c in plan.columns), attributes, strict=True)))


def _lower_empty(lower: Lower, plan: Empty) -> Lowered:
    fresh = [lower.jvm.attribute(c.name, lower.type_of(c)) for c in plan.columns]
    relation = lower.jvm.plan("LocalRelation", lower.jvm.seq(fresh), lower.jvm.nil, False, lower.jvm.none)
    return Lowered(relation, dict(zip((c.id for c in plan.columns), fresh, strict=True)))


def _lower_when(lower: Lower, plan: When) -> Lowered:
    return lower.lower(plan.child)


def _lower_filter(lower: Lower, plan: Filter) -> Lowered:
    child = lower.lower(plan.child)
    (condition,) = lower.exprs([plan.condition], [child])
    return Lowered(lower.jvm.plan("Filter", condition, child.plan), child.attributes)


def _lower_project(lower: Lower, plan: Project) -> Lowered:
    child = lower.lower(plan.child)
    named, attributes = lower.named(plan.outputs, [child])
    return Lowered(lower.jvm.project(named, child.plan), attributes)


def _lower_aggregate(lower: Lower, plan: Aggregate) -> Lowered:
    child = lower.lower(plan.child)
    keys = lower.exprs(plan.keys, [child])
    named, attributes = lower.named(plan.outputs, [child])
    seq = lower.jvm.seq
    return Lowered(lower.jvm.plan("Aggregate", seq(keys), seq(named), child.plan, lower.jvm.none), attributes)


def _lower_window(lower: Lower, plan: Window) -> Lowered:
    child = lower.lower(plan.child)
    named, made = lower.named(plan.functions, [child])
    seq = lower.jvm.seq
    partition = seq(lower.exprs(plan.partition, [child]))
    order = seq(lower.exprs(plan.order, [child]))
    node = lower.jvm.plan("Window", seq(named), partition, order, child.plan, lower.jvm.none)
    return Lowered(node, {**child.attributes, **made})


def _lower_repeat(lower: Lower, plan: Repeat) -> Lowered:
    child = lower.lower(plan.child)
    jvm = lower.jvm
    weight = child.attributes[WEIGHT.id]
    integer = jvm.singleton("org.apache.spark.sql.types.IntegerType")
    copies = jvm.call("array_repeat", [jvm.int_literal(0), jvm.cast(jvm.call("abs", [weight]), integer)])
    copy = jvm.attribute("copy", integer)
    made = jvm.plan("Generate", jvm.call("explode", [copies]), jvm.nil, False, jvm.none, jvm.seq([copy]), child.plan)
    is_deletion = jvm.call("<", [weight, jvm.literal(0)])
    sign = jvm.alias(jvm.call("if", [is_deletion, jvm.literal(-1), jvm.literal(1)]), WEIGHT.name)
    kept = {k: a for k, a in child.attributes.items() if k != WEIGHT.id}
    return Lowered(jvm.project([*kept.values(), sign], made), {**kept, WEIGHT.id: sign.toAttribute()})


def _lower_expand(lower: Lower, plan: Expand) -> Lowered:
    child = lower.lower(plan.child)
    flat = lower.exprs([e for p in plan.projections for e in p], [child])
    width = len(plan.made)
    starts = [width * number for number in range(len(plan.projections))]  # of no column, perhaps
    rows = [lower.jvm.seq(flat[start : start + width]) for start in starts]
    fresh = [
        c.handle.newInstance() if c.handle is not None else lower.jvm.attribute(c.name, flat[i].dataType())
        for i, c in enumerate(plan.made)
    ]
    node = lower.jvm.plan("Expand", lower.jvm.seq(rows), lower.jvm.seq(fresh), child.plan)
    return Lowered(node, dict(zip((c.id for c in plan.made), fresh, strict=True)))


def _lower_union(lower: Lower, plan: Union) -> Lowered:
    if len(plan.children) == 1:
        only = lower.lower(plan.children[0])
        attributes = only.named(plan.children[0].columns)
        return Lowered(only.plan, dict(zip((c.id for c in plan.columns), attributes, strict=True)))
    children = []
    for child in plan.children:
        lowered = lower.lower(child)
        named = [lower.jvm.alias(a, c.name) for a, c in zip(lowered.named(child.columns), plan.columns, strict=True)]
        children.append(lower.jvm.project(named, lowered.plan))
    node = lower.in_one_partition(lower.jvm.plan("Union", lower.jvm.seq(children), False, False))
    return Lowered(node, dict(zip((c.id for c in plan.columns), items(node.output()), strict=True)))


def _lower_top_k(lower: Lower, plan: TopK) -> Lowered:
    child = lower.lower(plan.child)
    jvm = lower.jvm
    exprs = lower.exprs(plan.order, [child])
    order = [e if jvm.name(e) == "SortOrder" else jvm.ascending(e) for e in exprs]
    node = jvm.plan("Sort", jvm.seq(order), True, child.plan, jvm.none)
    if plan.limit is not None:
        bound = jvm.int_literal(min(plan.limit + plan.offset, _GREATEST_INT))
        node = jvm.plan("GlobalLimit", bound, jvm.plan("LocalLimit", bound, node))
    if plan.offset:
        node = jvm.plan("Offset", jvm.int_literal(plan.offset), node)
    return Lowered(node, child.attributes)


LOWERERS: Final[Mapping[type[Plan], Callable[..., Lowered]]] = {
    **JOINS,
    **FUNCTIONS,
    **RECURSION,
    Scan: _lower_leaf,
    Shared: _lower_shared,
    Iterate: _lower_shared,
    Values: _lower_values,
    Empty: _lower_empty,
    When: _lower_when,
    Filter: _lower_filter,
    Project: _lower_project,
    Aggregate: _lower_aggregate,
    Window: _lower_window,
    Expand: _lower_expand,
    Repeat: _lower_repeat,
    Union: _lower_union,
    TopK: _lower_top_k,
}
