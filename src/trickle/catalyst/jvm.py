"""Reaching Catalyst by py4j: classes, Scala collections and the constructors that differ between Spark versions.

A py4j call costs tens of microseconds and a class looked up by its dotted path a millisecond, so classes are kept.
Everything that names a Catalyst constructor is here or in ``lower``: a new Spark version is a change to these files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.algebra.expr import Expr
    from trickle.catalyst.row_projection import RowProjection

_ONE_TASK = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Not the user's: Delta sets it in the session with each commit."""

_LIST_OF = 10
_EXPR = "org.apache.spark.sql.catalyst.expressions."
_PLANS = "org.apache.spark.sql.catalyst.plans."


class Jvm:
    """Catalyst as seen from Python, for one Spark session."""

    def __init__(self, spark: SparkSession, options: Options = DEFAULT) -> None:
        """Keep the gateway."""
        self.spark = spark
        self.options = options
        self.gateway: Any = spark.sparkContext._gateway
        self._classes: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._longs: Cache[int, Any] = Cache("constants", options.constants_kept)
        self.driver_forms: Cache[int, Expr | None] = Cache("expressions", options.expressions_kept)
        self.row_projections: Cache[tuple[int, ...], RowProjection] = Cache("projections", options.expressions_kept)
        self._one_task_session: Any = None
        self._conf: Any = None
        self.none = self.singleton("scala.None")
        self.nil = self.singleton("scala.collection.immutable.Nil")
        self._to_scala = self.cls("org.apache.spark.api.python.PythonUtils")
        self._new_id = self.singleton(_EXPR + "NamedExpression").newExprId
        self._identifier = self.cls("org.apache.spark.sql.catalyst.FunctionIdentifier")
        self._functions = self.singleton("org.apache.spark.sql.catalyst.analysis.FunctionRegistry").builtin()
        self._empty_metadata = self.singleton("org.apache.spark.sql.types.Metadata").empty()
        self.no_hint = self.singleton(_PLANS + "logical.JoinHint").NONE()

    # -- the session

    @contextmanager
    def active(self, session: Any) -> Iterator[None]:
        """Make a session the one whose settings Catalyst reads, in this thread."""
        sessions = self.cls("org.apache.spark.sql.classic.SparkSession")
        before = sessions.getActiveSession()
        sessions.setActiveSession(session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def settings_mark(self) -> int:
        """Return a number that is another one if any setting of the session was changed, but for what Delta notes there."""
        if self._conf is None:
            session: Any = self.spark._jsparkSession
            self._conf = session.sessionState().conf()
        return int(self._conf.getAllConfs().removed(_LAST_COMMIT).hashCode())

    def forget_settings(self) -> None:
        """Make no more use of sessions that were copied when the settings were others."""
        self._one_task_session = None

    @contextmanager
    def settings_in_tasks(self) -> Iterator[None]:
        """Let the tasks of a plan that is run by itself know the session's settings; those of a query know them.

        Some expressions read them when they are evaluated: policies for dates, for one.
        """
        session: Any = self.spark._jsparkSession
        context = session.sparkContext()
        before = context.getLocalProperties()
        settings = before.clone()
        converters = self.cls("scala.jdk.javaapi.CollectionConverters")
        settings.putAll(converters.asJava(session.sessionState().conf().getAllConfs()))
        context.setLocalProperties(settings)
        try:
            yield
        finally:
            context.setLocalProperties(before)

    # -- classes and Scala values

    def cls(self, path: str) -> Any:
        """Return a class by its dotted path."""
        found = self._classes.get(path)
        if found is None:
            found = self.gateway.jvm
            for part in path.split("."):
                found = getattr(found, part)
            self._classes[path] = found
        return found

    def singleton(self, path: str) -> Any:
        """Return a Scala object (a singleton)."""
        found = self._objects.get(path)
        if found is None:
            found = getattr(self.cls(path + "$"), "MODULE$")
            self._objects[path] = found
        return found

    def seq(self, items: Iterable[Any]) -> Any:
        """Make an immutable Scala Seq."""
        return self._to_scala.toSeq(self._list(items))

    def _list(self, items: Iterable[Any]) -> Any:
        all_items = list(items)
        # One call makes a list of up to ten items.
        if len(all_items) <= _LIST_OF:
            return self.cls("java.util.List").of(*all_items)
        java = self.cls("java.util.ArrayList")()
        for at in range(0, len(all_items), _LIST_OF):
            java.addAll(self._list(all_items[at : at + _LIST_OF]))
        return java

    def replacing(self, others: Iterable[tuple[Any, Any]]) -> Any:
        """Return the partial function that Catalyst's transformations ask for; an immutable Scala map is one."""
        java = self.cls("java.util.HashMap")()
        for old, new in others:
            java.put(old, new)
        return self._to_scala.toScalaMap(java)

    def some(self, value: Any) -> Any:
        """Make a Scala Some, or None for Python's None."""
        return self.none if value is None else self.cls("scala.Some")(value)

    def name(self, node: Any) -> str:
        """Return the simple class name of a JVM object."""
        return str(node.getClass().getSimpleName())

    # -- expressions

    def new_id(self) -> Any:
        """Make a fresh expression id."""
        return self._new_id()

    def alias(self, expr: Any, name: str) -> Any:
        """Name an expression under a fresh id."""
        return self.cls(_EXPR + "Alias")(expr, name, self.new_id(), self.nil, self.none, self.nil)

    def alias_as(self, expr: Any, attribute: Any) -> Any:
        """Name an expression as an attribute that is there, under its id, without its metadata."""
        make, bare = self.cls(_EXPR + "Alias"), self.some(self._empty_metadata)
        return make(expr, attribute.name(), attribute.exprId(), attribute.qualifier(), bare, self.nil)

    def attribute(self, name: str, data_type: Any) -> Any:
        """Make a nullable attribute under a fresh id."""
        make = self.cls(_EXPR + "AttributeReference")
        return make(name, data_type, True, self._empty_metadata, self.new_id(), self.nil)

    def literal(self, value: Any, data_type: Any = None) -> Any:
        """Make a constant: whole numbers are bigint, NULL takes the type given."""
        make = self.singleton(_EXPR + "Literal")
        if data_type is not None:
            return make.create(value, data_type)
        if isinstance(value, int) and not isinstance(value, bool):
            # py4j sends a small number as Integer, which a bigint literal refuses: Spark's parser makes the Long.
            return self._longs.get(value, lambda: make.fromSQL(f"{value}L"))
        return make.apply(value)

    def int_literal(self, value: int) -> Any:
        """Make an INT constant, as limits need it."""
        return self.singleton(_EXPR + "Literal").create(value, self.singleton("org.apache.spark.sql.types.IntegerType"))

    def call(self, name: str, args: Sequence[Any], *, distinct: bool = False, where: Any = None) -> Any:
        """Build a built-in function by its SQL name; an aggregate comes wrapped as aggregates must be."""
        made = self._functions.lookupFunction(self._identifier(name), self.seq(args))
        if where is not None or distinct or self.is_instance(made, _EXPR + "aggregate.AggregateFunction"):
            return made.toAggregateExpression(distinct, self.some(where))
        return made

    def is_instance(self, value: Any, class_name: str) -> bool:
        """Return whether a JVM object is of a class or trait."""
        return bool(self.cls("py4j.reflection.TypeUtil").isInstanceOf(class_name, value))

    def cast(self, expr: Any, data_type: Any) -> Any:
        """Cast under the session's time zone."""
        zone = self.spark.conf.get("spark.sql.session.timeZone")
        return self.cls(_EXPR + "Cast")(expr, data_type, self.some(zone))

    def equal(self, left: Any, right: Any, *, null_safe: bool) -> Any:
        """Compare two expressions."""
        return self.cls(_EXPR + ("EqualNullSafe" if null_safe else "EqualTo"))(left, right)

    def conjunction(self, conditions: Sequence[Any]) -> Any:
        """And the conditions together; None if there are none."""
        result = None
        for condition in conditions:
            result = condition if result is None else self.cls(_EXPR + "And")(result, condition)
        return result

    def ascending(self, expr: Any) -> Any:
        """Order by an expression, ascending, NULLs first."""
        make = self.cls(_EXPR + "SortOrder")
        return make(expr, self.singleton(_EXPR + "Ascending"), self.singleton(_EXPR + "NullsFirst"), self.nil)

    def with_order(self, expression: Any, order: Sequence[Any]) -> Any:
        """Change the order of a window expression."""
        spec = expression.windowSpec()
        other = self.cls(_EXPR + "WindowSpecDefinition")(
            spec.partitionSpec(), self.seq(order), spec.frameSpecification()
        )
        return self.cls(_EXPR + "WindowExpression")(expression.windowFunction(), other)

    def is_orderable(self, expr: Any) -> bool:
        """Return whether values of an expression can be sorted."""
        # In a sequence: a struct type is itself a Scala sequence, and py4j would take the wrong overload.
        return bool(self.singleton(_EXPR + "RowOrdering").isOrderable(self.seq([expr])))

    def contains(self, node: Any, pattern: str) -> bool:
        """Return whether a tree contains a node of a Catalyst tree pattern."""
        patterns = self.singleton("org.apache.spark.sql.catalyst.trees.TreePattern")
        return bool(node.containsPattern(getattr(patterns, pattern)()))

    def rename(self, exprs: Sequence[Any], renaming: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Replace attributes in expressions by others, all in one call to the JVM."""
        if not exprs or not renaming:
            return list(exprs)
        wrapped = self.project([self.alias(e, "e") for e in exprs], self.one_row())
        renamed = wrapped.rewriteAttrs(self.attribute_map(renaming)).projectList()
        return [renamed.apply(i).child() for i in range(len(exprs))]

    def attribute_map(self, renaming: Sequence[tuple[Any, Any]]) -> Any:
        """Make a Catalyst map from attribute to attribute."""
        pair = self.cls("scala.Tuple2")
        return self.singleton(_EXPR + "AttributeMap").apply(self.seq(pair(a, b) for a, b in renaming))

    # -- plans

    def plan(self, name: str, *args: Any) -> Any:
        """Build a logical plan node."""
        return self.cls(_PLANS + "logical." + name)(*args)

    def one_row(self) -> Any:
        """Return the relation of one row and no columns."""
        return self.plan("OneRowRelation")

    def frame(self, plan: Any, *, in_one_task: bool = False) -> DataFrame:
        """Return a logical plan as a DataFrame of the user's session, or of a copy that runs few rows in one task."""
        from pyspark.sql import DataFrame as SparkFrame

        session = self._one_task() if in_one_task else self.spark._jsparkSession
        return SparkFrame(self.cls("org.apache.spark.sql.classic.Dataset").ofRows(session, plan), self.spark)

    def collected(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """Run a DataFrame; return its rows as a local relation, and their count. They never leave the JVM."""
        execution: Any = frame._jdf.queryExecution()
        with self.settings_in_tasks():
            found = execution.executedPlan().executeCollect()
        wrapped = self.singleton("scala.collection.immutable.ArraySeq").unsafeWrapArray(found)
        relation = self.plan("LocalRelation", execution.analyzed().output(), wrapped, False, self.none)
        return self.frame(relation), len(found)

    def persisted(self, frame: DataFrame) -> DataFrame:
        """Return a persisted DataFrame as a leaf: with its plan inside, plans over plans would double at each level."""
        execution: Any = frame._jdf.queryExecution()
        return self.frame(execution.withCachedData())

    def part_by_part(self, frame: DataFrame, most: int) -> DataFrame:
        """Return no more than some rows of each partition of a DataFrame; unlike a limit of all, it moves none."""
        return self.frame(self.plan("LocalLimit", self.int_literal(most), frame._jdf.logicalPlan()))

    def _one_task(self) -> Any:
        """Return a session in which rows that the driver holds are joined and grouped where they are, without exchanges."""
        if (copy := self._one_task_session) is None:
            copy = self.spark._jsparkSession.cloneSession()
            for key, value in _ONE_TASK.items():
                copy.conf().set(key, value)
            self._one_task_session = copy
        return copy

    def project(self, named: Sequence[Any], child: Any) -> Any:
        """Build a Project."""
        return self.plan("Project", self.seq(named), child)

    def join_type(self, name: str) -> Any:
        """Return a join type that carries no data."""
        return self.singleton(_PLANS + name)

    def hint(self, side: str | None, strategy_name: str = "BROADCAST") -> Any:
        """Hint that one side of a join is small, and what to do with it."""
        if side is None:
            return self.no_hint
        strategy = self.singleton(_PLANS + "logical." + strategy_name)
        hint = self.some(self.plan("HintInfo", self.some(strategy)))
        left, right = (hint, self.none) if side == "left" else (self.none, hint)
        return self.plan("JoinHint", left, right)


def analysed_plan(frame: DataFrame) -> Any:
    """Return the analysed plan of a DataFrame."""
    plan: Any = frame._jdf.queryExecution()
    return plan.analyzed()


def items(seq: Any) -> Iterator[Any]:
    """Iterate over a Scala Seq by index: a py4j iterator costs a hundred times more."""
    for i in range(seq.size()):
        yield seq.apply(i)
