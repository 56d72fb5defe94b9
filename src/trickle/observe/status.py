"""How stream tables are: what they lack of their sources, when they are due, and in what health."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.errors import TrickleError
from trickle.model.observed import Health, SourceLag, TableStatus
from trickle.model.schedule import Cron, Downstream, Every, OnCommit, Schedule, read_schedule
from trickle.model.verification import VERIFIED_PROPERTY, read_verification
from trickle.observe.lag import GONE
from trickle.observe.stream_tables import parse_moment
from trickle.schedule.due import Scheduled, due_at, tightest

if TYPE_CHECKING:
    from trickle.model.graph import Graph
    from trickle.observe.stream_tables import Seen

GRACE_SECONDS: Final = 30.0
"""How much later than its schedule says a table may have its sources' rows before it is called late."""


@dataclass(frozen=True, slots=True)
class ObservedTables:
    """All stream tables at one moment.

    Attributes:
        tables: The stream tables by name.
        lags: By stream table, how far it is behind each source.
        graph: Who reads whom.
        schedules: The schedule that each table follows: its own, or that of its tightest reader.
    """

    tables: Mapping[str, Seen]
    lags: Mapping[str, tuple[SourceLag, ...]]
    graph: Graph
    schedules: Mapping[str, Schedule | None]
    now: datetime

    def status(self, name: str) -> TableStatus:
        """Tell how a table is."""
        seen, lags = self.tables[name], self.lags.get(name, ())
        last, oldest = _last(seen), self._oldest(name)
        problem = _problem(seen, lags)
        is_behind = self._is_behind(name)
        schedule = self.schedules[name]
        commit, record = seen.commit, seen.record
        took = record.took if record else None
        return TableStatus(
            table=name,
            health=self._health(name, schedule, is_broken=problem is not None),
            mode=seen.definition.mode if seen.definition else None,
            schedule=seen.definition.schedule if seen.definition else None,
            version=seen.head,
            last_refresh=last,
            last_mode=record.mode if record else None,
            last_reason=record.reason if record else None,
            last_inserted=took.inserted if took else commit.rows_inserted if commit else None,
            last_deleted=took.deleted if took else commit.rows_deleted if commit else None,
            last_seconds=took.seconds if took else None,
            age_seconds=_seconds(self.now, last or (commit.time if commit else None)),
            lag_seconds=_seconds(self.now, oldest) if is_behind else (0.0 if problem is None and record else None),
            sources=lags,
            next_due=self._next_due(seen, schedule, is_behind=is_behind),
            suspended=seen.waiting,
            problem=problem or _written_by_others(seen) or _not_its_query(seen),
        )

    def _health(self, name: str, schedule: Schedule | None, *, is_broken: bool) -> Health:
        seen = self.tables[name]
        if is_broken:
            return "broken"
        if seen.waiting is not None:
            return "failed" if seen.waiting.cause == "failures" else "suspended"
        if not self._is_behind(name):
            return "ok"
        oldest = self._oldest(name)
        deadline = None if oldest is None else _deadline(schedule, oldest, _last(seen))
        if deadline is None:
            return "behind"
        took = seen.record.took.seconds if seen.record and seen.record.took else 0.0
        return "late" if self.now > deadline + timedelta(seconds=GRACE_SECONDS + took) else "behind"

    def _is_behind(self, name: str) -> bool:
        """Say whether a table, or one that it reads, lacks commits of its sources, or holds rows of others."""
        reached = self.graph.upstream([name]) if name in self.graph.reads else frozenset({name})
        return any(lag.commits for other in reached for lag in self.lags.get(other, ())) or self._lacks_all(name)

    def _lacks_all(self, name: str) -> bool:
        seen = self.tables[name]
        return seen.record is None or bool(seen.external)

    def _oldest(self, name: str) -> datetime | None:
        """Return when the oldest commit was made that a table, or one that it reads, lacks."""
        reached = self.graph.upstream([name]) if name in self.graph.reads else frozenset({name})
        times = (lag.oldest for other in reached for lag in self.lags.get(other, ()))
        return min((time for time in times if time is not None), default=None)

    def _next_due(self, seen: Seen, schedule: Schedule | None, *, is_behind: bool) -> datetime | None:
        last = _last(seen)
        table = Scheduled(schedule, last, is_suspended=seen.waiting is not None, is_behind=is_behind)
        moment = due_at(table, self.now)
        if moment is None or is_behind or moment > self.now or last is None:
            return moment
        # A refresh that finds nothing to do writes nothing: the times between are not in the log.
        match schedule:
            case Every(seconds=seconds):
                return last + math.ceil((self.now - last).total_seconds() / seconds) * timedelta(seconds=seconds)
            case Cron():
                return schedule.after(self.now)
            case _:
                return moment


def find_schedules(tables: Mapping[str, Seen], graph: Graph) -> dict[str, Schedule | None]:
    """Return the schedule that each table follows: its own, or that of its tightest reader."""
    scheduled = {name: Scheduled(_schedule(seen)) for name, seen in tables.items()}
    try:
        graph.check()
    except TrickleError:  # in a circle nobody is the tightest
        return {name: table.schedule for name, table in scheduled.items()}
    return {name: tightest(name, scheduled, graph) for name in tables}


def _schedule(seen: Seen) -> Schedule | None:
    try:
        return read_schedule(seen.definition.schedule) if seen.definition else None
    except TrickleError:
        return None


def _deadline(schedule: Schedule | None, oldest: datetime, last: datetime | None) -> datetime | None:
    """Return when a commit should be in a table at the latest, None if no schedule says."""
    match schedule:
        case Every(seconds=seconds):
            return oldest + timedelta(seconds=seconds)
        case Cron():
            return schedule.after(oldest)
        case OnCommit(at_most_every=seconds):
            return oldest if last is None else max(oldest, last + timedelta(seconds=seconds))
        case Downstream() | None:
            return None


def _last(seen: Seen) -> datetime | None:
    return parse_moment(seen.record.started) if seen.record else None


def _problem(seen: Seen, lags: tuple[SourceLag, ...]) -> str | None:
    if seen.problem is not None:
        return str(seen.problem)
    unread = [f"source '{lag.source}' {lag.note}" if lag.note == GONE else lag.note for lag in lags if _is_unread(lag)]
    return "; ".join(text for text in unread if text) or None


def _is_unread(lag: SourceLag) -> bool:
    return lag.newest is None


def _written_by_others(seen: Seen) -> str | None:
    if not seen.external:
        return None
    return f"others wrote to it ({', '.join(dict.fromkeys(seen.external))}); its next refresh is a full one"


def _not_its_query(seen: Seen) -> str | None:
    """Say what is known to be wrong with its rows: a change that was passed over, or what the last verification found."""
    if seen.record is None:
        return None
    if seen.record.skipped is not None:
        return f"it does not equal its query: {seen.record.skipped}"
    found = read_verification(seen.log.properties().get(VERIFIED_PROPERTY))
    if found is None or found.ok:
        return None
    last, at = _last(seen), parse_moment(found.at)
    is_repaired = seen.record.mode == "full" and last is not None and at is not None and last > at
    return None if is_repaired else f"it is not what its query returns: {found}"


def _seconds(now: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else round(max((now - moment).total_seconds(), 0.0), 3)
