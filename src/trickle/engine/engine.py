"""Implements the public verbs over the registry of open tables, the compiler and the refreshes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from trickle.engine.arguments import check_differentiable, check_layout
from trickle.engine.cancel import Cancellation
from trickle.engine.cuts import Cuts
from trickle.engine.declare import Columns, References, declare_keys
from trickle.engine.events import Events, reported
from trickle.engine.fallbacks import Fallbacks
from trickle.engine.graph import Member, Members, build_members
from trickle.engine.history import History
from trickle.engine.open_tables import FoundTable, OpenTable, OpenTables
from trickle.engine.replacement import adopt_columns
from trickle.engine.retry import Retries
from trickle.engine.run import OnOutcome, Run
from trickle.engine.suspend import Suspensions
from trickle.engine.upstream import Upstream
from trickle.engine.verbs import describe_failure
from trickle.engine.workspaces import Workspaces
from trickle.errors import (
    CancelledError,
    DefinitionError,
    SourceError,
    StateError,
    TrickleError,
    UnknownTableError,
)
from trickle.model.definition import DEFINITION_PROPERTY, TABLE_PROPERTY, Definition
from trickle.model.events import RunEnded, RunStarted
from trickle.model.names import is_state_table, split_name
from trickle.model.reason import SCHEMA_MISMATCH, SOURCE_ALTERED
from trickle.model.report import Validation
from trickle.model.schedule import read_duration
from trickle.model.table_options import NO_OPTIONS
from trickle.refresh.checks import check_columns, check_sources
from trickle.refresh.explain import explain_prepared, explain_text
from trickle.refresh.fuse import FuseBlownError
from trickle.refresh.record import read_record
from trickle.refresh.request import Request
from trickle.refresh.run import Refresh
from trickle.refresh.verify import verify_table
from trickle.refresh.write import StateTooBigError
from trickle.tables.looks import look_again, one_look
from trickle.warehouse import sync

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from trickle.engine.compiler import Analysed
    from trickle.model.definition import Mode
    from trickle.model.events import Trigger
    from trickle.model.explanation import Explanation
    from trickle.model.options import Options
    from trickle.model.report import RefreshReport, RunReport, VerifyReport
    from trickle.model.suspension import Suspension
    from trickle.model.table_options import TableOptions
    from trickle.refresh.deadline import Deadline
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import TargetTable


class Engine:
    """The stream tables of one Spark session."""

    def __init__(
        self, spark: SparkSession, options: Options, *, stored_plans: bool, history: str | None = None
    ) -> None:
        """Bind to a session."""
        self.spark = spark
        self.options = options
        self.workspaces = Workspaces(spark, options, stored_plans=stored_plans)
        self.jvm, self.catalog = self.workspaces.own.jvm, self.workspaces.own.catalog
        self.tables = OpenTables(self.workspaces)
        self.events = Events()
        self.upstream = Upstream(self.catalog, options.upstream_kept)
        self.fallbacks = Fallbacks()
        self.cancellation = Cancellation(spark)
        self.suspensions = Suspensions(self.catalog, self.events)
        self.history = None
        if history is not None:
            self.history = History(self.catalog, self.events, self.qualify(history), options)

    def qualify(self, name: str) -> str:
        """Return a name with its schema; each question to the catalog takes as long as a look at a log."""
        return self.catalog.qualify(split_name(name))

    # -- making and dropping

    def create(
        self,
        name: str,
        query: str | DataFrame | Definition,
        mode: Mode,
        schedule: str | None = None,
        options: TableOptions = NO_OPTIONS,
    ) -> tuple[str, Definition]:
        """Create a stream table from a query and fill it; return its full name and its definition."""
        sync(self.spark)
        full_name = self.qualify(name)
        self.catalog.refuse_existing(full_name)
        analysed, prepared = self.define(full_name, query, mode, schedule, options)
        workspace = self.workspaces.of(analysed.definition.settings)
        with workspace.active():
            workspace.catalog.results.create(
                full_name,
                workspace.jvm.frame(analysed.plan).toDF(*prepared.names),
                lambda made: self._fill(full_name, made, analysed, prepared),
                {DEFINITION_PROPERTY: analysed.definition.model_dump_json()},
                bind=TABLE_PROPERTY,
                options=options,
            )
        self.catalog.results.set_column_comments(full_name, options.column_comments)
        return full_name, analysed.definition

    def define(
        self,
        name: str,
        query: str | DataFrame | Definition,
        mode: Mode,
        schedule: str | None = None,
        options: TableOptions = NO_OPTIONS,
    ) -> tuple[Analysed, Prepared]:
        """Compile a query for a stream table and check all that can be checked before it is made."""
        workspace = self.workspaces.of(query.settings if isinstance(query, Definition) else {})
        with workspace.active():
            analysed = workspace.compiler.define(query, mode, schedule, options)
            check_columns(analysed.plan)
            prepared = workspace.compiler.prepare(analysed)
            check_sources(prepared.used)
            check_differentiable(name, mode, prepared.obstacles)
            check_layout(options, prepared.names)
            if analysed.definition.query is None and analysed.definition.plan is None:
                analysed = replace(analysed, definition=workspace.compiler.freeze(analysed.definition, prepared))
        return analysed, prepared

    def is_stream_table(self, name: str) -> bool:
        """Return whether a name is taken by a stream table; False if nothing has it.

        Raises:
            DefinitionError: ``NAME_TAKEN``, it is a plain table or a view.
        """
        sync(self.spark)
        full_name = self.qualify(name)
        if not self.catalog.is_there(full_name):
            return False
        try:
            self.tables.find(full_name)
        except UnknownTableError as error:
            hint = "Choose another name, or drop what is there."
            raise DefinitionError("NAME_TAKEN", f"'{full_name}' is not a stream table.", hint=hint) from error
        return True

    def _fill(self, name: str, made: TargetTable, analysed: Analysed, prepared: Prepared) -> None:
        table = self.tables.open(name, made, analysed, prepared)
        with self.tables.lock(name), reported(self.events, name, "creation") as tell:
            report, filled = self.run(table, Request(trigger="creation"))
            self.tables.keep(filled)
            tell(report)

    def adopt(self, name: str) -> tuple[str, Definition]:
        """Turn a copy of a stream table into a stream table; return its full name and its definition."""
        found = self.tables.find(self.qualify(name), copies=True)
        definition = found.definition
        if found.is_copy:
            self.catalog.results.bind(found.name, found.location)
        return found.name, definition

    def declare(self, table: str, primary_key: Columns, foreign_key: References, *, check: bool) -> None:
        """Store which keys a source table has."""
        sync(self.spark)
        declare_keys(self.catalog.results, table, primary_key, foreign_key, check=check)

    # -- refreshing

    def refresh(self, name: str, request: Request) -> RefreshReport:
        """Bring a stream table up to date with its sources."""
        full_name = self.qualify(name)
        # A second thread waits and usually finds nothing to do: working in parallel with the first would be wasted.
        with self.tables.lock(full_name), one_look():
            self.tables.look_at_once(full_name, self.options)
            table = self.tables.get(full_name)
            self.suspensions.check(full_name, table.location)
            report = self.refresh_open(table, request)
            behind = self.upstream.warnings(table.prepared.sources)
        return replace(report, warnings=(*report.warnings, *behind)) if behind else report

    def refresh_open(self, table: OpenTable, request: Request) -> RefreshReport:
        """Bring an open stream table up to date, suspended or not; tell of it."""
        with (
            self.tables.lock(table.name),
            reported(self.events, table.name, request.trigger) as tell,
            self._in_time(table, request) as deadline,
        ):
            known, request = table, replace(request, deadline=deadline)
            if table.other_columns is not None:  # no row need have changed with them
                self._refuse_other_columns(table, request)
                return tell(adopt_columns(self, table, request))
            if table.prepared.is_time_dependent:
                with table.workspace.active():
                    analysed = table.workspace.compiler.analyse(table.definition, table.analysed.session)
                    table = replace(table, prepared=table.workspace.compiler.prepare(analysed))
            try:
                report, table = self.run(table, request)
            except FuseBlownError as error:
                self.suspensions.hold(table.name, table.location, error, pinned=not table.prepared.obstacles)
                raise
            except StateError as error:
                if error.code != SCHEMA_MISMATCH or not (request.full or table.definition.mode != "differential"):
                    raise
                return tell(adopt_columns(self, table, request))
            self.tables.keep(table, instead_of=known)
            slow = self.fallbacks.warnings(table)
            return tell(replace(report, warnings=(*report.warnings, *slow)) if slow else report)

    @staticmethod
    def _refuse_other_columns(table: OpenTable, request: Request) -> None:
        if table.definition.mode == "differential" and not request.full:
            names = ", ".join(table.other_columns or ())
            text = f"stream table '{table.name}': its query has come to return other columns than it has: {names}."
            raise SourceError(SOURCE_ALTERED, text, hint="refresh(full=True) gives it these columns.")

    def _in_time(self, table: OpenTable, request: Request) -> AbstractContextManager[Deadline]:
        """Limit a refresh to the time that was asked for, else to that of its table; the loop may end all of its own."""
        own = table.definition.options.timeout
        seconds = request.timeout if request.timeout is not None or own is None else read_duration(own)
        return self.cancellation.guarded(table.name, seconds, stoppable=request.trigger == "schedule")

    def run(self, table: OpenTable, request: Request, attempts: int | None = None) -> tuple[RefreshReport, OpenTable]:
        """Refresh; return what is to be kept of the table, too.

        A refresh that lost to another process, or whose storage did not answer, starts again, a few times. A state table that
        proves too big is left out from then on.
        """
        retries = Retries(table.name, attempts or self.options.attempts, request.deadline)
        while True:
            refresh = Refresh(table.workspace.jvm, table.for_refresh(self.options), replace(request, costs=table.costs))
            try:
                with one_look(goes_on=True), table.workspace.active():
                    outcome = refresh.run()
            except StateTooBigError as error:
                table.state_tables.forget(error.name)
                without = (*table.prepared.without, error.name)
                with table.workspace.active():
                    table = replace(table, prepared=table.workspace.compiler.prepare(table.analysed, without))
            except Exception as error:
                if not retries.wait(error):
                    raise
                # It starts from what is there now: after a conflict the other one's result, and usually finds nothing to do.
                look_again()
                if retries.failed > 1:
                    request = replace(
                        request, pinned=None
                    )  # a state table may be further: one that a dead process left
                current = table if request.redefine is not None else self.tables.get(table.name)
                if current.text != table.text:
                    table = current  # the other one has replaced the query
            else:
                return outcome.report, replace(table, costs=outcome.costs)

    def refresh_all(
        self,
        names: Collection[str] | None,
        at: Mapping[str, int] | None,
        *,
        full: bool = False,
        workers: int = 1,
        on_outcome: OnOutcome | None = None,
        timeout: float | None = None,
    ) -> RunReport:
        """Bring stream tables, and the stream tables that they read, to one cut of the base tables."""
        members = self.members()
        asked = [*members.members] if names is None else [self.known(members, name) for name in names]
        for name in () if names is None else asked:
            self.suspensions.check(name, members.members[name].table.location)
        wanted = members.graph.upstream(asked)
        report = self.run_members(
            members.only(wanted), wanted, at, full=full, workers=workers, on_outcome=on_outcome, timeout=timeout
        )
        return report if names is not None else replace(report, errors={**members.broken, **report.errors})

    def run_members(
        self,
        members: Members,
        names: Collection[str],
        at: Mapping[str, int] | None = None,
        *,
        full: bool = False,
        workers: int = 1,
        on_outcome: OnOutcome | None = None,
        trigger: Trigger = "manual",
        timeout: float | None = None,
        is_ended: Callable[[], bool] = lambda: False,
    ) -> RunReport:
        """Bring some members of a graph to one cut, the others and those that are suspended staying where they are."""
        suspended = self.suspended(members, members.graph.upstream(names))
        asked = members.find_asked(at)
        run = Run(
            members,
            members.pin(asked),
            partial(self._refresh_member, is_ended),
            full=full,
            on_outcome=on_outcome,
            lag=self.options.idle_versions,
            suspended=suspended,
            trigger=trigger,
            timeout=timeout,
            asked=frozenset(asked),
            is_ended=is_ended,
        )
        self.events.emit(RunStarted(tuple(name for name in names if name not in suspended), trigger))
        report = run.run(names, workers)
        self.events.emit(RunEnded(trigger, report))
        return report

    def suspended(self, members: Members, names: Collection[str]) -> dict[str, Suspension]:
        """Return which of some members are suspended, and why.

        One whose log cannot be read is not, as far as is known: its refresh says what is wrong.
        """
        found: dict[str, Suspension] = {}
        for name in sorted(names):
            with suppress(TrickleError, OSError):
                why = self.suspensions.find(name, members.members[name].table.location)
                if why is not None:
                    found[name] = why
        return found

    def read(self, names: Sequence[str]) -> tuple[DataFrame, ...]:
        """Return the rows of stream tables at the newest cut that all have."""
        members = self.members()
        asked = [self.known(members, name) for name in names]
        versions = Cuts(members, self.options.cut_versions).find(asked)
        # In the user's session, whatever settings the tables are refreshed with.
        results = self.catalog.results
        return tuple(results.target(n, members.members[n].table.location).frame(versions[n]) for n in asked)

    def members(self) -> Members:
        """Return all stream tables of the catalog, with who reads whom."""
        opened: list[OpenTable] = []
        broken: dict[FoundTable, TrickleError] = {}
        for found, table in self.tables.get_all():
            if isinstance(table, Exception):
                broken[found] = describe_failure(table, f"opening of '{found.name}'")
            else:
                opened.append(table)
        return build_members(opened, broken)

    def known(self, members: Members, name: str) -> str:
        """Return the full name of a stream table.

        Raises:
            UnknownTableError: There is none of this name.
        """
        full_name = self.qualify(name)
        return full_name if full_name in members.members else self.tables.get(full_name).name

    def _refresh_member(self, is_ended: Callable[[], bool], member: Member, request: Request) -> RefreshReport:
        name, location = member.table.name, member.table.location
        with self.tables.lock(name), one_look():
            if is_ended():
                text = f"the refresh of '{name}' was called off before it began."
                raise CancelledError("CANCELLED", text, hint="The next refresh starts where the last one ended.")
            self.suspensions.check(name, location)
            return self.refresh_open(member.table, request)

    # -- asking

    def explain(self, name: str) -> Explanation:
        """Show how a stream table is maintained, and what its next refresh would do now."""
        table = self.tables.get(self.qualify(name))
        with table.workspace.active():
            return explain_text(table.for_refresh(self.options), Request(costs=table.costs))

    def explain_query(self, query: str | DataFrame) -> Explanation:
        """Show how a query would be maintained."""
        return explain_prepared(self._prepare(query))

    def explain_definition(
        self, name: str, query: str, mode: Mode, options: TableOptions, *, must_be_incremental: bool
    ) -> Explanation:
        """Show how a stream table would be maintained, and refuse what ``create`` would."""
        sync(self.spark)
        full_name = self.qualify(name)
        _, prepared = self.define(full_name, query, mode, None, options)
        if must_be_incremental:
            check_differentiable(full_name, "differential", prepared.obstacles)
        return explain_prepared(prepared, mode)

    def verify(self, name: str, *, sampled: bool = False) -> VerifyReport:
        """Compare a stream table, or a sample of its keys if it is big, with its query at the same source versions."""
        table = self.tables.get(self.qualify(name))
        jvm, compiler = table.workspace.jvm, table.workspace.compiler
        as_spark: Callable[[], DataFrame] | None = None
        if table.definition.query is not None:
            as_spark = lambda: jvm.frame(compiler.analyse_plan(table.definition, table.analysed.session))  # noqa: E731
        with table.workspace.active():
            return verify_table(jvm, table.prepared, table.target, as_spark, self.options, sampled=sampled)

    def validate(self, query: str | DataFrame) -> Validation:
        """Return whether a query can be maintained incrementally, and every obstacle if not."""
        prepared = self._prepare(query)
        return Validation(not prepared.obstacles, prepared.obstacles, tuple(prepared.sources))

    def _prepare(self, query: str | DataFrame) -> Prepared:
        """Compile a query that is not a stream table's."""
        sync(self.spark)
        own = self.workspaces.own
        with own.active():
            analysed = own.compiler.define(query, "auto")
            check_columns(analysed.plan)
            prepared = own.compiler.prepare(analysed)
            check_sources(prepared.used)
        return prepared

    def frontier(self, name: str) -> Mapping[str, int]:
        """Return the version of each source that a stream table equals."""
        table = self.tables.get(self.qualify(name))
        record = read_record(table.target.name, table.target.state())
        return {n: s.version for n, s in record.frontier.items() if not is_state_table(n)} if record else {}
