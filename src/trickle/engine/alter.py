"""Changes a stream table while others read it: options in place, another query by one commit that swaps the rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from trickle.engine.arguments import check_differentiable, check_layout, read_options
from trickle.engine.open_tables import OpenTable
from trickle.engine.replacement import column_comments, comment_change, find_reusable, property_changes, replace_query
from trickle.errors import ConflictError, DefinitionError, TrickleError, UnknownTableError
from trickle.model.definition import DEFINITION_PROPERTY
from trickle.model.graph import Graph, cycle
from trickle.model.names import split_name
from trickle.model.table_options import NO_OPTIONS, TableOptions
from trickle.refresh.record import read_record
from trickle.tables.redefinition import CONCURRENT_ALTER, altered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.reuse import Reuse
    from trickle.engine.compiler import Analysed
    from trickle.engine.engine import Engine
    from trickle.engine.open_tables import FoundTable
    from trickle.model.definition import Definition, Mode
    from trickle.model.report import RefreshReport
    from trickle.refresh.prepare import Prepared

Action = Literal["nothing", "options", "evolve", "query"]
"""What altering a table took: nothing, options in place, rows made of the stored ones, or rows computed from its sources."""


class Unchanged:
    """The kind of ``UNCHANGED``."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""Stands for a schedule that was not given: None is one."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """What a stream table is to become.

    Attributes:
        query: Its query; None for the one it has.
        mode: Its mode; None for the one it has.
        schedule: Its schedule, ``UNCHANGED`` for the one it has.
        words: Its options as a verb took them.
        keeps_options: True if the options that are not given stay; else they are what a new table has.
    """

    query: str | DataFrame | Definition | None = None
    mode: Mode | None = None
    schedule: str | Unchanged | None = UNCHANGED
    words: Mapping[str, object] | None = None
    keeps_options: bool = True

    def options(self, before: TableOptions) -> TableOptions:
        """Return the options it is to have."""
        return read_options(self.words or {}, before if self.keeps_options else NO_OPTIONS)


@dataclass(frozen=True, slots=True)
class Planned:
    """An alteration, ready to be made.

    Attributes:
        definition: The definition it is to have.
        table: Only found if its own query cannot be compiled any more.
        analysed: The query it is to have and what it compiles to; None if the rows stay as they are.
        reuse: How its rows follow from the stored ones; None if they do not.
    """

    table: OpenTable | FoundTable
    definition: Definition
    analysed: tuple[Analysed, Prepared] | None = None
    reuse: Reuse | None = None

    @property
    def action(self) -> Action:
        """What it takes."""
        if self.analysed is not None:
            return "query" if self.reuse is None else "evolve"
        return "nothing" if self.definition == self.table.definition else "options"


