"""The registry of open stream tables: what is kept between verbs, and which thread may use it when."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Final

from trickle.errors import StateError, UnknownTableError
from trickle.model.definition import read_definition
from trickle.refresh.fuse import fuse_of
from trickle.refresh.record import read_record
from trickle.refresh.tables import RefreshTables
from trickle.warehouse import sync

if TYPE_CHECKING:
    from trickle.engine.compiler import Analysed
    from trickle.engine.workspaces import Workspace, Workspaces
    from trickle.model.cost import Costs
    from trickle.model.definition import Definition
    from trickle.model.options import Options
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import ColumnFact, StateStore, TargetTable

_LOG: Final = logging.getLogger("trickle")


@dataclass(frozen=True, slots=True)
class OpenTable:
    """What is kept of a stream table between verbs: compiling a query costs far more than reading the log.

    Attributes:
        columns: The columns that its query reads, as they were when it was compiled.
        text: Its definition as it is stored.
        workspace: The session that it is compiled and refreshed in.
        costs: What its refreshes took in this process; None before the first.
        other_columns: The columns that its query has come to return, where they are not those of the table: ``SELECT *``.
    """

    name: str
    location: str
    target: TargetTable
    state_tables: StateStore
    analysed: Analysed
    prepared: Prepared
    columns: Mapping[str, Mapping[str, ColumnFact]]
    text: str
    workspace: Workspace
    costs: Costs | None = None
    other_columns: tuple[str, ...] | None = None

    @property
    def definition(self) -> Definition:
        """Its query and mode."""
        return self.analysed.definition

    def for_refresh(self, options: Options) -> RefreshTables:
        """Return its tables for one refresh, or one look at what a refresh would do."""
        fuse = fuse_of(self.definition.options)
        mode, state_tables = self.definition.mode, self.state_tables
        return RefreshTables(self.prepared, self.target, mode, state_tables, options, self.text, fuse)


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A stream table as the catalog has it.

    Attributes:
        name: Its name with its schema.
        text: Its definition as it is stored.
        is_copy: True if it is a copy of a stream table, which nobody has adopted yet.
    """

    name: str
    location: str
    text: str
    is_copy: bool = False

    @property
    def definition(self) -> Definition:
        """The definition, read."""
        return read_definition(self.name, self.text)


