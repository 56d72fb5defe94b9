"""Answers as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from trickle.errors import TrickleError
from trickle.show.html import long_duration

if TYPE_CHECKING:
    from trickle.cli.doctor import Finding
    from trickle.model.observed import PastRefresh, TableStatus
    from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport
    from trickle.model.spec import ApplyPlan
    from trickle.observe.stream_tables import Seen

_COLOURS: Final = {
    "ok": "green",
    "behind": "yellow",
    "late": "red",
    "suspended": "magenta",
    "failed": "red",
    "broken": "bold red",
}

_ACTION_COLOURS: Final = {"create": "green", "evolve": "yellow", "query": "yellow", "options": "cyan", "drop": "red"}


def duration(seconds: float | None) -> str:
    """Write a duration in its two biggest units.

    >>> duration(0.4), duration(75), duration(90_061), duration(None)
    ('0.4s', '1m15s', '1d1h', '')
    """
    if seconds is None:
        return ""
    return f"{seconds:.1f}s" if seconds < 10 else long_duration(seconds)


def moment(time: datetime | None) -> str:
    """Write a moment in UTC, to the second."""
    return "" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _table(*headings: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return table


def status_table(statuses: Iterable[TableStatus], now: datetime) -> Table:
    """Show how stream tables are."""
    numbers = ("ROWS +", "ROWS -", "SECONDS")
    headings = ("TABLE", "HEALTH", "LAST REFRESH", *numbers, "LAG", "SCHEDULE", "NEXT DUE", "MODE", "NOTE")
    table = _table(*headings, right=numbers)
    for status in statuses:
        last = f"{duration(status.age_seconds)} ago, {status.last_mode}" if status.last_mode else "never"
        table.add_row(
            status.table,
            Text(status.health, _COLOURS[status.health]),
            last,
            _count(status.last_inserted),
            _count(status.last_deleted),
            "" if status.last_seconds is None else f"{status.last_seconds:.2f}",
            _lag(status),
            status.schedule or "by hand",
            _due(status.next_due, now),
            status.mode or "",
            _note(status),
        )
    return table


def _lag(status: TableStatus) -> str:
    if not status.lag_seconds and status.health == "ok":
        return "none"
    commits = sum(lag.commits for lag in status.sources)
    words = [f"{commits} commit{'' if commits == 1 else 's'}" if commits else "", duration(status.lag_seconds)]
    return ", ".join(word for word in words if word)


def _due(time: datetime | None, now: datetime) -> str:
    if time is None:
        return ""
    seconds = (time - now).total_seconds()
    return f"in {duration(seconds)}" if seconds > 0 else f"overdue {duration(-seconds)}"


def _note(status: TableStatus) -> str:
    if status.suspended is not None:
        why = status.suspended.message or f"by {status.suspended.cause}"
        code = f"[{status.suspended.code}] " if status.suspended.code else ""
        return f"suspended {moment(status.suspended.since)}: {code}{why}"
    if status.problem is not None:
        return status.problem
    notes = [f"source '{lag.source}' {lag.note}" for lag in status.sources if lag.note]
    return "; ".join(notes) or (status.last_reason or "").partition(":")[0]


def history_table(refreshes: Iterable[PastRefresh]) -> Table:
    """Show the refreshes of a table."""
    numbers = ("VERSION", "ROWS +", "ROWS -", "SECONDS")
    table = _table(
        "VERSION", "STARTED (UTC)", "MODE", "ROWS +", "ROWS -", "SECONDS", "TRIGGER", "SOURCES", "REASON", right=numbers
    )
    for past in refreshes:
        table.add_row(
            str(past.version),
            moment(past.started),
            past.mode,
            _count(past.rows_inserted),
            _count(past.rows_deleted),
            "" if past.seconds is None else f"{past.seconds:.2f}",
            past.trigger or "",
            _frontier(past.frontier),
            past.reason or "",
        )
    return table


def past_line(past: PastRefresh) -> str:
    """Tell a refresh on one line."""
    took = "" if past.seconds is None else f" in {past.seconds:.2f} s"
    rows = f"+{_count(past.rows_inserted) or '?'} -{_count(past.rows_deleted) or '?'}"
    reason = f" ({past.reason})" if past.reason else ""
    return f"{moment(past.committed or past.started)}  {past.table}  {past.mode}  {rows}{took}{reason}"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _frontier(frontier: Mapping[str, int]) -> str:
    return ", ".join(f"{name}@{version}" for name, version in frontier.items())


def tables_table(tables: Iterable[Seen]) -> Table:
    """List stream tables."""
    table = _table("TABLE", "MODE", "SCHEDULE", "VERSION", "QUERY", right=("VERSION",))
    for seen in tables:
        definition = seen.definition
        version = "" if seen.head is None else str(seen.head)
        if definition is None:
            table.add_row(seen.name, "", "", version, Text(str(seen.problem or ""), "red"))
            continue
        query = " ".join((definition.query or "(a DataFrame)").split())
        table.add_row(seen.name, definition.mode, definition.schedule or "by hand", version, _short(query))
    return table


def _short(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def run_table(report: RunReport) -> Table:
    """Show what a run did."""
    table = _table("TABLE", "MODE", "ROWS +", "ROWS -", "SECONDS", "REASON", right=("ROWS +", "ROWS -", "SECONDS"))
    for name, done in report.tables.items():
        table.add_row(name, *_refreshed(done))
    for name, error in report.errors.items():
        table.add_row(name, Text("failed", "red"), "", "", "", str(error))
    for name, suspension in report.skipped.items():
        table.add_row(name, Text("skipped", "magenta"), "", "", "", str(suspension))
    return table


def _refreshed(report: RefreshReport) -> tuple[str, ...]:
    inserted, deleted = _count(report.rows_inserted), _count(report.rows_deleted)
    notes = "; ".join(str(note) for note in (report.reason, *report.warnings) if note is not None)
    return report.mode, inserted, deleted, f"{report.seconds:.2f}", notes


def plan_table(plan: ApplyPlan) -> Table:
    """Show what applying does."""
    table = _table("ACTION", "TABLE", "WHY", "SECONDS", right=("SECONDS",))
    for step in plan.steps:
        about = "" if plan.is_applied else "about "
        took = "" if step.seconds is None else f"{about}{step.seconds:.1f}"
        table.add_row(Text(step.action, _ACTION_COLOURS.get(step.action, "")), step.name, step.why, took)
    return table


def validation_table(found: Mapping[str, Validation | TrickleError | None]) -> Table:
    """Show whether queries can be maintained."""
    table = _table("TABLE", "REFRESHES", "NOTE")
    for name, one in found.items():
        if isinstance(one, TrickleError):
            table.add_row(name, Text("wrong", "red"), str(one))
        elif one is None:
            table.add_row(name, "unknown", "what it reads is not there yet")
        else:
            how = Text("differential", "green") if one.differentiable else Text("full", "yellow")
            table.add_row(name, how, "; ".join(map(str, one.obstacles)))
    return table


def doctor_table(found: Iterable[Finding]) -> Table:
    """Show what a doctor found."""
    table = _table("CHECK", "HEALTH", "FOUND", "FIX")
    colours = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "magenta"}
    for one in found:
        table.add_row(one.check, Text(one.health, colours[one.health]), one.found, one.fix)
    return table


def demo_table(lines: Iterable[Mapping[str, Any]]) -> Table:
    """Show what a demo measured."""
    numbers = ("ROWS +", "ROWS -", "SECONDS", "FULL", "ROWS")
    table = _table("TABLE", "MODE", *numbers, "EQUAL", right=numbers)
    for line in lines:
        equal = Text("yes", "green") if line["equal"] else Text("no", "red")
        rows = _count(line["rows_inserted"]), _count(line["rows_deleted"])
        seconds = f"{line['seconds']:.2f}", f"{line['full_seconds']:.2f}"
        table.add_row(line["table"], line["mode"], *rows, *seconds, _count(line["rows"]), equal)
    return table


def verify_table(reports: Iterable[VerifyReport], errors: Mapping[str, Exception]) -> Table:
    """Show what checks found."""
    table = _table("TABLE", "EQUAL", "ROWS", "MISSING", "EXTRA", "NOTE", right=("ROWS", "MISSING", "EXTRA"))
    for report in reports:
        equal = Text("yes", "green") if report.ok else Text("no", "red")
        samples = [
            *(f"missing {row}" for row in report.missing_sample),
            *(f"extra {row}" for row in report.extra_sample),
        ]
        note = "; ".join([*samples, *report.broken_keys])
        table.add_row(report.table, equal, _count(report.rows), _count(report.missing), _count(report.extra), note)
    for name, error in errors.items():
        table.add_row(name, Text("failed", "red"), "", "", "", str(error))
    return table
