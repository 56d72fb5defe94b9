"""What the engine needs of a table format as a whole: it makes the tables of ``contract.py`` for one session.

It also says which tables are stream tables, and keeps those in shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trickle.model.table_options import NO_OPTIONS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from trickle.model.keys import TableKeys
    from trickle.model.table_options import TableOptions
    from trickle.tables.contract import SourceTable, StateStore, TargetTable
    from trickle.tables.logs import TableLog


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """The table that a leaf of a plan reads.

    Attributes:
        location: Its place.
        name: What it is called if the catalog has no name for it.
        is_pinned: True if the query reads one version of it, which never changes.
    """

    location: str
    name: str
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that make a table a stream table.

    Attributes:
        definition: The definition as it is stored.
        is_copy: The definition was made for another table, of which this one is a clone or has the properties.
        suspended: Why it is not refreshed, as it is stored; None if it is active.
        verified: What the last verification by the loop found, as it is stored.
    """

    definition: str
    is_copy: bool
    suspended: str | None = None
    verified: str | None = None


class Upkeep(Protocol):
    """What keeps a table in shape that is committed to for months."""

    def committed_at(self, version: int) -> datetime | None:
        """Return when a version was committed, None if the log no longer tells, or not yet."""
        ...

    def kept_for(self) -> timedelta:
        """Return how long the table keeps what older versions need: the shorter of its log's and its files' time."""
        ...

    def log_kept_for(self) -> timedelta:
        """Return how long the table keeps its log."""
        ...

    def keep_log_for(self, time: timedelta) -> None:
        """Let the table keep its log for at least so long from now on."""
        ...

    def keep_for(self, time: timedelta) -> None:
        """Let the table keep what older versions need for at least so long from now on."""
        ...

    def has_wasteful_files(self) -> bool:
        """Return whether it has so many small files, or files with so many deleted rows, that reading it takes longer."""
        ...

    def compact(self) -> None:
        """Write these files anew; no row changes."""
        ...

    def checkpoint(self) -> bool:
        """Sum up its log, if many commits came since that was done last; return whether it was."""
        ...

    def vacuum(self, keep: timedelta) -> None:
        """Delete the files that only versions older than this need."""
        ...


class Appends(Protocol):
    """A plain table that rows are appended to, and that loses its oldest ones."""

    def append(self, rows: pa.Table) -> None:
        """Add rows, in one commit."""
        ...

    def trim(self, column: str, before: datetime) -> None:
        """Delete the rows with a time before a moment."""
        ...


class TableFormat(Protocol):
    """A way of storing tables with versions: makes the sources, targets and state tables of one session."""

    def locate_leaf(self, leaf: Any) -> LocatedTable | None:
        """Return the place of the table that a leaf of an analysed plan reads, None if it is not of this format."""
        ...

    def location_of(self, name: str) -> str:
        """Return the place of a table by a name that Spark resolves.

        Raises:
            DefinitionError: ``UNKNOWN_SOURCE``, there is none; ``UNSUPPORTED_SOURCE``, it is of another format.
        """
        ...

    def source(self, name: str, location: str) -> SourceTable:
        """Return the table at a place to be read; touches nothing yet."""
        ...

    def target(self, name: str, location: str) -> TargetTable:
        """Return the table at a place to be written; touches nothing yet."""
        ...

    def state_tables(self, name: str, location: str, generation: int = 0) -> StateStore:
        """Return the state tables of the stream table at a place, those of one of its queries."""
        ...

    def create(
        self,
        name: str,
        like: DataFrame,
        fill: Callable[[TargetTable], object],
        properties: Mapping[str, str],
        bind: str,
        options: TableOptions = NO_OPTIONS,
    ) -> TargetTable:
        """Make an empty table with the columns of ``like`` and these properties, then let ``fill`` write to it.

        The property ``bind`` is set to the table's id. If anything fails, nothing is left behind.

        Raises:
            DefinitionError: ``NAME_TAKEN``, ``BAD_NAME`` or ``RESERVED_COLUMN``.
        """
        ...

    def marks(self, location: str) -> Marks | None:
        """Say what makes the table at a place a stream table; None if it is an ordinary one, or of another format."""
        ...

    def wreck(self, name: str, location: str | None, ours: str | None) -> str | None:
        """Return the id of a stream table whose log can no longer be read, empty if not even that is known.

        None if the log can be read, or nothing tells that the table was a stream table. The catalog has it at ``location``, or
        knows it no more; at the place ``ours`` it was one.
        """
        ...

    def delete_rest(self, name: str, location: str | None) -> None:
        """Delete what is left of a dropped stream table that the catalog had at a place, if that is its folder for the name."""
        ...

    def table_log(self, location: str) -> TableLog:
        """Return the log of the table at a place, for observers; reads nothing yet."""
        ...

    def bind(self, name: str, location: str) -> None:
        """Make a table the owner of the definition that it has."""
        ...

    def admit_columns(self, name: str, location: str, like: DataFrame) -> None:
        """Make a table able to have the columns of ``like``, whatever their names; it has them when they are written.

        Raises:
            DefinitionError: ``RESERVED_COLUMN``.
        """
        ...

    def set_properties(self, name: str, properties: Mapping[str, str | None]) -> None:
        """Set properties of a table, or take them away where the value is None; ``comment`` is its comment."""
        ...

    def set_column_comments(self, name: str, comments: Mapping[str, str]) -> None:
        """Set the comments of columns of a table, those that are there; an empty one takes the comment away."""
        ...

    def settle(self, location: str | None = None) -> None:
        """Wait for what is still written beside the commits to the table at a place: it is to be dropped.

        Without a place for all: the session is to be stopped.
        """
        ...

    def upkeep(self, location: str) -> Upkeep:
        """Return what keeps the table at a place in shape."""
        ...

    def appends(self, name: str, schema: pa.Schema) -> Appends:
        """Open a plain table to append to, made with these columns if there is none.

        Raises:
            DefinitionError: ``BAD_HISTORY``, there is a table or view with other columns.
        """
        ...

    def store_keys(self, table: str, keys: TableKeys) -> None:
        """Store the declared keys of a table with it."""
        ...
