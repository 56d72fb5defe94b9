"""The public API: ``Trickle``, thin verbs over the packages below."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from trickle.engine.alter import UNCHANGED, Alter, Alteration, Unchanged
from trickle.engine.apply import Apply
from trickle.engine.arguments import (
    check_choice,
    check_format,
    check_function,
    check_limit,
    check_mode,
    check_names,
    check_switches,
    check_text,
    check_until,
    check_versions,
    check_workers,
    read_options,
    read_resumption,
    read_timeout,
)
from trickle.engine.engine import Engine
from trickle.engine.progress import progress
from trickle.engine.recover import resume, suspend
from trickle.engine.upstream import refresh_with_upstream, write_and_refresh
from trickle.engine.verbs import verb
from trickle.engine.versions import restore, snapshot
from trickle.execute import enable, execute
from trickle.handle import StreamTable
from trickle.model.cache import CacheSize, cache_sizes
from trickle.model.listing import Listing
from trickle.model.options import DEFAULT, Options, memory_bytes, with_disabled
from trickle.model.schedule import read_duration, write_schedule
from trickle.model.spec import read_specs, write_specs
from trickle.notebook import watch
from trickle.observe.observer import Observer
from trickle.observe.places import CatalogPlaces
from trickle.refresh.request import Request
from trickle.schedule.lease import open_lease
from trickle.schedule.loop import Loop
from trickle.schedule.running import Running, stopped_by_signals
from trickle.session import check_session
from trickle.show.tables import history_list, status_list, table_list
from trickle.sql.meaning import read_script, write_script
from trickle.warehouse import sync

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from trickle.engine.declare import Columns, References
    from trickle.engine.events import Events
    from trickle.execute import Answer
    from trickle.model.definition import Mode
    from trickle.model.explanation import Explanation
    from trickle.model.lineage import Lineage
    from trickle.model.observed import PastRefresh, TableStatus
    from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport
    from trickle.model.spec import ApplyPlan, Spec
    from trickle.model.suspension import Suspension
    from trickle.model.table_options import TableOptionWords


class Trickle:
    """Stream tables on a Spark session. Several threads may use one: tables are refreshed side by side, each by one at a time.

    Args:
        spark: A classic (not Connect) session with Delta Lake, the user's own or ``trickle.local_session()``.
        disable: Names of optimisations to switch off, besides those that ``options`` names; results are the same.
        options: Limits and switches. Limits on memory that are at their default are lowered to suit the machine or the
            container.
        stored_plans: False refuses stream tables that are defined by a DataFrame. Their plan, and the Python functions in
            it, are stored with the table, and are run by whoever refreshes it.
        history: A Delta table, ``schema.table``, to which every refresh, failure and suspension is appended; made if it is
            not there.
        quiet: True draws no progress on a terminal, for programs that draw their own.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        disable: Collection[str] = (),
        options: Options | None = None,
        stored_plans: bool = True,
        history: str | None = None,
        quiet: bool = False,
    ) -> None:
        """Bind to a session.

        Raises:
            SessionError: What is given is not a session, is a Connect one, is stopped, or has no Delta Lake.
            DefinitionError: ``UNKNOWN_OPTION`` or ``BAD_OPTION``.
        """
        check_session(spark)
        check_switches(disable, stored_plans)
        given = with_disabled(DEFAULT if options is None else options, disable)
        self.options = given.within(memory_bytes(), only_defaults=True)
        self.disable = self.options.disable
        self.stored_plans = stored_plans and self.options.stored_plans
        self.spark = spark
        self._is_quiet = quiet
        check_text("history", history)
        self._engine = self._open(history)
        self._alter = Alter(self._engine)
        watch(self)

    @verb
    def _open(self, history: str | None) -> Engine:
        return Engine(self.spark, self.options, stored_plans=self.stored_plans, history=history)

    @verb
    def create(
        self,
        name: str,
        query: str | DataFrame,
        *,
        mode: Mode = "auto",
        schedule: str | None = None,
        replace: bool = False,
        if_not_exists: bool = False,
        **options: Unpack[TableOptionWords],
    ) -> StreamTable:
        """Create a stream table from a query and fill it.

        Args:
            name: ``table``, ``schema.table`` or ``catalog.schema.table``.
            query: SQL text or a DataFrame over Delta tables (or other stream tables).
            mode: ``auto`` refreshes by changes where it can and says why where it cannot; ``differential`` never
                recomputes silently: it fails at creation if the query cannot be maintained; ``full`` always recomputes.
            schedule: When ``run`` refreshes it: ``"30s"``, ``"0 6 * * 1-5 Europe/Berlin"``, ``"on commit"``,
                ``"on commit at most every 10s"``, ``"downstream"``; None is by hand.
            replace: If there is a stream table of this name, give it this query, mode, schedule and options: nothing is
                computed if the query means the same, and readers see the old rows or the new ones, never anything else.
            if_not_exists: If there is a stream table of this name, leave it as it is.
            options: See ``TableOptions``: ``comment``, ``partition_by``, ``cluster_by``, ``properties``, ``location``,
                ``tags``, ``owner``, ``timeout``, ``max_change_rows``, ``max_change_ratio``, ``verify_every``,
                ``suspend_after``.

        Raises:
            DefinitionError: The name, the query, its columns, the schedule or an option cannot be used.
            NotDifferentiableError: In mode ``differential``, what stands against it.
        """
        check_mode(mode)
        check_choice(replace=replace, if_not_exists=if_not_exists)
        when = write_schedule(schedule)
        if (replace or if_not_exists) and self._engine.is_stream_table(name):
            if replace:
                wanted = Alteration(query, mode, when, options, keeps_options=False)
                self._alter.change(self._engine.qualify(name), wanted)
            return self.table(name)
        made = self._engine.create(name, query, mode, when, read_options(options))
        return StreamTable(*made, self)

    @verb
    def alter(
        self,
        name: str,
        query: str | DataFrame | None = None,
        *,
        mode: Mode | None = None,
        schedule: str | Unchanged | None = UNCHANGED,
        **options: Unpack[TableOptionWords],
    ) -> StreamTable:
        """Change a stream table while others read it; what is not given stays.

        Mode, schedule and options are changed in place. Another query is computed beside the table and swapped in by one
        commit, with its own state tables and columns; stream tables that read it get only the rows that differ.

        Raises:
            UnknownTableError: There is no such stream table.
            DefinitionError: The query, its columns, the schedule or an option cannot be used; nothing has changed.
        """
        if mode is not None:
            check_mode(mode)
        when = schedule if isinstance(schedule, Unchanged) else write_schedule(schedule)
        self._alter.change(self._engine.qualify(name), Alteration(query, mode, when, options))
        return self.table(name)

    @verb
    def apply(
        self,
        definitions: str | Mapping[str, str | DataFrame | Spec] | Sequence[Spec],
        *,
        dry_run: bool = False,
        prune: bool = False,
    ) -> ApplyPlan:
        """Bring the stream tables of the catalog to a set of definitions, with the least work, in the order of the graph.

        What is to be done is found out first, for all of them: bad input changes nothing. It is shown with what it will
        take, on a terminal, and told as the event ``ApplyPlanned``. A definition that is as it should be costs nothing;
        options change in place; another query is swapped in by one commit, its rows made of the stored ones if they
        follow from these.

        Args:
            definitions: Queries by name, specs, the text of ``export``, or ``CREATE STREAM TABLE`` statements.
            dry_run: Only say what would be done.
            prune: Drop the stream tables of the same schemas that are not in the set.

        Raises:
            DefinitionError: ``CYCLE``, ``DUPLICATE_NAME``, ``BAD_DEFINITIONS``, or what ``create`` and ``alter`` raise.
        """
        with progress(self._engine.events, is_drawn=not self._is_quiet):
            is_sql = isinstance(definitions, str) and not definitions.lstrip().startswith(("{", "["))
            specs = read_specs(read_script(str(definitions)) if is_sql else definitions)
            return Apply(self._alter).apply(specs, dry_run=dry_run, prune=prune)

    @verb
    def export(self, names: Collection[str] | None = None, *, format: Literal["json", "sql"] = "json") -> str:
        """Write the definitions of stream tables, None for all, as text that ``apply`` reads back.

        Args:
            names: The stream tables; None for all.
            format: ``json``, which any session reads back as it is; or ``sql``, statements for people and repositories. Names
                without a schema then mean the current one, and settings are those of the session that applies them.

        Raises:
            DefinitionError: ``BAD_OPTION``, another format, or SQL of a stream table that a DataFrame defines.
        """
        check_names(names)
        check_format(format)
        found = [
            (table.name, table.definition) for table in (self.tables() if names is None else map(self.table, names))
        ]
        return write_specs(found) if format == "json" else write_script(found)

    @verb
    def rename(self, name: str, new_name: str) -> StreamTable:
        """Rename a stream table in its schema.

        Raises:
            DefinitionError: ``STILL_READ``, other stream tables read it; ``NAME_TAKEN``.
        """
        return self.table(self._alter.rename(name, new_name))

    @verb
    def snapshot(self, name: str, *, keep: str | None = None) -> int:
        """Return the version of the rows that a stream table has now, for ``restore``.

        Args:
            name: The stream table.
            keep: For how long it must be possible to restore them, ``"30d"`` for one: if the table keeps older versions for
                less time, its retention is raised; None leaves that as it is, a week if nobody has set it.

        Raises:
            StateError: ``NO_SUCH_VERSION``, others have changed the rows since the last refresh.
        """
        return snapshot(self._engine, name, None if keep is None else read_duration(keep))

    @verb
    def restore(self, name: str, version: int) -> int:
        """Put back the rows that a stream table had at an earlier version of its own; return the new version.

        The frontier goes with them: the next refresh computes the change since then.

        Raises:
            StateError: ``NO_SUCH_VERSION``, or ``OTHER_QUERY`` if another query made that version.
        """
        return restore(self._engine, name, version)

    @verb
    def refresh(
        self,
        name: str,
        *,
        full: bool = False,
        at: Mapping[str, int] | None = None,
        timeout: str | float | None = None,
        upstream: bool = False,
    ) -> RefreshReport:
        """Bring a stream table up to date with its sources by computing only what changed.

        Args:
            name: The stream table.
            full: Recompute all rows.
            at: Versions of sources to refresh to, e.g. ``{"orders": 43}``; the others go to their newest.
            timeout: The longest time it may take, as seconds or ``"5m"``; None for the table's own option.
            upstream: First refresh the stream tables that it reads; ``at`` then names base tables. Else those that are
                behind are told in ``report.warnings``.

        Raises:
            SuspendedError: ``SUSPENDED``, or ``FUSE_BLOWN``: the change is too big.
            CancelledError: ``TIMED_OUT``; nothing was committed, and its Spark jobs were cancelled.
        """
        check_versions(at)
        request = Request(full=full, at=at, timeout=read_timeout(timeout))
        return refresh_with_upstream(self._engine, name, request) if upstream else self._engine.refresh(name, request)

    @verb
    def refresh_all(
        self,
        names: Collection[str] | None = None,
        *,
        at: Mapping[str, int] | None = None,
        full: bool = False,
        workers: int = 1,
    ) -> RunReport:
        """Bring stream tables to one cut: the same version of every base table.

        Each table is refreshed once, after the stream tables that it reads. One that fails stops those that read it, and
        no others.

        Args:
            names: The stream tables, with all that they read; None for all of the catalog.
            at: Versions of base tables, e.g. ``{"orders": 43}``; the others are taken at their newest.
            full: Recompute all rows.
            workers: How many tables are refreshed at once, where neither reads the other.

        Raises:
            DefinitionError: ``CYCLE``, stream tables read each other in a circle.
            SourceError: ``UNKNOWN_SOURCE`` or ``NO_SUCH_VERSION``, for ``at``.
        """
        check_versions(at)
        check_names(names)
        check_workers(workers)
        with progress(self._engine.events, is_drawn=not self._is_quiet):
            return self._engine.refresh_all(names, at, full=full, workers=workers)

    @verb
    def write_and_refresh(self, write: Callable[[], object], tables: Collection[str], *, workers: int = 1) -> RunReport:
        """Write to sources and return when stream tables have what was written: read your own writes.

        Args:
            write: Commits to base tables, e.g. ``lambda: spark.sql("INSERT …")``. What it raises is raised, and nothing is
                refreshed.
            tables: The stream tables, with all that they read.
            workers: How many tables are refreshed at once, where neither reads the other.

        Raises:
            SuspendedError: One of them is suspended; nothing was written.
            TrickleError: One of them could not be refreshed; what was written stays.
        """
        check_function(write)
        check_names(tables if tables is not None else "")  # all tables are not what one has written to
        check_workers(workers)
        return write_and_refresh(self._engine, write, tables, workers)

    @verb
    def run(self, *, workers: int = 2, until: datetime | None = None, lease: str | None = None) -> None:
        """Refresh stream tables by their schedules, until a moment, SIGTERM or Ctrl-C; a refresh at work ends first.

        A second SIGTERM or Ctrl-C calls it off, with nothing committed.

        Among several processes with one lease one leads; when it dies, another one goes on within half a minute.

        Args:
            workers: How many tables are refreshed at once, where neither reads the other.
            until: When to end, with a time zone; None for never.
            lease: A folder that the processes share, as a path or URI; None for one in the warehouse.

        Raises:
            DefinitionError: ``BAD_OPTION``.
        """
        check_until(until)
        loop = self._loop(workers, lease)
        with stopped_by_signals(loop.stop, loop.cancel):
            loop.run(until)

    @verb
    def start(self, *, workers: int = 2, lease: str | None = None) -> Running:
        """Do the same in a thread of its own, which ``stop()`` of what this gives ends."""
        return Running(self._loop(workers, lease))

    def _loop(self, workers: int, lease: str | None, between: Callable[[], None] | None = None) -> Loop:
        check_workers(workers)
        check_text("lease", lease)
        return Loop(self._engine, workers=workers, lease=open_lease(self.spark, lease), between=between)

    @verb
    def suspend(self, name: str, *, reason: str | None = None) -> Suspension:
        """Leave a stream table where it is, until ``resume``: runs and the loop pass over it, ``refresh`` refuses it.

        Stream tables that read it go on from its stored rows. One that is suspended already stays as it is.
        """
        check_text("reason", reason)
        return suspend(self._engine, name, reason)

    @verb
    def resume(self, name: str, *, apply: bool = False, full: bool = False, skip: bool = False) -> RefreshReport | None:
        """Let a suspended stream table go on; the error that it was suspended for is forgotten.

        Args:
            name: The stream table.
            apply: First apply the change that its fuse holds back, whatever its size.
            full: First recompute all rows.
            skip: First pass over that change: the table does not equal its query until a full refresh.

        Raises:
            StateError: ``NO_CHANGE_WAITS``, its fuse has not blown.
        """
        return resume(self._engine, name, read_resumption(apply=apply, full=full, skip=skip))

    @property
    def events(self) -> Events:
        """Where to listen: ``t.events.on_failure(function)``, ``on_refresh``, ``on_full``, ``on_suspend``."""
        return self._engine.events

    @verb
    def read(self, names: Sequence[str]) -> tuple[DataFrame, ...]:
        """Return the rows of several stream tables at the newest cut that all of them have, in the order of the names.

        They stand for the same versions of the base tables, also while a run is going on.

        Raises:
            StateError: ``NO_COMMON_CUT``.
        """
        check_names(names)
        return self._engine.read(names)

    @verb
    def explain(self, name: str) -> Explanation:
        """Show how a stream table is maintained, and what its next refresh would do now; changes nothing.

        The text has the operator tree with the law used at each node, the change plan when every source changed, and the
        steps of the next refresh with its mode and reason.
        """
        return self._engine.explain(name)

    @verb
    def explain_query(self, query: str | DataFrame) -> Explanation:
        """Show how a query would be maintained if it were a stream table; creates nothing."""
        return self._engine.explain_query(query)

    @verb
    def _explain_definition(
        self, name: str, query: str, mode: Mode, words: TableOptionWords, must_be_incremental: bool
    ) -> Explanation:
        options = read_options(words)
        return self._engine.explain_definition(name, query, mode, options, must_be_incremental=must_be_incremental)

    def sql(self, statement: str, args: Any = None) -> Answer:
        """Carry out one SQL statement.

        Statements about stream tables (``CREATE STREAM TABLE``, ``REFRESH``, ``ALTER``, ``DROP``, ``SHOW``, ``DESCRIBE``,
        ``EXPLAIN``; also ``MATERIALIZED VIEW``) are carried out here. All others go to Spark as they are.

        Args:
            statement: The text of one statement.
            args: Parameters of a statement that goes to Spark.

        Returns:
            A DataFrame, a handle after CREATE and ALTER, a report after REFRESH, a text after EXPLAIN, None after DROP.

        Raises:
            SqlSyntaxError: ``SQL_SYNTAX``; its text shows the place.
        """
        return execute(self, statement, args)

    @verb
    def verify(self, name: str, *, sampled: bool = False) -> VerifyReport:
        """Compare a stream table, row for row with multiplicities, with its query at the same source versions.

        Args:
            name: The stream table.
            sampled: Of a table with more rows than the option ``verify_sample_rows``, compare a random part of the keys.
        """
        return self._engine.verify(name, sampled=sampled)

    @verb
    def validate(self, query: str | DataFrame) -> Validation:
        """Return whether a query can be maintained incrementally, and every obstacle if not; creates nothing."""
        return self._engine.validate(query)

    @verb
    def declare(
        self,
        table: str,
        *,
        primary_key: Columns = (),
        foreign_key: References | None = None,
        check: bool = True,
    ) -> None:
        """Declare the keys of a source table, so that refreshes search less. They are kept as a property of the table.

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
        self._engine.declare(table, primary_key, foreign_key or {}, check=check)

    @verb
    def tables(self) -> list[StreamTable]:
        """List the stream tables of the catalog; one whose log or definition cannot be read is left out, with a warning."""
        found = [StreamTable(name, definition, self) for name, definition in self._engine.tables.list_all()]
        return Listing(found, table_list)

    @verb
    def table(self, name: str) -> StreamTable:
        """Return the handle of a stream table."""
        found = self._engine.tables.find(self._engine.qualify(name))
        return StreamTable(found.name, found.definition, self)

    @verb
    def status(self, name: str | None = None) -> list[TableStatus]:
        """Tell how the stream tables of the catalog are, or how one is: freshness, lag, last refresh, next due, health.

        Reads only the logs of the tables and of their sources.
        """
        return Listing(self._observer().status(name), status_list)

    @verb
    def history(self, name: str, *, limit: int | None = 20) -> list[PastRefresh]:
        """Return the refreshes of a stream table, the newest first, as far as its log reaches back.

        Args:
            name: The stream table.
            limit: How many; None for all.
        """
        check_limit(limit)
        return Listing(self._observer().history(name, limit), history_list)

    @verb
    def lineage(self, name: str | None = None) -> Lineage:
        """Return who reads whom, with the columns that are read; of one table, what it reads and who reads it.

        ``to_text()`` of the result draws a tree, ``to_mermaid()`` a diagram.
        """
        return self._observer().lineage(name)

    def _observer(self) -> Observer:
        sync(self.spark)
        catalog = self._engine.catalog
        return Observer(CatalogPlaces(catalog), catalog.results.table_log)

    @verb
    def adopt(self, name: str) -> StreamTable:
        """Turn a copy of a stream table into a stream table: a clone, or a table made with CREATE TABLE … LIKE.

        The copy carries the definition, but is an ordinary table until it is adopted. Its next refresh is a full one.

        Raises:
            UnknownTableError: There is no such table, or it carries no definition.
        """
        return StreamTable(*self._engine.adopt(name), self)

    def memory(self) -> Mapping[str, CacheSize]:
        """Return the entries, bytes and limits of the caches of this process, by name."""
        return cache_sizes()

    def settle(self) -> None:
        """Wait for the checkpoints, and the rows of the history table, that refreshes left to be written beside them.

        A process that ends right after a refresh calls this before it stops the session.
        """
        self._engine.catalog.results.settle()
        if self._engine.history is not None:
            self._engine.history.flush()

    @verb
    def drop(self, name: str, *, cascade: bool = False) -> None:
        """Drop a stream table and its data, also one whose log can no longer be read if anything tells that it is one.

        Args:
            name: The stream table.
            cascade: Drop the stream tables that read it, too.

        Raises:
            DefinitionError: ``STILL_READ``, other stream tables read it.
        """
        self._alter.drop(name, cascade=cascade)

    @verb
    def _frontier(self, name: str) -> Mapping[str, int]:
        return self._engine.frontier(name)


def enable_sql(spark: SparkSession, trickle: Trickle | None = None) -> Callable[[], None]:
    """Let ``spark.sql`` understand statements about stream tables, on one session object; return what undoes it.

    Each answer is a DataFrame. Only Python callers of this object are served: other sessions, Thrift, JDBC and Scala are not.

    Args:
        spark: The session.
        trickle: What carries the statements out; None for one with the usual options.
    """
    return enable(spark, trickle or Trickle(spark))
