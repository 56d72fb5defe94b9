"""What each command does; returns its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trickle.cli.output import console, error_of, print_json, tell
from trickle.errors import TrickleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trickle.api import Trickle
    from trickle.cli.settings import Settings
    from trickle.model.report import RefreshReport, RunReport
    from trickle.model.suspension import Suspension
    from trickle.observe.observer import Observer

OK: Final = 0
FAILED: Final = 1
_NONE: Final = "There are no stream tables here."
ALARMING: Final = frozenset({"late", "failed", "broken"})


@contextmanager
def observing(settings: Settings) -> Iterator[Observer]:
    """Look at the tables: by their logs alone if they are in a folder, else in a session."""
    from trickle.observe.observer import Observer
    from trickle.observe.places import warehouse_places
    from trickle.tables.storage.settings import use_settings

    if not settings.has_own_session:
        use_settings(settings.spark_settings)
        yield Observer(warehouse_places(settings.folder(), settings.schema))
        return
    with _session(settings) as trickle:
        yield trickle._observer()


def _session(settings: Settings) -> AbstractContextManager[Trickle]:
    from trickle.cli.spark import open_trickle

    return open_trickle(settings)


# -- looking


def status(settings: Settings, names: Sequence[str], *, check: bool = False) -> int:
    """Show how stream tables are; with ``check``, fail if one needs somebody."""
    with observing(settings) as observer:
        found = [s for name in names for s in observer.status(name)] if names else list(observer.status())
    if settings.is_json:
        print_json({"tables": found})
    elif not found:
        tell(_NONE)
    else:
        from trickle.cli.shown import status_table

        console().print(status_table(found, datetime.now(UTC)))
    return FAILED if check and any(one.health in ALARMING for one in found) else OK


def history(settings: Settings, name: str, limit: int) -> int:
    """Show the refreshes of a stream table."""
    with observing(settings) as observer:
        found, full_name = observer.history(name, limit), observer.find(name).name
    if settings.is_json:
        print_json({"table": full_name, "refreshes": found})
    else:
        from trickle.cli.shown import history_table

        console().print(history_table(found))
    return OK


def tables(settings: Settings) -> int:
    """List stream tables."""
    with observing(settings) as observer:
        found = list(observer.tables().values())
    if settings.is_json:
        print_json({"tables": [_listed(seen) for seen in found]})
    elif not found:
        tell(_NONE)
    else:
        from trickle.cli.shown import tables_table

        console().print(tables_table(found))
    return OK


def names(settings: Settings, incomplete: str) -> list[str]:
    """Return the names of stream tables that begin in some way, with their schema or without; none if that fails."""
    from trickle.observe.observer import Observer
    from trickle.observe.places import warehouse_places

    try:
        found = [*Observer(warehouse_places(settings.folder(), settings.schema)).tables()]
    except TrickleError:
        return []
    here = f"{settings.schema}."
    short = [name.removeprefix(here) for name in found if name.startswith(here)]
    return [name for name in (*short, *found) if name.startswith(incomplete)]


def _listed(seen: Any) -> dict[str, Any]:
    definition = seen.definition
    return {
        "table": seen.name,
        "mode": definition.mode if definition else None,
        "schedule": definition.schedule if definition else None,
        "query": definition.query if definition else None,
        "version": seen.head,
        "location": seen.log.location,
        "problem": str(seen.problem) if seen.problem else None,
    }


def lineage(settings: Settings, name: str | None, *, mermaid: bool) -> int:
    """Show who reads whom."""
    with observing(settings) as observer:
        found = observer.lineage(name)
    if settings.is_json:
        print_json({"tables": found.tables, "readings": found.readings})
    elif not found.tables:
        tell(_NONE)
    else:
        sys.stdout.write((found.to_mermaid() if mermaid else found.to_text()) + "\n")
    return OK


# -- working


def refresh(
    settings: Settings,
    names: Sequence[str],
    patterns: Sequence[str],
    at: dict[str, int] | None,
    *,
    full: bool,
    workers: int,
) -> int:
    """Bring stream tables, and those that they read, to one cut; streaming tables of the project are filled first."""
    from trickle.cli.spark import waiting
    from trickle.model.events import RefreshStarted

    with _session(settings) as trickle, waiting("Refreshing", trickle.spark) as show:
        asked = [*names, *_selected(trickle, patterns)]
        if settings.project is not None and settings.project.may_stream:
            from trickle.project.work import Work

            Work(trickle, settings.project).fill(show)
        trickle.events.on(RefreshStarted, lambda event: show(f"Refreshing {event.table}"))
        report = trickle.refresh_all(asked or None, at=at, full=full, workers=workers)
    if settings.is_json:
        print_json(run_answer(report))
    else:
        from trickle.cli.shown import run_table

        if report.tables or report.errors or report.skipped:
            console().print(run_table(report))
        else:
            tell(_NONE)
    return OK if report.ok else FAILED


def _selected(trickle: Trickle, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the stream tables that patterns select."""
    if not patterns:
        return ()
    from trickle.project.select import select

    tags = {table.name: [*table.options.tags] for table in trickle.tables()}
    reads: dict[str, list[str]] = {name: [] for name in tags}
    for reading in trickle.lineage().readings:
        reads.setdefault(reading.reader, []).append(reading.source)
    return select(patterns, reads, tags)


