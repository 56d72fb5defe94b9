"""``trickle run``: the loop, with a live table on a terminal and a line for each event elsewhere."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trickle.cli.commands import FAILED
from trickle.cli.output import console, print_json, tell
from trickle.cli.shown import moment, past_line, status_table
from trickle.errors import TrickleError
from trickle.model.events import RefreshEnded, RefreshFailed

if TYPE_CHECKING:
    from rich.live import Live

    from trickle.api import Trickle
    from trickle.cli.settings import Settings
    from trickle.engine.events import Events
    from trickle.model.observed import PastRefresh, TableStatus
    from trickle.observe.observer import Observer
    from trickle.project.load import Project
    from trickle.schedule.running import Running

INTERRUPTED: Final = 130
_LOOK_SECONDS: Final = 1.0
_FILL_SECONDS: Final = 10.0

logger = logging.getLogger("trickle")


class Interruption:
    """Ends the loop: the first signal after the refresh at work, the second at once."""

    def __init__(self) -> None:
        """Wait for the first."""
        self.stopped = threading.Event()
        self.signal: int | None = None

    def __call__(self, number: int, _: object) -> None:
        """Take a signal."""
        if self.stopped.is_set():
            raise KeyboardInterrupt
        self.signal = number
        self.stopped.set()

    @property
    def code(self) -> int:
        """The exit code: of a Ctrl-C its own; whoever sends SIGTERM wants a clean end."""
        return INTERRUPTED if self.signal == signal.SIGINT else 0


class Filler:
    """Fills the streaming tables of a project between refreshes, as far as the source has come.

    Each time costs as much as reading the project: it is done again after ten seconds, or four times as long as it took. In a
    session of its own, for the project's temporary views are not those of the refreshes.
    """

    def __init__(self, trickle: Trickle, project: Project) -> None:
        """Fill at the first look."""
        from trickle.api import Trickle
        from trickle.project.work import Work

        self._work = Work(Trickle(trickle.spark.newSession()), project)
        self._work.enter()
        self._not_before = 0.0

    def __call__(self) -> None:
        """Fill, if it is time."""
        began = time.monotonic()
        if began < self._not_before:
            return
        try:
            self._work.fill()
        except TrickleError as error:
            logger.warning("the streaming tables were not filled: %s", error)
        ended = time.monotonic()
        self._not_before = ended + max(_FILL_SECONDS, 4 * (ended - began))

    def cancel(self) -> None:
        """Call off what is being filled; what it committed stays, and is not read again."""
        for query in self._work.trickle.spark.streams.active:
            query.stop()


class Failures:
    """The stream tables whose last refresh failed."""

    def __init__(self, events: Events) -> None:
        """Listen."""
        self._tables: set[str] = set()
        events.on(RefreshFailed, lambda event: self._tables.add(event.table))
        events.on(RefreshEnded, lambda event: self._tables.discard(event.table))

    def are_among(self, observer: Observer) -> bool:
        """Return whether one of the tables failed, or needs a person; True too if storage does not tell which there are."""
        try:
            statuses = observer.status()
        except (TrickleError, OSError):
            return True
        return any(one.table in self._tables or one.health in ("failed", "broken") for one in statuses)


def run(settings: Settings, workers: int, seconds: float | None, lease: str | None = None) -> int:
    """Refresh stream tables by their schedules, until a signal comes or some seconds are over."""
    from trickle.cli.spark import open_trickle
    from trickle.schedule.running import Running, ending_signals

    interruption = Interruption()
    with open_trickle(settings) as trickle, ending_signals(interruption):
        view = LiveView(settings) if sys.stdout.isatty() and not settings.is_json else EventLines(settings)
        observer = trickle._observer()
        failures = Failures(trickle.events)
        project = settings.project
        fill = Filler(trickle, project) if project is not None and project.may_stream else None
        with view.shown(), Running(trickle._loop(workers, lease, fill)) as running:
            view.begin(observer)
            ends = None if seconds is None else time.monotonic() + seconds
            while running.is_running and (ends is None or time.monotonic() < ends):
                _look(view, observer)
                left = _LOOK_SECONDS if ends is None else min(_LOOK_SECONDS, max(ends - time.monotonic(), 0.0))
                if interruption.stopped.wait(left):
                    break
            if interruption.signal == signal.SIGINT:
                view.say("stopping", "Stopping after the refresh at work; Ctrl-C again calls it off.")
            _stop(running, fill)
            _look(view, observer)
        is_bad = interruption.signal is None and failures.are_among(observer)
    return FAILED if is_bad else interruption.code


def _look(view: EventLines, observer: Observer) -> None:
    """Show how the tables are; the loop goes on if storage does not answer."""
    try:
        view.look(observer)
    except (TrickleError, OSError) as error:
        logger.warning("how the stream tables are cannot be told now: %s", error)


def _stop(running: Running, fill: Filler | None) -> None:
    """Wait for the refresh at work; a second Ctrl-C calls it off."""
    try:
        running.stop()
    except KeyboardInterrupt:
        if fill is not None:
            fill.cancel()
        running.stop(cancel=True)


class EventLines(logging.Handler):
    """A line for each refresh, each change of health and each warning, as text or JSON."""

    def __init__(self, settings: Settings) -> None:
        """Start with nothing known."""
        super().__init__(logging.WARNING)
        self._is_json = settings.is_json
        self._versions: dict[str, int] = {}
        self._health: dict[str, str] = {}

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Take the warnings of the loop."""
        logger = logging.getLogger("trickle")
        logger.addHandler(self)
        propagates, logger.propagate = logger.propagate, False
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.propagate = propagates

    def begin(self, observer: Observer) -> None:
        """Tell that the loop has begun, and take note of where the tables are."""
        count = len(observer.tables())
        text = f"{moment(datetime.now(UTC))}  running: {count} stream table{'' if count == 1 else 's'}; Ctrl-C ends it"
        self.event("started", text, {"tables": count})

    def look(self, observer: Observer) -> None:
        """Tell what happened since the last look."""
        observer.look_again()
        statuses = observer.status()
        refreshes = [past for status in statuses for past in self._new_refreshes(observer, status)]
        for past in sorted(refreshes, key=lambda past: (str(past.committed or past.started), past.version)):
            self.event("refreshed", past_line(past), past)
        for status in statuses:
            self._tell_health(status)
        for name in self._versions.keys() - {status.table for status in statuses}:
            del self._versions[name]

    def _new_refreshes(self, observer: Observer, status: TableStatus) -> list[PastRefresh]:
        seen = observer.tables().get(status.table)
        newest = seen.commit.version if seen is not None and seen.commit is not None else -1
        known = self._versions.get(status.table)
        self._versions[status.table] = newest
        if known is None or newest <= known:
            return []
        return [past for past in observer.history(status.table, newest - known) if past.version > known]

    def _tell_health(self, status: TableStatus) -> None:
        known = self._health.get(status.table)
        self._health[status.table] = status.health
        is_news = {status.health, known} & {"late", "suspended", "failed", "broken"}
        if known != status.health and is_news and not (known is None and status.health == "late"):
            note = f": {status.problem}" if status.problem else ""
            text = f"{moment(datetime.now(UTC))}  {status.table}  {status.health}{note}"
            self.event("health", text, {"table": status.table, "health": status.health, "problem": status.problem})

    def emit(self, record: logging.LogRecord) -> None:
        """Tell a warning."""
        text = record.getMessage()
        self.event("warning", f"{moment(datetime.now(UTC))}  {text}", {"message": text})

    def say(self, event: str, text: str) -> None:
        """Tell something beside the events."""
        self.event(event, text, {"message": text})

    def event(self, event: str, text: str, details: PastRefresh | Mapping[str, Any]) -> None:
        """Write a line."""
        if self._is_json:
            print_json({"event": event, "time": datetime.now(UTC), "details": details})
        else:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


class LiveView(EventLines):
    """The same lines, above a table that shows how all stream tables are."""

    def __init__(self, settings: Settings) -> None:
        """Draw nothing yet."""
        super().__init__(settings)
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw the table until the end."""
        from rich.live import Live

        with super().shown(), Live(console=console(), auto_refresh=False) as self._live:
            yield
        self._live = None

    def look(self, observer: Observer) -> None:
        """Tell what happened since the last look, and draw the table anew."""
        super().look(observer)
        if self._live is not None:
            self._live.update(status_table(observer.status(), datetime.now(UTC)), refresh=True)

    def event(self, event: str, text: str, details: PastRefresh | Mapping[str, Any]) -> None:  # noqa: ARG002
        """Write a line above the table."""
        if self._live is None:
            tell(text)
        else:
            self._live.console.print(text)
