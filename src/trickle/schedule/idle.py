"""What the loop does when nothing is due: verifies tables and keeps them in shape, one thing at a time, beside it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.engine.upkeep import Housekeeping
from trickle.engine.verification import last_verified, verify_and_tell
from trickle.errors import TrickleError
from trickle.model.schedule import read_duration

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.graph import Member, Members

_LOG: Final = logging.getLogger("trickle")
TIDY_EVERY: Final = timedelta(minutes=10)
VACUUM_EVERY: Final = timedelta(days=1)
WARN_EVERY: Final = timedelta(hours=6)
_SOON: Final = timedelta(seconds=30)
_LATER: Final = timedelta(hours=1)
"""When the first of these is done: a loop that has just started has better things to do."""

_STOP_SECONDS: Final = 10.0

Task = Callable[[], object]


class Idle:
    """The work that can wait.

    Args:
        engine: What does it.
        started: When the loop began. A table that was never verified is so after its first period.
    """

    def __init__(self, engine: Engine, started: datetime) -> None:
        """Start with nothing to do."""
        self._engine = engine
        self._started = started
        self._keeping = Housekeeping(engine)
        self._done: dict[tuple[str, str], datetime] = {}
        self._thread: threading.Thread | None = None

    def offer(self, members: Members, now: datetime) -> bool:
        """Begin the next piece of work, if none is being done; return whether one is now."""
        if self._thread is not None and self._thread.is_alive():
            return True
        found = self._next(members, now)
        if found is None:
            return False
        what, name, task = found
        self._done[what, name] = now
        self._thread = threading.Thread(target=self._run, args=(what, name, task), name="trickle-idle", daemon=True)
        self._thread.start()
        return True

    def stop(self) -> None:
        """Cut short what is being done: nothing is lost by that."""
        if self._thread is not None and self._thread.is_alive():
            self._engine.cancellation.cancel_all(self._thread.name)
            self._thread.join(_STOP_SECONDS)  # a VACUUM that lists files does not hear it; it does no harm later

    def _next(self, members: Members, now: datetime) -> tuple[str, str, Task] | None:
        for name, member in members.members.items():
            every = member.table.definition.options.verify_every
            if member.table.prepared.obstacles:
                every = None  # Spark recomputes it over the newest versions: there are none to verify it at
            period = None if every is None else timedelta(seconds=read_duration(every))
            is_due = period is not None and self._is_due("verify", name, period, now)
            if period is not None and is_due and now - self._last_verified(member, now) >= period:
                return "verify", name, lambda name=name: verify_and_tell(self._engine, name)
            if self._is_due("tidy", name, TIDY_EVERY, now, _SOON):
                return "tidy", name, lambda name=name: self._keeping.tidy(name, members, now)
            if self._is_due("warn", name, WARN_EVERY, now, _SOON):
                return "warn", name, lambda name=name, member=member: self._keeping.warn(name, member, now)
            if self._is_due("vacuum", name, VACUUM_EVERY, now, _LATER):
                return "vacuum", name, lambda name=name: self._keeping.vacuum(name, members, now)
        return None

    def _last_verified(self, member: Member, now: datetime) -> datetime:
        try:
            return last_verified(self._engine, member.table.location) or self._started
        except (TrickleError, OSError):
            return now  # its log does not answer: this is not the moment

    def _is_due(self, what: str, name: str, every: timedelta, now: datetime, first: timedelta | None = None) -> bool:
        """Return whether something was last done so long ago; the first time after another time, if one is given."""
        last = self._done.get((what, name))
        if last is not None:
            return now - last >= every
        return now - self._started >= (every if first is None else first)

    def _run(self, what: str, name: str, task: Task) -> None:
        try:
            with self._engine.cancellation.guarded(threading.current_thread().name, None, stoppable=True):
                done = task()
        except Exception as error:  # a conflict with a refresh, most often; it is tried again later
            _LOG.info("%s of stream table %s did not end well: %s", what, name, error)
        else:
            if what in ("tidy", "vacuum") and done:
                _LOG.info("%s of stream table %s: %s", what, name, done)