def run_answer(report: RunReport) -> dict[str, Any]:
    """Return the report of a run as JSON has it."""
    return {
        "ok": report.ok,
        "seconds": round(report.seconds, 3),
        "cut": dict(report.cut),
        "tables": [_refreshed(done) for done in report.tables.values()],
        "errors": [{"table": name, **error_of(error)} for name, error in report.errors.items()],
        "skipped": [{"table": name, **_suspended(why)} for name, why in report.skipped.items()],
        "off_cut": report.off_cut,
    }


def _suspended(why: Suspension) -> dict[str, Any]:
    return {"since": why.since, "cause": why.cause, "code": why.code, "message": why.message}


def _refreshed(report: RefreshReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "mode": report.mode,
        "reason": report.reason,
        "rows_inserted": report.rows_inserted,
        "rows_deleted": report.rows_deleted,
        "version": report.version,
        "seconds": round(report.seconds, 3),
        "steps": {name: round(seconds, 3) for name, seconds in report.steps.items()},
        "frontier": dict(report.frontier),
        "warnings": report.warnings,
    }


def verify(settings: Settings, names: Sequence[str]) -> int:
    """Compare stream tables with their queries."""
    from trickle.cli.spark import waiting

    reports, errors = [], {}
    with _session(settings) as trickle:
        asked = [trickle.table(name).name for name in names] or [table.name for table in trickle.tables()]
        for name in asked:
            with waiting(f"Checking {name}", trickle.spark):
                try:
                    reports.append(trickle.verify(name))
                except TrickleError as error:
                    errors[name] = error
    is_ok = all(report.ok for report in reports) and not errors
    if settings.is_json:
        failed = [{"table": name, **error_of(error)} for name, error in errors.items()]
        print_json({"ok": is_ok, "tables": reports, "errors": failed})
    elif not asked:
        tell(_NONE)
    else:
        from trickle.cli.shown import verify_table

        console().print(verify_table(reports, errors))
    return OK if is_ok else FAILED


def explain(settings: Settings, name: str) -> int:
    """Show how a stream table is maintained, and what its next refresh would do."""
    from trickle.cli.spark import waiting

    with _session(settings) as trickle, waiting(f"Explaining {name}", trickle.spark):
        table, found = trickle.table(name), trickle.explain(name)
    if settings.is_json:
        obstacles = [{"code": o.code, "message": o.text, "hint": o.hint} for o in found.obstacles]
        told = {"parts": found.parts, "obstacles": obstacles, "next_refresh": found.next_refresh}
        print_json({"table": table.name, "mode": table.mode, **told, "text": found})
    else:
        sys.stdout.write(found.rstrip("\n") + "\n")
    return OK


def resume(settings: Settings, name: str, **how: bool) -> int:
    """Let a suspended stream table go on, perhaps with a refresh first."""
    from trickle.cli.spark import waiting

    with _session(settings) as trickle, waiting(f"Resuming {name}", trickle.spark):
        full_name = trickle.table(name).name
        report = trickle.resume(full_name, **how)
    if settings.is_json:
        print_json({"table": full_name, "done": "resumed", "refresh": None if report is None else _refreshed(report)})
    else:
        rows = "" if report is None else f"; {report.mode}, +{report.rows_inserted:,} -{report.rows_deleted:,}"
        tell(f"{full_name}: resumed{rows}.")
    return OK


def change(settings: Settings, name: str, done: str, work: Callable[[Trickle, str], object]) -> int:
    """Do something to one stream table, and say so."""
    from trickle.cli.spark import waiting

    with _session(settings) as trickle, waiting(f"Looking at {name}", trickle.spark):
        full_name = trickle.table(name).name
        work(trickle, full_name)
    if settings.is_json:
        print_json({"table": full_name, "done": done})
    else:
        tell(f"{full_name}: {done}.")
    return OK