@dataclass(frozen=True, slots=True)
class Alter:
    """Alters, renames and drops the stream tables of an engine."""

    engine: Engine

    def plan(self, name: str, wanted: Alteration, graph: Graph | None = None) -> Planned:
        """Find out what an alteration takes; changes nothing.

        Args:
            name: The stream table.
            wanted: What it is to become.
            graph: Who will read whom; None for what the last refreshes saw.

        Raises:
            DefinitionError: The query, its columns or an option cannot be used.
            NotDifferentiableError: In mode ``differential``, what stands against it.
        """
        table = self._open(name, can_be_closed=wanted.query is not None)
        before = table.definition
        options = wanted.options(before.options)
        refuse_move(name, before.options, options)
        mode = wanted.mode or before.mode
        schedule = before.schedule if isinstance(wanted.schedule, Unchanged) else wanted.schedule
        definition = before.model_copy(update={"mode": mode, "schedule": schedule, "options": options})
        if wanted.query is None and isinstance(table, OpenTable):
            check_differentiable(name, mode, table.prepared.obstacles)
            check_layout(options, table.prepared.names)
            return _with_rows_kept(table, definition)
        analysed, prepared = self.engine.define(name, wanted.query or before, mode, schedule, options)
        if isinstance(table, OpenTable) and self._means_the_same(table, analysed, prepared):
            return _with_rows_kept(table, definition)
        self._refuse_cycle(table, prepared, graph or self.find_graph())
        new = analysed.definition.model_copy(update={"generation": before.generation + 1})
        analysed = replace(analysed, definition=new)
        reuse = find_reusable(table, analysed, prepared) if isinstance(table, OpenTable) else None
        return Planned(table, new, (analysed, prepared), reuse)

    def _open(self, name: str, *, can_be_closed: bool) -> OpenTable | FoundTable:
        """Open a table; one whose query no longer fits its sources can be given another one all the same."""
        try:
            return self.engine.tables.get(name)
        except UnknownTableError:
            raise
        except TrickleError:
            if not can_be_closed:
                raise
            return self.engine.tables.find(name)

    def change(self, name: str, wanted: Alteration) -> tuple[Action, RefreshReport | None]:
        """Plan an alteration and make it, again if somebody else alters the table meanwhile.

        Raises:
            ConflictError: ``CONCURRENT_ALTER``, others have done so each time.
        """
        for attempt in range(1, self.engine.options.attempts + 1):
            try:
                return self.make(self.plan(name, wanted))
            except ConflictError as error:
                if error.code != CONCURRENT_ALTER or attempt == self.engine.options.attempts:
                    raise
        raise AssertionError

    def make(self, planned: Planned) -> tuple[Action, RefreshReport | None]:
        """Make an alteration; return what it took, and the report if rows were computed.

        Raises:
            ConflictError: ``CONCURRENT_ALTER``, the table has another definition than when this was planned.
        """
        with self.engine.tables.lock(planned.table.name):
            if self.engine.tables.find(planned.table.name).text != planned.table.text:
                raise altered(planned.table.name)
            if planned.analysed is not None:
                report = replace_query(self.engine, planned.table, planned.definition, *planned.analysed, planned.reuse)
                return planned.action, report
            if planned.action == "options":
                self._store(planned)
            return planned.action, None

    def _means_the_same(self, table: OpenTable, analysed: Analysed, prepared: Prepared) -> bool:
        """Return whether another query gives the same rows under the same names, as far as Spark can tell."""
        before, after = table.definition, analysed.definition
        if before.settings != after.settings or table.prepared.names != prepared.names:
            return False
        if (before.query is None) != (after.query is None) or table.analysed.views != analysed.views:
            return False
        context = {"query", "catalog", "schema_name"}
        if before.query is not None and before.model_dump(include=context) == after.model_dump(include=context):
            return True
        compiler = table.workspace.compiler
        old, new = (compiler.optimise(a.definition, a.session) for a in (table.analysed, analysed))
        return bool(old.sameResult(new))

    def _refuse_cycle(self, table: OpenTable | FoundTable, prepared: Prepared, graph: Graph) -> None:
        """Refuse a query that reads the table itself, or what is made from it."""
        below = {name for name in graph.downstream([table.name]) if name in graph.reads}
        places = {self._place(name): name for name in (*below, table.name)}
        for source in prepared.sources.values():
            reader = places.get(source.path)
            if reader is not None:
                raise cycle([table.name, *graph.path(reader, table.name)])

    def _place(self, name: str) -> str:
        try:
            return self.engine.tables.find(name).location
        except UnknownTableError:
            return ""  # it is still to be made

    def _store(self, planned: Planned) -> None:
        """Change options, mode and schedule in place: readers see the same rows."""
        name, before, after = planned.table.name, planned.table.definition, planned.definition
        if before.options.cluster_by != after.options.cluster_by:
            self.engine.catalog.cluster(name, after.options.cluster_by)
        properties = {
            **property_changes(before.options, after.options),
            **comment_change(before.options, after.options),
        }
        results = self.engine.catalog.results
        results.set_properties(name, {**properties, DEFINITION_PROPERTY: after.model_dump_json()})
        results.set_column_comments(name, column_comments(before.options, after.options))
        self.engine.tables.forget(name)

    # -- names

    def rename(self, name: str, new_name: str) -> str:
        """Rename a stream table; return it in full."""
        old, new = self.engine.qualify(name), self.engine.qualify(new_name)
        if split_name(old)[:-1] != split_name(new)[:-1]:
            text = f"stream table '{old}' cannot be renamed to '{new}', in another schema."
            raise DefinitionError(
                "BAD_NAME", text, hint="A table stays in its schema: create it there, and drop this one."
            )
        with self.engine.tables.lock(old):
            self.engine.tables.find(old)
            self.engine.catalog.refuse_existing(new)
            _refuse_read(self.find_graph(), old, "renamed", "Replace their queries first.")
            self.engine.catalog.rename(old, new)
            self.engine.tables.forget(old)
        return new

    def drop(self, name: str, *, cascade: bool) -> tuple[str, ...]:
        """Drop a stream table and its data, with ``cascade`` what reads it, too; return what was dropped."""
        full_name = self.engine.qualify(name)
        wreck = self.engine.tables.find_wreck(full_name)
        if wreck is None:
            self.engine.tables.find(full_name)
        graph = self.find_graph({} if wreck is None else {full_name: wreck})
        if not cascade:
            _refuse_read(graph, full_name, "dropped", "Drop them first, or drop all with cascade=True.")
        dropped = _readers_first(graph, [full_name]) if cascade else (full_name,)
        for each in dropped:
            with self.engine.tables.lock(each):
                lies = self.engine.catalog.location(each)
                self.engine.catalog.drop(each)
                if each == full_name and wreck is not None:
                    self.engine.catalog.results.delete_rest(each, lies)
                self.engine.tables.forget(each)
        return dropped

    def find_graph(self, wrecks: Mapping[str, str] = MappingProxyType({})) -> Graph:
        """Find out who reads whom by what the last refreshes saw: nothing is compiled for it.

        ``wrecks`` has the ids of stream tables whose logs cannot be read.
        """
        seen = {name: self._seen(name) for name, _ in self.engine.tables.list_all()}
        seen |= {name: (identity, ()) for name, identity in wrecks.items()}
        names = {identity: name for name, (identity, _) in seen.items()}
        return Graph({name: tuple(names[i] for i in read if i in names) for name, (_, read) in seen.items()})

    def _seen(self, name: str) -> tuple[str, Collection[str]]:
        """Return the id of a stream table, and the ids of what its last refresh read."""
        try:
            location = self.engine.tables.find(name).location
            source = self.engine.catalog.results.source(name, location)
            record = read_record(name, self.engine.catalog.results.target(name, location).state())
            identity = source.identity(source.head())
        except Exception:
            return name, ()  # one that cannot be read does not keep others from being dropped
        return identity, () if record is None else {read.identity for read in record.frontier.values()}


