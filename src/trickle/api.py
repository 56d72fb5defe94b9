"""The public API: ``Trickle`` and the ``StreamTable`` handle, thin verbs over the packages below."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.engine.arguments import check_mode, check_names, check_switches, check_versions, check_workers
from trickle.engine.engine import Engine
from trickle.engine.verbs import verb
from trickle.model.cache import CacheSize, cache_sizes
from trickle.model.names import sql_name
from trickle.model.options import DEFAULT, Options, with_disabled
from trickle.model.schedule import read_schedule
from trickle.refresh.request import Request
from trickle.schedule.lease import open_lease
from trickle.schedule.loop import Loop, Running, stopped_by_signals
from trickle.session import check_session

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from trickle.engine.declare import Columns, References
    from trickle.model.definition import Definition, Mode
    from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport


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
        """Bring the table up to date with its sources; see ``Trickle.refresh``."""
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
        """Return its rows."""
        return self._trickle.spark.table(sql_name(self.name))

    def __repr__(self) -> str:
        """Show name and mode."""
        return f"StreamTable({self.name!r}, mode={self.mode!r})"


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
        check_switches(disable, stored_plans)
        self.options = with_disabled(options, disable)
        self.disable = self.options.disable
        self.stored_plans = stored_plans and self.options.stored_plans
        self.spark = spark
        self._engine = Engine(spark, self.options, stored_plans=self.stored_plans)

    @verb
    def create(
        self, name: str, query: str | DataFrame, *, mode: Mode = "auto", schedule: str | None = None
    ) -> StreamTable:
        """Create a stream table from a query and fill it.

        Args:
            name: ``table``, ``schema.table`` or ``catalog.schema.table``.
            query: SQL text or a DataFrame over Delta tables (or other stream tables).
            mode: ``auto`` refreshes by changes where it can and says why where it cannot; ``differential`` never
                recomputes silently: it fails at creation if the query cannot be maintained; ``full`` always recomputes.
            schedule: When ``run`` refreshes it: ``"30s"``, ``"0 6 * * 1-5 Europe/Berlin"``, ``"on commit"``,
                ``"on commit at most every 10s"``, ``"downstream"``; None is by hand.

        Raises:
            DefinitionError: The name, the query, its columns or the schedule cannot be used.
            NotDifferentiableError: In mode ``differential``, what stands against it.
        """
        check_mode(mode)
        when = read_schedule(schedule)
        return StreamTable(*self._engine.create(name, query, mode, None if when is None else str(when)), self)

    @verb
    def refresh(self, name: str, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Bring a stream table up to date with its sources by computing only what changed.

        Args:
            name: The stream table.
            full: Recompute all rows.
            at: Versions of sources to refresh to, e.g. ``{"orders": 43}``; the others go to their newest.
        """
        check_versions(at)
        return self._engine.refresh(name, Request(full=full, at=at))

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
        return self._engine.refresh_all(names, at, full=full, workers=workers)

    def run(self, *, workers: int = 2, until: datetime | None = None) -> None:
        """Refresh stream tables by their schedules, until a moment, SIGTERM or Ctrl-C; a refresh at work ends first.

        Among several processes on one warehouse one leads; when it dies, another one goes on within half a minute.

        Args:
            workers: How many tables are refreshed at once, where neither reads the other.
            until: When to end; None for never.
        """
        loop = self._loop(workers)
        with stopped_by_signals(loop.stop):
            loop.run(until)

    def start(self, *, workers: int = 2) -> Running:
        """Do the same in a thread of its own, which ``stop()`` of what this gives ends."""
        return Running(self._loop(workers))

    def _loop(self, workers: int) -> Loop:
        check_workers(workers)
        return Loop(self._engine, workers=workers, lease=open_lease(self.spark))

    @verb
    def read(self, names: Sequence[str]) -> tuple[DataFrame, ...]:
        """Give the rows of several stream tables at the newest cut that all of them have, in the order of the names.

        They stand for the same versions of the base tables, also while a run is going on.

        Raises:
            StateError: ``NO_COMMON_CUT``.
        """
        check_names(names)
        return self._engine.read(names)

    @verb
    def explain(self, name: str) -> str:
        """Show how a stream table is maintained, and what its next refresh would do now; changes nothing.

        The text has the operator tree with the law used at each node, the change plan when every source changed, and the
        steps of the next refresh with its mode and reason.
        """
        return self._engine.explain(name)

    @verb
    def verify(self, name: str) -> VerifyReport:
        """Compare a stream table, row for row with multiplicities, with its query at the same source versions."""
        return self._engine.verify(name)

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
        return [StreamTable(name, definition, self) for name, definition in self._engine.tables.list_all()]

    @verb
    def table(self, name: str) -> StreamTable:
        """Return the handle of a stream table."""
        found = self._engine.tables.find(self._engine.qualify(name))
        return StreamTable(found.name, found.definition, self)

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

    @verb
    def drop(self, name: str) -> None:
        """Drop a stream table and its data."""
        self._engine.drop(name)

    @verb
    def _frontier(self, name: str) -> Mapping[str, int]:
        return self._engine.frontier(name)
