"""From a query to something that can be refreshed: analysed in a session of its own, compiled, stored as a definition."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trickle.catalyst.freeze import freeze, thaw, thawed_leaf
from trickle.catalyst.frontend import RECORDED_SETTINGS, Frontend, Views
from trickle.catalyst.parse import names_read, not_a_query
from trickle.catalyst.reuse import Reuse, find_reuse
from trickle.errors import DefinitionError
from trickle.model.definition import Definition, bad_definition, read_definition
from trickle.model.table_options import NO_OPTIONS
from trickle.refresh.prepare import Prepared, prepare
from trickle.sql.names import replace_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm
    from trickle.catalyst.lift import ResolveLeaf
    from trickle.model.definition import Mode
    from trickle.model.table_options import TableOptions
    from trickle.tables.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Analysed:
    """A definition as Spark understands it.

    Attributes:
        session: The copy of the user's session that its query is analysed in; None for a stored plan.
        plan: The analysed query.
        views: The stored views and SQL functions that it uses, with their texts.
    """

    definition: Definition
    session: Any
    plan: Any
    views: Views


@dataclass(frozen=True, slots=True)
class Compiler:
    """Analyses and compiles the definitions of stream tables.

    Attributes:
        stored_plans: False refuses definitions by a DataFrame.
    """

    jvm: Jvm
    frontend: Frontend
    catalog: Catalog
    stored_plans: bool

    def define(
        self,
        query: str | DataFrame | Definition,
        mode: Mode,
        schedule: str | None = None,
        options: TableOptions = NO_OPTIONS,
    ) -> Analysed:
        """Make a definition of a query, with the settings of the user's session that its meaning depends on.

        A definition given instead keeps its own.
        """
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

        if isinstance(query, Definition):
            own = query.model_copy(update={"mode": mode, "schedule": schedule, "options": options})
            return self.read("", own.model_dump_json())
        catalog = self.jvm.spark.catalog.currentCatalog()
        schema = self.jvm.spark.catalog.currentDatabase()
        settings = self.frontend.settings()
        session = self.frontend.session(settings, catalog, schema)
        text: str | None = None
        if isinstance(query, ClassicFrame):
            plan = self.frontend.analyse_frame(query)
        else:
            plan = self.frontend.analyse_sql(session, query)
            self._refuse_temporary(plan)
            if not self.frontend.has_variables(plan):
                # With variables, another session cannot use the text: the plan is stored, with their values.
                text = str(query)
        definition = Definition(
            query=text,
            mode=mode,
            schedule=schedule,
            settings=settings,
            catalog=catalog,
            schema_name=schema,
            spark=self.jvm.spark.version,
            options=options,
        )
        return Analysed(definition, session, plan, self.frontend.views(plan))

    def analyse_over(self, query: str | Definition, schemas: Mapping[str, Any]) -> Any:
        """Return the analysed query over tables that are not there, or will have other columns: it cannot be run.

        Args:
            query: Its text, or a definition that has one.
            schemas: The schemas of these tables by their full names.

        Raises:
            DefinitionError: ``BAD_SQL``, ``NOT_A_QUERY``, ``TEMPORARY_VIEW``.
        """
        own = query if isinstance(query, Definition) else None
        text = str(query if own is None else own.query)
        settings = self.frontend.settings() if own is None else own.settings
        catalog = self.jvm.spark.catalog.currentCatalog() if own is None else own.catalog
        schema = self.jvm.spark.catalog.currentDatabase() if own is None else own.schema_name
        session = self.frontend.session(settings, catalog, schema)
        read = names_read(self.jvm, session, text)
        places = {name: self.catalog.qualify((*(catalog, schema)[: 3 - len(name)], *name)) for name in read}
        others = {name[0].lower() for name, place in places.items() if len(name) == 1 and place not in schemas}
        names = {name: place for name, place in places.items() if place in schemas}
        failed = None
        # Where a view of the short name stands for a table, `shop.a`, `a.x` means its column; a CTE may have that name, too.
        for is_short in (True, False):
            views = {}
            for number, (name, place) in enumerate(sorted(names.items())):
                keeps = len(name) == 1 or (is_short and name[-1].lower() not in others)
                views[name] = name[-1].lower() if keeps else f"__planned_{number}"
                self.frontend.empty_view(session, views[name], schemas[place])
            try:
                plan = self.frontend.analyse_sql(session, replace_names(text, views))
            except DefinitionError as error:
                failed = failed or error
            else:
                self._refuse_temporary(plan, views.values())
                return plan
        raise failed or not_a_query("this is")

    def read(self, table: str, text: str) -> Analysed:
        """Analyse the definition that a table carries."""
        definition = read_definition(table, text)
        if unknown := sorted(definition.settings.keys() - set(RECORDED_SETTINGS)):
            # A setting may name a class to load, so settings from a property are checked first.
            raise bad_definition(table, f"has settings that are never recorded: {', '.join(unknown)}")
        session = None
        if definition.query is not None:
            session = self.frontend.session(definition.settings, definition.catalog, definition.schema_name)
        return self.analyse(definition, session)

    def analyse(self, definition: Definition, session: Any) -> Analysed:
        """Analyse a definition, whose query may mean something else than before."""
        plan = self.analyse_plan(definition, session)
        return Analysed(definition, session, plan, self.frontend.views(plan))

    def analyse_plan(self, definition: Definition, session: Any) -> Any:
        """Return the analysed query of a definition."""
        if definition.query is not None:
            return self.frontend.analyse_sql(session, definition.query)
        self._refuse_stored_plan()
        return thaw(self.jvm, definition.plan or "", definition.spark)

    def optimise(self, definition: Definition, session: Any) -> Any:
        """Return the query of a definition as Spark would run it now; a stored plan is one already."""
        plan = self.analyse_plan(definition, session)
        # The process that makes a stored plan has a session, another one has none: both must get the same.
        return plan if definition.query is None else self.frontend.optimise(session, plan)

    def find_reuse(self, old: Analysed, new: Analysed) -> Reuse | None:
        """Say how the rows of a query follow from those of another, None if it takes more than projections and filters."""
        if old.session is None or new.session is None or old.views != new.views:
            return None
        if old.definition.settings != new.definition.settings:
            return None
        return find_reuse(self.jvm, self.frontend, new.session, old.plan, new.plan)

    def prepare(self, analysed: Analysed, without: Collection[str] = ()) -> Prepared:
        """Compile an analysed definition, without some state tables."""
        definition, disable = analysed.definition, self.jvm.options.disable
        # A DataFrame contains its views as they were.
        views = {} if definition.query is None else analysed.views
        meaning = [definition.query, *sorted(views.items())]
        source_of_leaf: ResolveLeaf = partial(self.catalog.source_of_leaf, schema=definition.schema_name)
        if analysed.session is None:
            by_name = partial(self.catalog.source_by_name, catalog=definition.catalog, schema=definition.schema_name)
            source_of_leaf = partial(thawed_leaf, by_name=by_name, otherwise=source_of_leaf)
        return prepare(
            self.jvm,
            self.frontend,
            analysed.session,
            analysed.plan,
            source_of_leaf,
            disable | {"state_tables"} if definition.mode == "full" else disable,
            hashlib.sha256(repr(meaning).encode()).hexdigest()[:16],
            without,
        )

    def has_same_views(self, analysed: Analysed) -> bool:
        """Return whether no view or SQL function that a definition uses was redefined."""
        return all(self.frontend.view_text(*name) == text for name, text in analysed.views.items())

    def freeze(self, definition: Definition, prepared: Prepared) -> Definition:
        """Store a DataFrame's plan. What must be planned again at each refresh cannot be stored as a plan."""
        self._refuse_stored_plan()
        if prepared.obstacles:
            text = f"a DataFrame that cannot be maintained incrementally cannot be stored: {prepared.obstacles[0].text}"
            raise DefinitionError(prepared.obstacles[0].code, text, hint="Give the query as SQL text.")
        plan = freeze(self.jvm, prepared.program.whole, prepared.names)
        return definition.model_copy(update={"plan": plan})

    def _refuse_stored_plan(self) -> None:
        if not self.stored_plans:
            text = (
                "it is defined by a DataFrame (or by SQL with session variables), whose plan is stored with the table."
            )
            hint = "Give the query as SQL text, or use Trickle(spark) without stored_plans=False."
            raise DefinitionError("STORED_PLAN_REFUSED", text, hint=hint)

    def _refuse_temporary(self, plan: Any, but: Collection[str] = ()) -> None:
        view = self.frontend.temporary_view(plan, but)
        if view is not None:
            text = f"'{view}' is a temporary view, which no other session sees."
            raise DefinitionError("TEMPORARY_VIEW", text, hint="Make it with CREATE VIEW, or write its query inline.")