def refuse_move(name: str, before: TableOptions, after: TableOptions) -> None:
    """Refuse another location.

    Raises:
        DefinitionError: ``BAD_OPTION``.
    """
    if after.location != before.location:
        text = f"stream table '{name}' cannot be moved to another location."
        raise DefinitionError("BAD_OPTION", text, hint="Drop it and create it again there.")


def _with_rows_kept(table: OpenTable, definition: Definition) -> Planned:
    """Plan other options for the same query; another partitioning takes writing the rows anew."""
    is_laid_out_anew = table.definition.options.partition_by != definition.options.partition_by
    return Planned(table, definition, (table.analysed, table.prepared) if is_laid_out_anew else None)


def _refuse_read(graph: Graph, name: str, what: str, hint: str) -> None:
    readers = graph.readers(name)
    if readers:
        text = f"stream table '{name}' cannot be {what}: {', '.join(readers)} {_reads(readers)} it."
        raise DefinitionError("STILL_READ", text, hint=hint)


def _readers_first(graph: Graph, names: Collection[str]) -> tuple[str, ...]:
    whole = Graph({**dict.fromkeys(names, ()), **graph.reads})
    waves = whole.waves(whole.downstream(names))
    return tuple(name for wave in reversed(waves) for name in wave)


def _reads(readers: Collection[str]) -> str:
    return "reads" if len(readers) == 1 else "read"
