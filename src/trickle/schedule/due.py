"""Which stream tables are due, and when the next one will be. Pure: time and what the sources did are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never

from trickle.model.schedule import Cron, Downstream, Every, OnCommit, Schedule, next_due

if TYPE_CHECKING:
    from trickle.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What decides when a stream table is due.

    Attributes:
        schedule: When it is to be refreshed; None is by hand only.
        last: When it was last brought up to its sources; None if never.
        not_before: When a failed refresh is tried again.
        is_suspended: True if it waits for a person.
        is_behind: True if a source has committed since its last refresh.
    """

    schedule: Schedule | None
    last: datetime | None = None
    not_before: datetime | None = None
    is_suspended: bool = False
    is_behind: bool = False


def due_at(table: Scheduled, now: datetime) -> datetime | None:
    """Return when a table is due by its own schedule; None if nothing but a commit, a reader or a person will tell."""
    if table.is_suspended or table.schedule is None:
        return None
    match table.schedule:
        case Every() | Cron():
            moment = next_due(table.schedule, table.last, now)
        case OnCommit(at_most_every=seconds):
            if not table.is_behind and table.last is not None:
                return None
            moment = now if table.last is None else max(now, table.last + timedelta(seconds=seconds))
        case Downstream():
            return None
        case _:
            assert_never(table.schedule)
    return moment if table.not_before is None else max(moment, table.not_before)


def find_due(tables: Mapping[str, Scheduled], graph: Graph, now: datetime) -> frozenset[str]:
    """Return the tables to refresh now: those that are due, and what they read that follows its readers."""
    own = [name for name, table in tables.items() if (at := due_at(table, now)) is not None and at <= now]
    return frozenset(own) | _needed(own, tables, graph)


def next_moment(tables: Mapping[str, Scheduled], now: datetime) -> datetime | None:
    """Return when the next table is due by the clock, None if none is."""
    return min((at for table in tables.values() if (at := due_at(table, now)) is not None), default=None)


def _needed(names: Collection[str], tables: Mapping[str, Scheduled], graph: Graph) -> frozenset[str]:
    """Follow sources upward as long as they are refreshed for their readers."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        for source in graph.reads.get(queue.pop(), ()):
            table = tables.get(source)
            if table is None or source in found or table.is_suspended or not isinstance(table.schedule, Downstream):
                continue
            found.add(source)
            queue.append(source)
    return frozenset(found)


def tightest(name: str, tables: Mapping[str, Scheduled], graph: Graph) -> Schedule | None:
    """Return the schedule that a table follows in effect: its own, or the tightest of those that read it.

    >>> from trickle.model.graph import Graph
    >>> graph = Graph({"a": ("t",), "b": ("a",)})
    >>> str(tightest("a", {"a": Scheduled(Downstream()), "b": Scheduled(Every(30))}, graph))
    '30s'
    """
    own = tables[name].schedule
    if not isinstance(own, Downstream):
        return own
    readers = [tightest(reader, tables, graph) for reader in graph.readers(name) if reader in tables]
    return min((schedule for schedule in readers if schedule is not None), key=_tightness, default=None)


def _tightness(schedule: Schedule) -> float:
    match schedule:
        case Every(seconds=seconds):
            return seconds
        case OnCommit(at_most_every=seconds):
            return seconds
        case Cron():
            first = schedule.after(datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
            return (schedule.after(first) - first).total_seconds()
        case Downstream():
            return float("inf")
        case _:
            assert_never(schedule)
