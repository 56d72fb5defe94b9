"""Shows on a terminal how far a run is, and what ``apply`` is about to do; elsewhere events tell it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trickle.model.events import ApplyPlanned, RefreshEnded, RefreshFailed, RefreshStarted, RunStarted

if TYPE_CHECKING:
    from rich.console import Console

    from trickle.engine.events import Events


@contextmanager
def progress(events: Events, *, is_drawn: bool = True) -> Iterator[None]:
    """Draw a bar on standard error while tables are refreshed, if that is a terminal; it is gone at the end."""
    if not is_drawn or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    bar = _Bar(Console(stderr=True, highlight=False))
    events.on(RunStarted, bar.begin)
    events.on(RefreshStarted, bar.start)
    events.on(RefreshEnded, bar.end)
    events.on(RefreshFailed, bar.end)
    events.on(ApplyPlanned, bar.tell)
    try:
        with bar.shown:
            yield
    finally:
        for listener in (bar.begin, bar.start, bar.end, bar.tell):
            events.off(listener)


class _Bar:
    """One bar for all tables of a run, with the names of those that are at work."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self.shown = Progress(*columns, console=console, transient=True)
        self._task = self.shown.add_task("", total=None)
        self._at_work: list[str] = []

    def begin(self, event: RunStarted) -> None:
        self.shown.update(self._task, total=len(event.tables), completed=0)

    def start(self, event: RefreshStarted) -> None:
        self._at_work.append(event.table)
        self._name()

    def end(self, event: RefreshEnded | RefreshFailed) -> None:
        if event.table in self._at_work:
            self._at_work.remove(event.table)
        self.shown.advance(self._task)
        self._name()

    def tell(self, event: ApplyPlanned) -> None:
        self.shown.console.print(str(event.plan), markup=False)
        self.shown.update(self._task, total=len(event.plan.changes), completed=0)

    def _name(self) -> None:
        self.shown.update(self._task, description=", ".join(self._at_work))
