"""The public face: ``Trickle`` and the ``StreamTable`` handle. Thin verbs over the packages below."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from trickle import warehouse
from trickle.catalyst.freeze import freeze, thaw, thawed_leaf
from trickle.catalyst.frontend import RECORDED_SETTINGS, Frontend, Views
from trickle.catalyst.jvm import Jvm
from trickle.engine.declare import Columns, References, declare_keys
from trickle.engine.verbs import verb
from trickle.errors import ConflictError, DefinitionError, NotDifferentiableError, StateError, UnknownTableError
from trickle.model.cache import CacheSize, cache_sizes
from trickle.model.definition import (
    DEFINITION_PROPERTY,
    TABLE_PROPERTY,
    Definition,
    bad_definition,
    read_definition,
)
from trickle.model.names import is_state_table, split_name, sql_name
from trickle.model.options import DEFAULT, Options, with_disabled
from trickle.model.report import RefreshReport, Validation, VerifyReport
from trickle.refresh.checks import check_columns
from trickle.refresh.explain import explain_text
from trickle.refresh.prepare import Prepared, prepare
from trickle.refresh.record import read_record
from trickle.refresh.request import Request
from trickle.refresh.run import Refresh
from trickle.refresh.tables import RefreshTables
from trickle.refresh.verify import verify_table
from trickle.refresh.write import StateTooBigError
from trickle.session import check_session
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.catalyst.lift import ResolveLeaf
    from trickle.model.cost import Costs
    from trickle.model.definition import Mode
    from trickle.tables.contract import ColumnFact, StateStore, TargetTable

_LOG: Final = logging.getLogger("trickle")


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A handle on one stream table, with the verbs of ``Trickle``."""

    name: str
    definition: Definition
    _trickle: Trickle

    @property
    def query(self) -> str | None:
        """The SQL text; None if it was defined by a DataFrame."""
        return self.definition.query

    @property
    def mode(self) -> Mode:
        """``auto``, ``differential`` or ``full``."""
        return self.definition.mode

    @property
    def frontier(self) -> Mapping[str, int]:
        """The version of each source that the table equals."""
        return self._trickle._frontier(self.name)

    def refresh(self, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Bring the table up to its sources; see ``Trickle.refresh``."""
        return self._trickle.refresh(self.name, full=full, at=at)

    def explain(self) -> str:
        """Show how it is maintained; see ``Trickle.explain``."""
        return self._trickle.explain(self.name)

    def verify(self) -> VerifyReport:
        """Compare it with a recompute; see ``Trickle.verify``."""
        return self._trickle.verify(self.name)

    def drop(self) -> None:
        """Drop it; see ``Trickle.drop``."""
        self._trickle.drop(self.name)

    @verb
    def to_df(self) -> DataFrame:
        """Give its rows."""
        return self._trickle.spark.table(sql_name(self.name))

    def __repr__(self) -> str:
        """Show name and mode."""
        return f"StreamTable({self.name!r}, mode={self.mode!r})"


@dataclass(slots=True)
class _Open:
    """What is kept of a stream table between verbs: compiling a query costs far more than a look at the log."""

    definition: Definition
    target: TargetTable
    state_tables: StateStore
    session: Any
    analysed: Any
    views: Views
    prepared: Prepared
    columns: Mapping[str, Mapping[str, ColumnFact]]
    costs: Costs | None = None


class Trickle:
    """Stream tables on a Spark session. Several threads may use one: tables are refreshed side by side, each by one at a time.

    Args:
        spark: A classic (not Connect) session with Delta Lake, the user's own or ``trickle.local_session()``.
        disable: Names of optimisations to switch off, besides those that ``options`` names; results are the same.
        options: Limits and switches.
        stored_plans: False refuses stream tables that are defined by a DataFrame. Their plan, and the Python functions in
            it, are stored with the table, and are run by whoever refreshes it.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        disable: Collection[str] = (),
        options: Options = DEFAULT,
        stored_plans: bool = True,
    ) -> None:
        """Bind to a session.

        Raises:
            SessionError: What is given is no session, is a Connect one, is stopped, or has no Delta Lake.
            DefinitionError: ``UNKNOWN_OPTION`` or ``BAD_OPTION``.
        """
        check_session(spark)
        _check_arguments(disable, stored_plans)
        options = with_disabled(options, disable)
        self.spark = spark
        self.options = options
        self.disable = options.disable
        self.stored_plans = stored_plans and options.stored_plans
        self._jvm = Jvm(spark, self.options)
        self._frontend = Frontend(self._jvm)
        columns = None if "column_cache" in self.disable else ColumnCache(options)
        self._catalog = Catalog(spark, columns, options)
        self._open: dict[str, _Open] = {}
        self._locks: dict[tuple[str, str], RLock] = {}

    # -- verbs

    @verb
    def create(self, name: str, query: str | DataFrame, *, mode: Mode = "auto") -> StreamTable:
        """Make a stream table of a query and fill it.

        Args:
            name: ``table``, ``schema.table`` or ``catalog.schema.table``.
            query: SQL text or a DataFrame over Delta tables (or other stream tables).
            mode: ``auto`` refreshes by changes where it can and says why where it cannot; ``differential`` never
                recomputes silently: it fails at creation if the query cannot be maintained; ``full`` always recomputes.

        Raises:
            DefinitionError: The name, the query or its columns cannot be used.
            NotDifferentiableError: In mode ``differential``, what stands against it.
        """
        if mode not in ("auto", "differential", "full"):
            raise DefinitionError("BAD_MODE", f"there is no mode {mode!r}.", hint="Use auto, differential or full.")
        self._sync()
        full_name = self._catalog.qualify(split_name(name))
        self._catalog.refuse_existing(full_name)
        definition, session, analysed = self._define(query, mode)
        check_columns(analysed)
        views = self._frontend.views(analysed)
        prepared = self._prepare(definition, session, analysed, views)
        if mode == "differential" and prepared.obstacles:
            raise _not_differentiable(name, prepared)
        if definition.query is None:
            definition = self._frozen(definition, prepared)

        def fill(made: TargetTable) -> None:
            state_tables = self._catalog.results.state_tables(made.name, made.path)
            table = _Open(definition, made, state_tables, session, analysed, views, prepared, _columns_read(prepared))
            with self._lock(full_name):
                self._run_again(table)
                self._open[full_name] = table

        like = self._jvm.frame(analysed).toDF(*prepared.names)
        properties = {DEFINITION_PROPERTY: definition.model_dump_json()}
        self._catalog.results.create(full_name, like, fill, properties, bind=TABLE_PROPERTY)
        return StreamTable(full_name, definition, self)

    @verb
    def refresh(self, name: str, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Bring a stream table up to its sources by computing only what changed.

        Args:
            name: The stream table.
            full: Recompute all rows.
            at: Versions of sources to refresh to, e.g. ``{"orders": 43}``; the others go to their newest.
        """
        _check_versions(at)
        # A second thread waits, and mostly finds nothing to do: to work side by side with the first would be in vain.
        full_name = self._qualified(name)
        with self._lock(full_name):
            table = self._get(full_name)
            if table.prepared.is_time_dependent:
                analysed = self._analyse(table.definition, table.session)
                table.prepared = self._prepare(table.definition, table.session, analysed)
            return self._run_again(table, full=full, at=at)

    def _run_again(self, table: _Open, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Refresh; one that lost to another process starts anew."""
        # It starts from where the other one ended, and mostly finds nothing to do.
        for _ in range(self.options.attempts - 1):
            try:
                return self._run(table, full=full, at=at)
            except ConflictError:
                continue
        return self._run(table, full=full, at=at)

    def _run(self, table: _Open, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Refresh; a state table that proves too big is left out from then on."""
        while True:
            tables = RefreshTables(
                table.prepared, table.target, table.definition.mode, table.state_tables, self.options
            )
            try:
                outcome = Refresh(self._jvm, tables, Request(full=full, at=at, costs=table.costs)).run()
                table.costs = outcome.costs
                return outcome.report
            except StateTooBigError as error:
                table.state_tables.forget(error.name)
                without = (*table.prepared.without, error.name)
                table.prepared = self._prepare(
                    table.definition, table.session, table.analysed, table.views, without=without
                )

    @verb
    def explain(self, name: str) -> str:
        """Show how a stream table is maintained, and what its next refresh would do now; changes nothing.

        The text has the operator tree with the law used at each node, the change plan when every source changed, and the
        steps of the next refresh with its mode and reason.
        """
        table = self._get(self._qualified(name))
        tables = RefreshTables(table.prepared, table.target, table.definition.mode, table.state_tables, self.options)
        return explain_text(tables, Request(costs=table.costs))

    @verb
    def verify(self, name: str) -> VerifyReport:
        """Compare a stream table, row for row with multiplicities, with its query at the same source versions."""
        table = self._get(self._qualified(name))
        as_spark = None
        if table.definition.query is not None:
            as_spark = lambda: self._jvm.frame(self._analyse(table.definition, table.session))  # noqa: E731
        return verify_table(self._jvm, table.prepared, table.target, as_spark, self.options)

    @verb
    def validate(self, query: str | DataFrame) -> Validation:
        """Tell whether a query can be maintained by its changes, and every obstacle if not; creates nothing."""
        self._sync()
        definition, session, analysed = self._define(query, "auto")
        check_columns(analysed)
        prepared = self._prepare(definition, session, analysed)
        return Validation(not prepared.obstacles, prepared.obstacles, tuple(prepared.sources))

    @verb
    def declare(
        self,
        table: str,
        *,
        primary_key: Columns = (),
        foreign_key: References | None = None,
        check: bool = True,
    ) -> None:
        """Say which keys a source table has; refreshes then search less. They are kept as a property of the table.

        What is given replaces what was declared before; given nothing, the table has no declared keys any more.

        Args:
            table: A Delta table.
            primary_key: The columns that no two rows share and that are never NULL.
            foreign_key: Columns that hold the primary key of another table, which must be declared already:
                ``{"o_custkey": "customer", ("l_partkey", "l_suppkey"): "partsupp"}``.
            check: Look at every row whether the keys hold; ``verify`` looks again each time.

        Raises:
            DefinitionError: A table or column is not there, or (``KEY_VIOLATED``) a key does not hold.
        """
        self._sync()
        declare_keys(self._catalog.results, table, primary_key, foreign_key or {}, check=check)

    @verb
    def tables(self) -> list[StreamTable]:
        """List the stream tables of the catalog; one whose log or definition cannot be read is left out, with a warning."""
        self._sync()
        found = []
        for name, marks in self._catalog.definitions():
            if isinstance(marks, Exception):
                _LOG.warning("'%s' is not listed: %s", name, marks)
            elif not marks.is_copy:
                try:
                    found.append(StreamTable(name, read_definition(name, marks.definition), self))
                except StateError as error:
                    _LOG.warning("'%s' is not listed: %s", name, error)
        return found

    @verb
    def table(self, name: str) -> StreamTable:
        """Give the handle of a stream table."""
        full_name, _, text = self._find(self._qualified(name))
        return StreamTable(full_name, read_definition(full_name, text), self)

    @verb
    def adopt(self, name: str) -> StreamTable:
        """Make a stream table of a copy of one: a clone, or a table made with CREATE TABLE … LIKE.

        The copy carries the definition, but is an ordinary table until it is adopted. Its next refresh is a full one.

        Raises:
            UnknownTableError: There is no such table, or it carries no definition.
        """
        full_name, location, text = self._find(self._qualified(name), copies=True)
        definition = read_definition(full_name, text)
        marks = self._catalog.marks(location)
        if marks is not None and marks.is_copy:
            self._catalog.results.bind(full_name, location)
        return StreamTable(full_name, definition, self)

    def memory(self) -> Mapping[str, CacheSize]:
        """Give how much this process remembers of tables, plans and logs: entries, bytes and limits of its caches, by name."""
        return cache_sizes()

    @verb
    def drop(self, name: str) -> None:
        """Drop a stream table and its data."""
        full_name = self._qualified(name)
        with self._lock(full_name):
            self._find(full_name)
            self._catalog.drop(full_name)
            self._open.pop(full_name, None)

    # -- inside

    def _sync(self) -> None:
        warehouse.sync(self.spark)

    def _qualified(self, name: str) -> str:
        """Give a name with its schema; each question to the catalog takes as long as a look at a log."""
        return self._catalog.qualify(split_name(name))

    def _lock(self, full_name: str, purpose: str = "refresh") -> RLock:
        """Give what one thread at a time holds to refresh or drop a stream table, or to compile it."""
        return self._locks.setdefault((purpose, full_name), RLock())

    def _find(self, full_name: str, *, copies: bool = False) -> tuple[str, str, str]:
        """Give a stream table's full name, its place and the definition as it is stored."""
        self._sync()
        location = self._catalog.location(full_name)
        marks = self._catalog.marks(location) if location else None
        if location is None or marks is None:
            self._open.pop(full_name, None)
            is_there = location is not None or self._catalog.is_there(full_name)
            what = "is a table or view, but not a stream table" if is_there else "does not exist"
            names = ", ".join(t.name for t in self.tables()) or "none"
            raise UnknownTableError("UNKNOWN_TABLE", f"'{full_name}' {what}.", hint=f"Stream tables here: {names}.")
        if marks.is_copy and not copies:
            text = f"'{full_name}' is a copy of a stream table, and itself an ordinary table."
            hint = f"adopt({full_name!r}) makes it a stream table."
            raise UnknownTableError("COPY_OF_STREAM_TABLE", text, hint=hint)
        return full_name, location, marks.definition

    def _get(self, full_name: str) -> _Open:
        with self._lock(full_name, "compile"):  # others may ask about it while it is refreshed
            return self._opened(*self._find(full_name))

    def _opened(self, full_name: str, location: str, text: str) -> _Open:
        """Give what is kept of a stream table, compiled anew if it is not what it was."""
        known = self._open.get(full_name)
        if known is not None and self._is_current(known, location, text):
            return known
        definition = read_definition(full_name, text)
        if unknown := sorted(definition.settings.keys() - set(RECORDED_SETTINGS)):
            # A setting may name a class to be loaded: what a property says is not set unseen.
            raise bad_definition(full_name, f"has settings that are never recorded: {', '.join(unknown)}")
        session = None
        if definition.query is not None:
            session = self._frontend.session(definition.settings, definition.catalog, definition.schema_name)
        analysed = self._analyse(definition, session)
        views = self._frontend.views(analysed)
        target = self._catalog.results.target(full_name, location)
        prepared = self._prepare(definition, session, analysed, views, without=_left_out(target))
        state_tables = self._catalog.results.state_tables(full_name, location)
        opened = _Open(definition, target, state_tables, session, analysed, views, prepared, _columns_read(prepared))
        self._open[full_name] = opened
        return opened

    def _is_current(self, known: _Open, location: str, definition: str) -> bool:
        """Tell whether what is kept still holds: the same table and definition, and no view redefined."""
        return (
            location == known.target.path
            and definition == known.definition.model_dump_json()
            and known.columns == _columns_read(known.prepared)
            and all(self._frontend.view_text(*name) == text for name, text in known.views.items())
        )

    def _frozen(self, definition: Definition, prepared: Prepared) -> Definition:
        """Store a DataFrame's plan. What must be planned anew at each refresh cannot be stored as a plan."""
        self._refuse_stored_plan()
        if prepared.obstacles:
            text = f"a DataFrame that is not maintained by its changes cannot be stored: {prepared.obstacles[0].text}"
            raise DefinitionError(prepared.obstacles[0].code, text, hint="Give the query as SQL text.")
        plan = freeze(self._jvm, prepared.program.whole, prepared.names)
        return definition.model_copy(update={"plan": plan})

    def _define(self, query: str | DataFrame, mode: Mode) -> tuple[Definition, Any, Any]:
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

        catalog, schema = self.spark.catalog.currentCatalog(), self.spark.catalog.currentDatabase()
        settings = self._frontend.settings()
        session = self._frontend.session(settings, catalog, schema)
        text: str | None = None
        if isinstance(query, ClassicFrame):
            analysed = self._frontend.analyse_frame(query)
        else:
            analysed = self._frontend.analyse_sql(session, query)
            self._refuse_temporary(analysed)
            if not self._frontend.has_variables(analysed):
                # With variables, its text means nothing to another session: the plan is kept, with their values.
                text = str(query)
        definition = Definition(
            query=text,
            mode=mode,
            settings=settings,
            catalog=catalog,
            schema_name=schema,
            spark=self.spark.version,
        )
        return definition, session, analysed

    def _refuse_stored_plan(self) -> None:
        if not self.stored_plans:
            text = (
                "it is defined by a DataFrame (or by SQL with session variables), whose plan is stored with the table."
            )
            hint = "Give the query as SQL text, or use Trickle(spark) without stored_plans=False."
            raise DefinitionError("STORED_PLAN_REFUSED", text, hint=hint)

    def _refuse_temporary(self, analysed: Any) -> None:
        view = self._frontend.temporary_view(analysed)
        if view is not None:
            text = f"'{view}' is a temporary view, which no other session sees."
            raise DefinitionError("TEMPORARY_VIEW", text, hint="Make it with CREATE VIEW, or write its query inline.")

    def _analyse(self, definition: Definition, session: Any) -> Any:
        if definition.query is not None:
            return self._frontend.analyse_sql(session, definition.query)
        self._refuse_stored_plan()
        return thaw(self._jvm, definition.plan or "", definition.spark)

    def _prepare(
        self,
        definition: Definition,
        session: Any,
        analysed: Any,
        views: Views | None = None,
        without: Collection[str] = (),
    ) -> Prepared:
        views = self._frontend.views(analysed) if views is None else views
        views = {} if definition.query is None else views  # a DataFrame holds its views as they were
        meaning = [definition.query, *sorted(views.items())]
        source_of_leaf: ResolveLeaf = partial(self._catalog.source_of_leaf, schema=definition.schema_name)
        if session is None:
            by_name = partial(self._catalog.source_by_name, catalog=definition.catalog, schema=definition.schema_name)
            source_of_leaf = partial(thawed_leaf, by_name=by_name, otherwise=source_of_leaf)
        return prepare(
            self._jvm,
            self._frontend,
            session,
            analysed,
            source_of_leaf,
            self.disable | {"state_tables"} if definition.mode == "full" else self.disable,
            hashlib.sha256(repr(meaning).encode()).hexdigest()[:16],
            without,
        )

    @verb
    def _frontier(self, name: str) -> Mapping[str, int]:
        table = self._get(self._qualified(name))
        record = read_record(table.target.name, table.target.state())
        return {n: s.version for n, s in record.frontier.items() if not is_state_table(n)} if record else {}


def _check_arguments(disable: object, stored_plans: object) -> None:
    """Refuse arguments of other types than they have."""
    if not isinstance(stored_plans, bool):
        text = f"stored_plans is True or False, not {stored_plans!r}."
        raise DefinitionError("BAD_OPTION", text, hint="False refuses stored DataFrame plans.")
    if not isinstance(disable, Collection) or not all(isinstance(name, str) for name in disable):
        text = f"disable is a set of names, not {disable!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance disable={"key_lookup"}.')


def _check_versions(at: object) -> None:
    """Refuse versions that are none."""
    pairs = at.items() if isinstance(at, Mapping) else () if at is None else ((at, at),)
    if not all(isinstance(n, str) and isinstance(v, int) and not isinstance(v, bool) for n, v in pairs):
        text = f"at gives the versions of sources by their names, not {at!r}."
        raise DefinitionError("BAD_OPTION", text, hint='For instance at={"orders": 43}.')


def _left_out(target: TargetTable) -> tuple[str, ...]:
    """Name the state tables that proved too big; a record that cannot be read is the refresh's matter."""
    try:
        record = read_record(target.name, target.state())
    except StateError:
        return ()
    return record.without if record is not None else ()


def _columns_read(prepared: Prepared) -> Mapping[str, Mapping[str, ColumnFact]]:
    """Give the columns a query reads as they are now; other ones mean that it must be analysed anew."""
    found = {}
    for name, source in prepared.sources.items():
        columns = source.columns(source.head())
        found[name] = {c: columns[c] for c in prepared.used.get(name, ()) if c in columns}
    return found


def _not_differentiable(name: str, prepared: Prepared) -> NotDifferentiableError:
    first = prepared.obstacles[0]
    more = "".join(f" Also {o.code}: {o.text}" for o in prepared.obstacles[1:])
    return NotDifferentiableError(first.code, f"stream table '{name}': {first.text}{more}", hint=first.hint)
