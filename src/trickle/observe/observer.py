"""Tells of stream tables, with nothing but their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from trickle.errors import StateError, TrickleError, UnknownTableError
from trickle.model.graph import Graph
from trickle.model.lineage import Lineage, LineageTable, Reading
from trickle.model.names import is_state_table, split_name
from trickle.model.observed import PastRefresh, TableStatus
from trickle.observe.lag import measure_lags
from trickle.observe.places import Places, find_source, place_of
from trickle.observe.status import ObservedTables, find_schedules
from trickle.observe.stream_tables import Seen, parse_moment, parse_record, read_stream_table
from trickle.tables.formats import open_log

if TYPE_CHECKING:
    from trickle.model.definition import Definition
    from trickle.tables.logs import CommitFacts, OpenLog, TableLog


class Observer:
    """Stream tables as they are at the first look, until ``look_again``.

    Args:
        places: The tables that there are.
        open_log: What opens the log at a location.
        clock: What tells the time.
    """

    def __init__(
        self,
        places: Places,
        open_log: OpenLog = open_log,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Read nothing yet."""
        self._places = places
        self._open_log = open_log
        self._clock = clock
        self._logs: dict[str, TableLog] = {}
        self._seen: dict[str, Seen] | None = None
        self._found: dict[tuple[str, str, str], str | None] = {}
        self._names: dict[str, str] = {}

    def look_again(self) -> None:
        """Let the next question look at the tables anew; what is known of their logs is kept."""
        self._seen = None
        self._found = {}
        self._names = {}

    # -- what there is

    def tables(self) -> Mapping[str, Seen]:
        """Return the stream tables by name; those that cannot be read have a problem."""
        if self._seen is None:
            found = (read_stream_table(name, self._log(location)) for name, location in self._places.tables())
            self._seen = {seen.name: seen for seen in found if seen is not None}
        return self._seen

    def find(self, name: str) -> Seen:
        """Return a stream table by its name.

        Raises:
            UnknownTableError: ``UNKNOWN_TABLE``.
        """
        full_name = self._places.qualify(name)
        location = self._places.location(full_name)
        seen = None if location is None else read_stream_table(full_name, self._log(location))
        if seen is not None:
            return seen
        what = "does not exist" if location is None else "is a table, but not a stream table"
        names = [*self.tables()]
        last = {split_name(known)[-1]: known for known in names}  # schemas are alike without meaning anything
        near = [last[part] for part in get_close_matches(split_name(full_name)[-1], last, 1)]
        hint = f"Did you mean {near[0]}? " if near and near[0] != full_name else ""
        hint += f"Stream tables here: {', '.join(names) or 'none'}."
        raise UnknownTableError("UNKNOWN_TABLE", f"'{full_name}' {what}.", hint=hint)

    # -- what it is like

    def status(self, name: str | None = None) -> tuple[TableStatus, ...]:
        """Tell how each stream table is, or how one is, in order of their names."""
        asked = [*self.tables()] if name is None else [self.find(name).name]
        tables = self.tables()
        lags = {
            table: measure_lags(seen.record, self._source_logs(seen))
            for table, seen in tables.items()
            if seen.record is not None
        }
        graph = Graph({name: tuple(dict.fromkeys(self._reads(seen).values())) for name, seen in tables.items()})
        situation = ObservedTables(tables, lags, graph, find_schedules(tables, graph), self._clock())
        return tuple(situation.status(table) for table in sorted(asked))

    def history(self, name: str, limit: int | None = 20) -> tuple[PastRefresh, ...]:
        """Return the refreshes of a stream table, the newest first, as far as its log reaches back."""
        seen = self.find(name)
        if seen.head is None and seen.problem is not None:
            raise seen.problem
        found: list[PastRefresh] = []
        for commit in self._commits(seen):
            if limit is not None and len(found) >= limit:
                break
            if commit.record is not None:
                found.append(_past(seen.name, commit, commit.record))
        return tuple(found)

    def lineage(self, name: str | None = None) -> Lineage:
        """Return who reads whom; of one table, what it reads and who reads it."""
        asked = None if name is None else self.find(name).name
        kinds = {table: LineageTable(table, "stream") for table in self.tables()}
        readings = []
        for table, seen in self.tables().items():
            columns, logs = (seen.record.columns if seen.record else None) or {}, self._source_logs(seen)
            for source, node in self._reads(seen).items():
                is_there = _is_there(logs[source])
                kinds.setdefault(node, LineageTable(node, "base" if is_there else "missing"))
                readings.append(Reading(table, node, columns.get(source)))
        whole = Lineage(tuple(kinds.values()), tuple(readings))
        return whole if asked is None else whole.around(asked)

    # -- reading

    def _log(self, location: str) -> TableLog:
        place = place_of(location)
        if place not in self._logs:
            self._logs[place] = self._open_log(location)
        return self._logs[place]

    def _commits(self, seen: Seen) -> Iterator[CommitFacts]:
        for version in range(seen.head or 0, -1, -1):
            commit = seen.log.commit(version)
            if commit is None:
                return
            yield commit

    def _source_logs(self, seen: Seen) -> Mapping[str, TableLog | None]:
        """Return the logs of a table's sources by their names, None for those that are not there."""
        found = {source: self._source_place(source, seen.definition) for source in _sources(seen)}
        return {source: None if place is None else self._log(place) for source, place in found.items()}

    def _source_place(self, source: str, definition: Definition | None) -> str | None:
        if definition is None:
            return None
        key = (source, definition.catalog, definition.schema_name)
        if key not in self._found:
            self._found[key] = find_source(self._places, source, definition)
        return self._found[key]

    def _reads(self, seen: Seen) -> dict[str, str]:
        """Return, by the name that a definition uses for a source, the name of the table that lies there."""
        if not self._names:
            self._names = {place_of(other.log.location): name for name, other in self.tables().items()}
        reads = {}
        for source in _sources(seen):
            place = self._source_place(source, seen.definition)
            lies_there = self._names.get(place_of(place)) if place is not None else None
            reads[source] = lies_there or _shown(source, seen)
        return reads


def _sources(seen: Seen) -> tuple[str, ...]:
    return tuple(name for name in (seen.record.frontier if seen.record else ()) if not is_state_table(name))


def _shown(source: str, seen: Seen) -> str:
    """Name a base table with its schema, or by its path."""
    if seen.definition is None or "." in source:
        return source
    return f"{seen.definition.schema_name}.{source}"


def _is_there(log: TableLog | None) -> bool:
    try:
        return log is not None and log.head() >= 0
    except TrickleError as error:
        return error.code != "SOURCE_MISSING"


def _past(name: str, commit: CommitFacts, text: str) -> PastRefresh:
    try:
        record = parse_record(name, text)
    except StateError as error:  # of another version: the others can be told all the same
        inserted, deleted = commit.rows_inserted, commit.rows_deleted
        return PastRefresh(name, commit.version, None, commit.time, "unknown", error.code, inserted, deleted, None)
    took = record.took
    return PastRefresh(
        table=name,
        version=commit.version,
        started=parse_moment(record.started),
        committed=commit.time,
        mode=record.mode,
        reason=record.reason,
        rows_inserted=took.inserted if took else commit.rows_inserted,
        rows_deleted=took.deleted if took else commit.rows_deleted,
        seconds=took.seconds if took else None,
        steps=dict(took.steps) if took else {},
        frontier={n: s.version for n, s in record.frontier.items() if not is_state_table(n)},
        trigger=took.trigger if took else None,
    )
