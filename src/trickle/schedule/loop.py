"""The loop: looks which stream tables are due, and refreshes them in graph order, for as long as this process leads."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.errors import TrickleError
from trickle.model.schedule import Downstream, OnCommit, read_schedule
from trickle.refresh.record import read_record
from trickle.schedule.due import Scheduled, find_due, next_moment

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.graph import Member, Members
    from trickle.model.report import RunReport
    from trickle.schedule.lease import Lease

logger = logging.getLogger("trickle")

_WAIT_SECONDS: Final = 300.0
"""How long a failing table waits at most."""

_LISTING_SHARE: Final = 20.0
"""A catalog with many tables is listed less often: it takes no more than this part of the time."""


@dataclass(slots=True)
class _Memory:
    """What the loop remembers of a table: when it was last brought up, where its sources were, how often it failed since."""

    last: datetime | None
    seen: Mapping[str, int] = field(default_factory=dict)
    failures: int = 0
    not_before: datetime | None = None


class Loop:
    """Refreshes stream tables by their schedules, one loop at a time on a warehouse.

    Args:
        engine: What refreshes.
        workers: How many tables are refreshed at once.
        lease: Who may lead; None to lead in any case.
        poll_seconds: How often sources are looked at for tables that follow commits.
        list_seconds: How often the catalog is looked at for new and dropped tables.
        on_run: Called with the report of each run that refreshed anything.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        workers: int = 2,
        lease: Lease | None = None,
        poll_seconds: float = 0.05,
        list_seconds: float = 2.0,
        on_run: Callable[[RunReport], None] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start with nothing known."""
        self._engine = engine
        self._workers = workers
        self._lease = lease
        self._poll_seconds = poll_seconds
        self._list_seconds = list_seconds
        self._on_run = on_run
        self._clock = clock
        self._members: Members | None = None
        self._list_at = clock()
        self._memory: dict[str, _Memory] = {}
        self._stopped = threading.Event()

    def run(self, until: datetime | None = None) -> None:
        """Go on until stopped, or until a moment; a refresh that is at work then ends first."""
        with self._leading():
            while not self._stopped.is_set() and (until is None or self._clock() < until):
                wait = self.tick()
                if until is not None:
                    wait = min(wait, max((until - self._clock()).total_seconds(), 0.0))
                self._stopped.wait(wait)

    def stop(self) -> None:
        """Let the loop end after what it is doing."""
        self._stopped.set()

    def tick(self) -> float:
        """Refresh what is due now; return the seconds to wait until the next look."""
        if self._lease is not None and not self._lease.is_held:
            return min(1.0, self._poll_seconds * 20)
        members = self._current_members()
        if members is None:
            return self._list_seconds
        heads = self._heads(members)
        now = self._clock()
        scheduled = {name: self._scheduled(name, members, heads) for name in members.members}
        due = find_due(scheduled, members.graph, now)
        if due:
            self._refresh(members, due, heads)
            return 0.0
        follows = any(isinstance(table.schedule, OnCommit) for table in scheduled.values())
        moment = next_moment(scheduled, now)
        wait = self._poll_seconds if follows else self._list_seconds
        return wait if moment is None else min(wait, max((moment - now).total_seconds(), 0.0))

    # -- who leads, and over what

    @contextmanager
    def _leading(self) -> Iterator[None]:
        """Take and renew the lease beside the refreshes, which may last longer than a term; release it at the end."""
        lease, ended = self._lease, threading.Event()
        if lease is None:
            yield
            return

        def renew() -> None:
            while not ended.is_set():
                try:
                    lease.take()
                except OSError as error:  # the storage may answer again before the term is over
                    logger.warning("the lease of the loop cannot be renewed: %s", error)
                ended.wait(lease.seconds / 4)

        lease.take()
        renewing = threading.Thread(target=renew, name="trickle-lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            lease.release()

    def _current_members(self) -> Members | None:
        """Return the stream tables as they were at the last listing; None if they cannot be listed now."""
        now = self._clock()
        if self._members is None or now >= self._list_at:
            try:
                self._members = self._engine.members()
            except TrickleError as error:
                logger.warning("the stream tables cannot be listed: %s", error)
                return None
            took = (self._clock() - now).total_seconds()
            self._list_at = now + timedelta(seconds=max(self._list_seconds, _LISTING_SHARE * took))
        return self._members

    @staticmethod
    def _heads(members: Members) -> dict[str, int]:
        """Return the newest version of every base table and every stream table."""
        heads = {node: source.head() for node, source in members.bases.items()}
        return {**heads, **{name: m.table.target.state().version for name, m in members.members.items()}}

    def _scheduled(self, name: str, members: Members, heads: Mapping[str, int]) -> Scheduled:
        memory = self._remembered(name, members)
        schedule = read_schedule(members.members[name].table.definition.schedule)
        behind = isinstance(schedule, OnCommit) and self._is_behind(name, members, heads)
        return Scheduled(schedule, memory.last, memory.not_before, is_behind=behind)

    def _remembered(self, name: str, members: Members) -> _Memory:
        memory = self._memory.get(name)
        if memory is None:
            memory = self._memory[name] = _recall(members.members[name])
        return memory

    def _is_behind(self, name: str, members: Members, heads: Mapping[str, int]) -> bool:
        """Say whether a source has committed; one that is refreshed for its readers, whether one of its own has."""
        seen = self._remembered(name, members).seen
        for node in members.members[name].reads.values():
            if seen.get(node) != heads[node]:
                return True
            upstream = members.members.get(node)
            follows = upstream is not None and isinstance(read_schedule(upstream.table.definition.schedule), Downstream)
            if follows and self._is_behind(node, members, heads):
                return True
        return False

    # -- refreshing

    def _refresh(self, members: Members, due: frozenset[str], heads: Mapping[str, int]) -> None:
        report = self._engine.run_members(members, due, workers=self._workers)
        now = self._clock()
        after = {**heads, **{name: r.version for name, r in report.tables.items()}}
        for name in report.tables:
            # Upstream tables that are not in this run may move on meanwhile: what was seen is what was there before it.
            self._memory[name] = _Memory(now, {node: after[node] for node in members.members[name].reads.values()})
        for name, error in report.errors.items():
            memory = self._memory[name]
            memory.failures += 1
            memory.not_before = now + timedelta(seconds=min(2.0**memory.failures, _WAIT_SECONDS))
            logger.warning("stream table %s was not refreshed: %s", name, error)
        if self._on_run is not None:
            self._on_run(report)


def _recall(member: Member) -> _Memory:
    """Read from a table's own record when it was last brought up, and where its sources were then."""
    try:
        record = read_record(member.table.target.name, member.table.target.state())
    except TrickleError:
        record = None  # the refresh itself says what is wrong
    if record is None:
        return _Memory(None)
    seen = {member.reads[name]: at.version for name, at in record.frontier.items() if name in member.reads}
    return _Memory(datetime.fromisoformat(record.started), seen)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT end a loop cleanly, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Running:
    """A loop in a thread of its own; leave its context, or call ``stop``, to end it."""

    def __init__(self, loop: Loop) -> None:
        """Start it."""
        self._loop = loop
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="trickle-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as error:
            logger.exception("the loop ended")
            self._failure = error

    @property
    def is_running(self) -> bool:
        """True until it is stopped."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it: a refresh that is at work ends first. Raises what ended it before, if anything did."""
        self._loop.stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
