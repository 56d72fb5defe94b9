"""What the commands about projects do; each returns its exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trickle.cli.commands import FAILED, OK
from trickle.cli.output import console, error_of, print_json, tell
from trickle.errors import TrickleError
from trickle.layout import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from trickle.cli.settings import Settings
    from trickle.model.report import Validation
    from trickle.model.spec import ApplyPlan
    from trickle.project.work import Work


def init(settings: Settings, folder: Path, *, empty: bool) -> int:
    """Make a project."""
    from trickle.project.scaffold import make_project

    made = make_project(folder, with_example=not empty)
    if settings.is_json:
        print_json({"folder": str(folder.absolute()), "files": made})
    else:
        tell(f"Made {folder}: {', '.join(made)}.")
        tell(f"Next: cd {folder} && trickle apply" if not empty else f"Next: put SQL files into {folder}/tables.")
    return OK


@contextmanager
def working(settings: Settings) -> Iterator[tuple[Work, Callable[[str], None]]]:
    """Open the project that the command is called in, over its session."""
    from trickle.cli.spark import open_trickle, waiting

    project = settings.need_project()
    project.files()  # what is wrong with the project is said before Spark is started
    with _leaving_no_empty_folder(settings), open_trickle(settings, makes_tables=True) as trickle:
        from trickle.project.work import Work

        work = Work(trickle, project)
        with work.inside(), waiting("Reading the project", trickle.spark) as show:
            yield work, show


@contextmanager
def _leaving_no_empty_folder(settings: Settings) -> Iterator[None]:
    """Remove a warehouse that Spark was started over, if it was not there and nothing came into it."""
    folder = "" if settings.has_own_session else settings.folder(may_be_new=True)
    is_new = bool(folder) and not is_remote(folder) and not Path(folder).exists()
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                Path(folder).rmdir()


def plan(settings: Settings, *, check: bool, prune: bool) -> int:
    """Show what applying would do."""
    with working(settings) as (work, show):
        found = work.plan(prune=prune, show=show)
    _show_plan(settings, found)
    return FAILED if check and found.changes else OK


def apply(settings: Settings, *, prune: bool) -> int:
    """Apply the project."""
    from trickle.model.events import ApplyPlanned, RefreshStarted

    with working(settings) as (work, show):
        planned: list[ApplyPlanned] = []
        started: list[RefreshStarted] = []

        def say(event: RefreshStarted) -> None:
            started.append(event)
            show(f"Computing {event.table} ({len(started)} of {len(planned[-1].plan.changes)} changes)")

        work.trickle.events.on(ApplyPlanned, planned.append)
        work.trickle.events.on(RefreshStarted, say)
        done = work.apply(prune=prune, show=show)
    _show_plan(settings, done)
    return OK


def _show_plan(settings: Settings, plan: ApplyPlan) -> None:
    if settings.is_json:
        steps = [{"table": s.name, "action": s.action, "why": s.why, "seconds": s.seconds} for s in plan.steps]
        print_json({"applied": plan.is_applied, "changes": len(plan.changes), "steps": steps})
        return
    from trickle.cli.shown import plan_table

    if plan.steps:
        console().print(plan_table(plan))
    count = len(plan.changes)
    what = f"{count} change{'' if count == 1 else 's'}" if count else "nothing to change"
    tell(f"{what}{'' if plan.is_applied or not count else '; trickle apply makes them'}.")


def validate(settings: Settings) -> int:
    """Check the queries of the project."""
    with working(settings) as (work, show):
        found = work.validate(show)
    is_ok = not any(isinstance(one, TrickleError) for one in found.values())
    if settings.is_json:
        print_json({"ok": is_ok, "tables": [_validated(name, one) for name, one in found.items()]})
    else:
        from trickle.cli.shown import validation_table

        console().print(validation_table(found))
    return OK if is_ok else FAILED


def _validated(name: str, found: Validation | TrickleError | None) -> Mapping[str, Any]:
    if isinstance(found, TrickleError):
        return {"table": name, "ok": False, "maintainable": None, "obstacles": [], "error": error_of(found)}
    maintainable = None if found is None else found.differentiable
    obstacles = () if found is None else found.obstacles
    return {"table": name, "ok": True, "maintainable": maintainable, "obstacles": obstacles, "error": None}
