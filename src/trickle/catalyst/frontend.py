"""From a user's query to Catalyst's optimised plan, with Spark's own analyser and optimiser.

Everything runs in a copy of the user's session, with the settings recorded at creation, so that neither disturbs the other.
Rules that would fold a table's data or statistics into the plan, or add what only serves execution, are switched off there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from trickle.catalyst.jvm import Jvm, analysed_plan, items
from trickle.catalyst.parse import bad_sql, not_a_query, parse_query
from trickle.catalyst.sessions import merge_sessions
from trickle.model.reason import Reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Settings that change what a query means; they are recorded with the definition.
RECORDED_SETTINGS: Final = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.cteRecursionLevelLimit",
    "spark.sql.cteRecursionRowLimit",
    "spark.sql.crossJoin.enabled",
    "spark.sql.groupByOrdinal",
    "spark.sql.orderByOrdinal",
    "spark.sql.legacy.timeParserPolicy",
)

_OPTIMIZER: Final = "org.apache.spark.sql.catalyst.optimizer."
_OPTIMISE_SETTINGS: Final = {
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    # These narrow structs to the fields in use, and variants to the paths: the rows that a plan reads have all of them.
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.variant.pushVariantIntoScan": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.maxMetadataStringLength": "1000",
    # A limit pushed below a join or union is no longer beside its ORDER BY. Merged subqueries hide in a struct.
    "spark.sql.optimizer.excludedRules": ",".join(
        _OPTIMIZER + rule for rule in ("LimitPushDown", "LimitPushDownThroughWindow", "MergeScalarSubqueries")
    ),
}

# Aggregates whose result depends on the order of rows: Trickle fixes an order, so they are not obstacles.
ORDER_DEPENDENT: Final = frozenset(
    {"First", "Last", "AnyValue", "CollectList", "CollectSet", "MaxBy", "MinBy", "Mode", "ListAgg"}
)
_OF_SESSION: Final = frozenset({"CurrentUser", "CurrentDatabase", "CurrentCatalog", "CurrentTimeZone", "SessionUser"})
_SUBQUERIES: Final = frozenset({"ScalarSubquery", "Exists", "ListQuery", "LateralSubquery", "TableArgument"})
_TIME_HINT: Final = (
    "Use mode='full' or 'auto', which recompute at each refresh, or keep the time in a table and join it."
)


Views = Mapping[tuple[str, str], str]
"""The text of each stored view and SQL function, by schema and name; that of a function ends with ``()``."""

_FUNCTION: Final = "org.apache.spark.sql.catalyst.catalog.SQLFunction"
_CALL: Final = "()"


class Frontend:
    """Analyses and optimises queries for one user session."""

    def __init__(self, jvm: Jvm) -> None:
        """Keep the user's session."""
        self.jvm = jvm
        self._user = jvm.spark._jsparkSession
        self._modes = jvm.singleton("org.apache.spark.sql.execution.CommandExecutionMode")

    def settings(self) -> dict[str, str]:
        """Return the user's present settings that change what a query means."""
        conf = self._user.conf()
        return {k: str(conf.get(k)) for k in RECORDED_SETTINGS if conf.getOption(k).isDefined()}

    def session(self, settings: Mapping[str, str], catalog: str, schema: str) -> Any:
        """Copy the user's session and give it a definition's settings."""
        copy = self._user.cloneSession()
        self._share_variables(copy)
        for key, value in {**_OPTIMISE_SETTINGS, **settings}.items():
            copy.conf().set(key, value)
        copy.catalog().setCurrentCatalog(catalog)
        copy.catalog().setCurrentDatabase(schema)
        return copy

    def _share_variables(self, copy: Any) -> None:
        """Let a copy of the session see the user's variables, which Spark does not copy and has no call to list."""
        mine, theirs = (s.sessionState().catalogManager().tempVariableManager() for s in (self._user, copy))
        variables = mine.getClass().getDeclaredField("variables")
        variables.setAccessible(True)
        variables.set(theirs, variables.get(mine))

    def analyse_sql(self, session: Any, query: object) -> Any:
        """Return the analysed plan of a SQL query, executing nothing.

        Raises:
            DefinitionError: ``BAD_SQL`` with Spark's message and position, ``NOT_A_QUERY`` or ``TOO_DEEP``.
        """
        from pyspark.errors import PySparkException

        try:
            with self.jvm.active(session):
                parsed = parse_query(self.jvm, session, query)  # the parser reads settings, too
                execution = session.sessionState().executePlan(parsed, self._modes.SKIP())
                analysed = execution.analyzed()
                session.sessionState().analyzer().checkAnalysis(analysed)
        except PySparkException as error:
            raise bad_sql(error) from error
        if self._is_command(analysed):
            raise not_a_query(f"{self.jvm.name(analysed)} is a command,")
        return analysed

    def has_variables(self, analysed: Any) -> bool:
        """Return whether a query reads variables of the session."""
        return self.jvm.contains(analysed, "VARIABLE_REFERENCE")

    def analyse_frame(self, frame: DataFrame) -> Any:
        """Return the analysed plan of a DataFrame."""
        return analysed_plan(frame)

    def optimise(self, session: Any, analysed: Any) -> Any:
        """Return Catalyst's optimised plan."""
        with self.jvm.active(session):
            return session.sessionState().optimizer().execute(merge_sessions(self.jvm, analysed))

    def recursion_limit(self, session: Any) -> int:
        """Return how deep a recursive CTE may go under a session's settings."""
        return int((session or self._user).conf().get("spark.sql.cteRecursionLevelLimit"))

    def views(self, analysed: Any) -> Views:
        """Return the text of each stored view that a query reads and each SQL function it calls, in subqueries too."""
        found: dict[tuple[str, str], str] = {}

        def note(function: Any) -> None:
            name = function.name()
            if name.database().isDefined():  # else it is temporary: it belongs to the session
                found[str(name.database().get()), f"{name.funcName()}{_CALL}"] = _text_of(function)

        def look_into(expr: Any) -> None:
            if self.jvm.name(expr) == "SQLScalarFunction":
                note(expr.function())
            for child in items(expr.children()) if self.jvm.contains(expr, "SQL_SCALAR_FUNCTION") else ():
                look_into(child)

        def look(plan: Any) -> None:
            match self.jvm.name(plan):
                case "View" if not plan.isTempView():
                    name = plan.desc().identifier()
                    found[str(name.database().get()), str(name.table())] = str(plan.desc().viewText().get())
                case "SQLFunctionNode":
                    note(plan.function())
            for expr in items(plan.expressions()) if self.jvm.contains(plan, "SQL_SCALAR_FUNCTION") else ():
                look_into(expr)
            for child in items(plan.children()):
                look(child)
            for inner in items(plan.subqueriesAll()) if self.jvm.contains(plan, "PLAN_EXPRESSION") else ():
                look(inner)

        look(analysed)
        return found

    def empty_view(self, session: Any, name: str, schema: Any) -> None:
        """Make a temporary view without rows in a session."""
        columns = self.jvm.cls("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
        nothing = self.jvm.plan("LocalRelation", columns, self.jvm.nil, False, self.jvm.none)
        self.jvm.cls("org.apache.spark.sql.classic.Dataset").ofRows(session, nothing).createOrReplaceTempView(name)

    def temporary_view(self, analysed: Any, but: Collection[str] = ()) -> str | None:
        """Return the name of a temporary view that a query reads, None if there is none but those known."""
        if self.jvm.name(analysed) == "View" and analysed.isTempView():
            name = str(analysed.desc().identifier().table())
            if name not in but:
                return name
        inner = items(analysed.subqueriesAll()) if self.jvm.contains(analysed, "PLAN_EXPRESSION") else ()
        for plan in (*items(analysed.children()), *inner):
            found = self.temporary_view(plan, but)
            if found is not None:
                return found
        return None

    def view_text(self, schema: str, name: str) -> str | None:
        """Return the present text of a stored view or SQL function, None if there is none."""
        if name.endswith(_CALL):
            return self._function_text(schema, name.removesuffix(_CALL))
        catalog = self._user.sessionState().catalog()
        identifier = self.jvm.cls("org.apache.spark.sql.catalyst.TableIdentifier")(name, self.jvm.some(schema))
        if not catalog.tableExists(identifier):
            return None
        text = catalog.getTableMetadata(identifier).viewText()
        return str(text.get()) if text.isDefined() else None

    def _function_text(self, schema: str, name: str) -> str | None:
        # Not the session's own catalog, which keeps the functions that it has called.
        catalog = self._user.sharedState().externalCatalog()
        if not (catalog.databaseExists(schema) and catalog.functionExists(schema, name)):
            return None
        stored, functions = catalog.getFunction(schema, name), self.jvm.cls(_FUNCTION)
        if not functions.isSQLFunction(stored.className()):
            return None
        return _text_of(functions.fromCatalogFunction(stored, self._user.sessionState().sqlParser()))

    def obstacles(self, analysed: Any) -> list[Reason]:
        """Name what makes a query give other results at other times over the same data.

        It looks at the analysed plan: the optimiser turns ``now()`` into a constant.
        """
        found: dict[str, Reason] = {}
        if analysed.isStreaming():
            text = "The query reads a stream."
            found["stream"] = Reason("STREAMING_SOURCE", text, "Write the stream to a Delta table and read that.")
        if self.jvm.contains(analysed, "CURRENT_LIKE") or not analysed.deterministic():
            self._look(analysed, found)
        return list(found.values())

    def is_time_dependent(self, obstacles: list[Reason]) -> bool:
        """Return whether a result may change though no source does."""
        return any(o.code in ("TIME_DEPENDENT", "NON_DETERMINISTIC", "SESSION_DEPENDENT") for o in obstacles)

    def _look(self, plan: Any, found: dict[str, Reason]) -> None:
        for expr in items(plan.expressions()):
            self._look_at(expr, found)
        for child in items(plan.children()):
            self._look(child, found)

    def _look_at(self, expr: Any, found: dict[str, Reason]) -> None:
        children = list(items(expr.children()))
        if not self.jvm.contains(expr, "PLAN_EXPRESSION"):
            self._judge(expr, children, found)
        elif self.jvm.name(expr) in _SUBQUERIES:
            self._look(expr.plan(), found)
        for child in children:
            self._look_at(child, found)

    def _judge(self, expr: Any, children: list[Any], found: dict[str, Reason]) -> None:
        """Note an expression that is itself the cause, not one that only contains it."""
        name, shown = self.jvm.name(expr), str(expr.prettyName())
        if self.jvm.contains(expr, "CURRENT_LIKE"):
            if not any(self.jvm.contains(c, "CURRENT_LIKE") for c in children):
                if name in _OF_SESSION:
                    text, hint = f"{shown}() depends on who runs the refresh.", "Write the value into the query."
                    found[name] = Reason("SESSION_DEPENDENT", text, hint)
                    return
                text = f"{shown}() changes with the clock, not with the data."
                found[name] = Reason("TIME_DEPENDENT", text, _TIME_HINT)
        elif not expr.deterministic() and all(c.deterministic() for c in children) and name not in ORDER_DEPENDENT:
            text = f"{shown}() returns different values at each run."
            found[name] = Reason("NON_DETERMINISTIC", text, "Remove it, or use mode='full'.")

    def _is_command(self, plan: Any) -> bool:
        return self.jvm.is_instance(plan, "org.apache.spark.sql.catalyst.plans.logical.Command")


def _text_of(function: Any) -> str:
    """Write what a SQL function takes, gives and does."""
    parts = function.inputParam(), function.returnType(), function.exprText(), function.queryText()
    return "; ".join(str(part.toString()) for part in parts)
