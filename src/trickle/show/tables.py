"""Stream tables, how they are, and their past refreshes as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trickle.show.html import Html, badge, card, code, count, counted, duration, facts, grid, moment
from trickle.show.reports import time_bar

if TYPE_CHECKING:
    from trickle.handle import StreamTable
    from trickle.model.observed import PastRefresh, TableStatus


def stream_table(table: StreamTable, status: TableStatus | None, why_not: str = "") -> Html:
    """Return a stream table: its query, how it is refreshed, and how it is; ``why_not`` says why that is not known."""
    shown = [("mode", table.mode), ("schedule", table.schedule or "by hand"), ("comment", table.options.comment)]
    known = [("status", why_not)] if status is None else _how(status)
    return card(f"Stream table {table.name}", facts([*known, *shown]), code(table.query or "(a DataFrame)"))


def _how(status: TableStatus) -> list[tuple[str, object]]:
    return [
        ("health", badge(status.health)),
        ("last refresh", _last(status)),
        ("lag", _lag(status)),
        ("note", _note(status)),
    ]


def _last(status: TableStatus) -> str:
    if status.last_mode is None:
        return "never"
    reason = f": {status.last_reason}" if status.last_reason else ""
    return f"{duration(status.age_seconds)} ago, {status.last_mode}{reason}"


def _lag(status: TableStatus) -> str:
    behind = [f"{lag.source} +{lag.commits}" for lag in status.sources if lag.commits]
    shown = [duration(status.lag_seconds) if status.lag_seconds else "", ", ".join(behind)]
    return "; ".join(filter(None, shown)) or ("none" if status.health == "ok" else "")


def _note(status: TableStatus) -> str:
    if status.suspended is not None:
        said = " ".join(filter(None, [status.suspended.code, status.suspended.message]))
        return f"suspended since {moment(status.suspended.since)} by {status.suspended.cause}: {said}".rstrip(": ")
    notes = [f"source {lag.source} {lag.note}" for lag in status.sources if lag.note]
    return "; ".join(filter(None, [status.problem, *notes]))


def table_list(tables: Sequence[StreamTable]) -> Html:
    """Return a list of stream tables."""
    rows = [
        (table.name, table.mode, table.schedule or "by hand", code(table.query or "(a DataFrame)")) for table in tables
    ]
    return card(counted(len(rows), "stream table"), grid(("table", "mode", "schedule", "query"), rows))


def status_list(statuses: Sequence[TableStatus]) -> Html:
    """Return how stream tables are."""
    rows = [
        (s.table, badge(s.health), _last(s), _lag(s), s.schedule or "by hand", moment(s.next_due), s.mode, _note(s))
        for s in statuses
    ]
    headings = ("table", "health", "last refresh", "lag", "schedule", "next due", "mode", "note")
    return card(counted(len(rows), "stream table"), grid(headings, rows))


def history_list(refreshes: Sequence[PastRefresh]) -> Html:
    """Return past refreshes, with where the time of each went."""
    rows = [
        (
            count(past.version),
            moment(past.started),
            badge(past.mode),
            count(past.rows_inserted),
            count(past.rows_deleted),
            duration(past.seconds),
            past.trigger or "",
            past.reason or "",
            None if past.seconds is None else time_bar(past.steps, past.seconds),
        )
        for past in refreshes
    ]
    headings = (
        "version",
        "started",
        "mode",
        "inserted",
        "deleted",
        "seconds",
        "trigger",
        "reason",
        "where the time went",
    )
    return card(
        counted(len(rows), "refresh", "refreshes"),
        grid(headings, rows, right=("version", "inserted", "deleted", "seconds")),
    )