class OpenTables:
    """Stream tables by name. Several threads may ask; each table is refreshed, and compiled, by one at a time."""

    def __init__(self, workspaces: Workspaces) -> None:
        """Start with none."""
        self._workspaces = workspaces
        self._catalog = workspaces.own.catalog
        self._open: dict[str, OpenTable] = {}
        self._locks: dict[tuple[str, str], RLock] = {}
        self._left_out: Mapping[str, str] = {}

    def lock(self, name: str, purpose: str = "refresh") -> RLock:
        """Return what one thread at a time holds to refresh or drop a stream table, or to compile it."""
        return self._locks.setdefault((purpose, name), RLock())

    def get(self, name: str) -> OpenTable:
        """Return a stream table, compiled again if its definition, columns, views or functions are not what they were."""
        with self.lock(name, "compile"):  # others may ask about it while it is refreshed
            return self._open_found(self.find(name))

    def look_at_once(self, name: str, options: Options) -> None:
        """Look side by side at what a stream table that is open reads, if that is far away."""
        known = self._open.get(name)
        if known is not None:
            known.for_refresh(options).look_at_once()

    def get_all(self) -> Iterator[tuple[FoundTable, OpenTable | Exception]]:
        """Return every stream table of the catalog; for one that cannot be opened, why."""
        for found in self._find_all():
            opened: OpenTable | Exception
            try:
                with self.lock(found.name, "compile"):
                    opened = self._open_found(found)
            except Exception as error:
                opened = error
            yield found, opened

    def _open_found(self, found: FoundTable) -> OpenTable:
        known = self._open.get(found.name)
        if known is not None and self._is_current(known, found):
            return known
        opened = self._compile(found)
        self._open[found.name] = opened
        return opened

    def keep(self, table: OpenTable, *, instead_of: OpenTable | None = None) -> None:
        """Keep a stream table; instead of another only if that one is still kept."""
        with self.lock(table.name, "compile"):
            if instead_of is None or self._open.get(table.name) is instead_of:
                self._open[table.name] = table

    def forget(self, name: str) -> None:
        """Stop keeping a stream table."""
        self._open.pop(name, None)

    def open(
        self, name: str, target: TargetTable, analysed: Analysed, prepared: Prepared, text: str | None = None
    ) -> OpenTable:
        """Return a stream table that is compiled, its definition stored as ``text``; it is not kept yet."""
        definition = analysed.definition
        workspace = self._workspaces.of(definition.settings)
        state_tables = workspace.catalog.results.state_tables(name, target.path, definition.generation)
        text = definition.model_dump_json() if text is None else text
        columns = _columns_read(analysed, prepared)
        return OpenTable(name, target.path, target, state_tables, analysed, prepared, columns, text, workspace)

    def find(self, name: str, *, copies: bool = False) -> FoundTable:
        """Look up a stream table in the catalog.

        Raises:
            UnknownTableError: There is none of this name; or only a copy of one, unless ``copies`` will do.
        """
        sync(self._catalog.spark)
        location = self._catalog.location(name)
        marks = self._catalog.results.marks(location) if location else None
        if location is None or marks is None:
            self.forget(name)
            is_there = location is not None or self._catalog.is_there(name)
            what = "is a table or view, but not a stream table" if is_there else "does not exist"
            names = ", ".join(found for found, _ in self.list_all()) or "none"
            raise UnknownTableError("UNKNOWN_TABLE", f"'{name}' {what}.", hint=f"Stream tables here: {names}.")
        if marks.is_copy and not copies:
            text = f"'{name}' is a copy of a stream table, but itself an ordinary table."
            hint = f"adopt({name!r}) makes it a stream table."
            raise UnknownTableError("COPY_OF_STREAM_TABLE", text, hint=hint)
        return FoundTable(name, location, marks.definition, marks.is_copy)

    def find_wreck(self, name: str) -> str | None:
        """Return the id of a stream table whose log can no longer be read, empty if that is not known; None if it is none."""
        known = self._open.get(name)
        return self._catalog.results.wreck(
            name, self._catalog.location(name), None if known is None else known.location
        )

    def list_all(self) -> Iterator[tuple[str, Definition]]:
        """Return the stream tables of the catalog; one whose log or definition cannot be read is left out, with a warning."""
        for found in self._find_all():
            yield found.name, found.definition

    def _find_all(self) -> Iterator[FoundTable]:
        sync(self._catalog.spark)
        left_out: dict[str, str] = {}
        for name, location, marks in self._catalog.definitions():
            if isinstance(marks, Exception):
                left_out[name] = str(marks)
                continue
            found = FoundTable(name, location, marks.definition, marks.is_copy)
            if found.is_copy:
                continue
            try:
                found.definition  # noqa: B018 (one that cannot be read is left out)
            except StateError as error:
                left_out[name] = str(error)
                continue
            yield found
        self._warn_of(left_out)

    def _warn_of(self, left_out: Mapping[str, str]) -> None:
        """Say once of tables that are not listed why, and again when that changes: a loop lists them every few seconds.

        A storage that refuses does so for many tables for one reason.
        """
        known, self._left_out = self._left_out, left_out
        news: dict[str, list[str]] = {}
        for name, why in left_out.items():
            if known.get(name) != why:
                news.setdefault(why, []).append(name)
        for why, (first, *others) in news.items():
            if others:
                _LOG.warning("'%s' and %d more are not listed: %s", first, len(others), why)
            else:
                _LOG.warning("'%s' is not listed: %s", first, why)

    def _compile(self, found: FoundTable) -> OpenTable:
        workspace = self._workspaces.of(found.definition.settings)
        with workspace.active():
            analysed = workspace.compiler.read(found.name, found.text)
            target = workspace.catalog.results.target(found.name, found.location)
            prepared = workspace.compiler.prepare(analysed, _left_out(target))
            opened = self.open(found.name, target, analysed, prepared, found.text)
            stored = workspace.catalog.results.source(found.name, found.location)
            has_others = [*stored.columns(stored.head())] != [*prepared.names]
            return replace(opened, other_columns=tuple(prepared.names) if has_others else None)

    def _is_current(self, known: OpenTable, found: FoundTable) -> bool:
        """Return whether what is kept still holds: the same table and definition, and no view or function redefined."""
        return (
            found.location == known.location
            and found.text == known.text
            and known.columns == _columns_read(known.analysed, known.prepared)
            and known.workspace is self._workspaces.of(known.definition.settings)
            and known.workspace.compiler.has_same_views(known.analysed)
        )


def _left_out(target: TargetTable) -> tuple[str, ...]:
    """Name the state tables that proved too big; a record that cannot be read is the refresh's matter."""
    try:
        record = read_record(target.name, target.state())
    except StateError:
        return ()
    return record.without if record is not None else ()


def _columns_read(analysed: Analysed, prepared: Prepared) -> Mapping[str, Mapping[str, ColumnFact]]:
    """Return the columns a query reads as they are now; other ones mean that it must be analysed again.

    One with a star, which Spark expands, may read any that comes.
    """
    has_star = "*" in (analysed.definition.query or "")
    found = {}
    for name, source in prepared.sources.items():
        columns = source.columns(source.head())
        found[name] = columns if has_star else {c: columns[c] for c in prepared.used.get(name, ()) if c in columns}
    return found
