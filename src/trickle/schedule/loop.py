"""The loop: looks which stream tables are due, and refreshes them in graph order, for as long as this process leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from trickle.errors import SessionError, TrickleError
from trickle.model.schedule import Downstream, OnCommit, read_schedule
from trickle.schedule.due import Scheduled, find_due, next_moment
from trickle.schedule.idle import Idle
from trickle.schedule.memory import Memory, recall
from trickle.session import exhaustion_told

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.graph import Member, Members
    from trickle.model.report import RunReport
    from trickle.model.suspension import Suspension
    from trickle.schedule.lease import Lease

logger = logging.getLogger("trickle")

_FAILED_SECONDS: Final = 60.0
"""How long the loop waits at most when it cannot tell what is due: storage does not answer, for one."""

_LISTING_SHARE: Final = 20.0
"""A catalog with many tables is listed less often: it takes no more than this part of the time."""


class Loop:
    """Refreshes stream tables by their schedules, one loop at a time on a warehouse.

    Args:
        engine: What refreshes.
        workers: How many tables are refreshed at once.
        lease: Who may lead; None to lead in any case.
        poll_seconds: How often sources are looked at for tables that follow commits.
        list_seconds: How often the catalog is looked at for new and dropped tables.
        between: Called in each look before anything is refreshed, by whoever leads.
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
        between: Callable[[], None] | None = None,
        on_run: Callable[[RunReport], None] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start with nothing known."""
        self._engine = engine
        self._workers = workers
        self._lease = lease
        self._poll_seconds = poll_seconds
        self._list_seconds = list_seconds
        self._between = between
        self._on_run = on_run
        self._clock = clock
        self._members: Members | None = None
        self._list_at = clock()
        self._memory: dict[str, Memory] = {}
        self._suspended: dict[str, tuple[int, Suspension | None]] = {}
        self._idle = Idle(engine, clock())
        self._stopped = threading.Event()
        self._failed_ticks = 0

    def run(self, until: datetime | None = None) -> None:
        """Go on until stopped, or until a moment; a refresh that is at work then ends first."""
        with self._leading(), self._ending():
            while not self._stopped.is_set() and (until is None or self._clock() < until):
                wait = self._tick_guarded()
                if until is not None:
                    wait = min(wait, max((until - self._clock()).total_seconds(), 0.0))
                self._stopped.wait(wait)

    def _tick_guarded(self) -> float:
        """Refresh what is due now; if that cannot even be found out, try again after a while.

        Raises:
            SessionError: ``JVM_GONE``: without Spark there is nothing to wait for.
        """
        try:
            with exhaustion_told():
                wait = self.tick()
        except Exception as error:
            if isinstance(error, SessionError) and error.code == "JVM_GONE":
                raise
            self._failed_ticks += 1
            wait = min(2.0 ** min(self._failed_ticks, 20), _FAILED_SECONDS)
            logger.warning("the loop cannot tell what is due, and looks again in %g s: %s", wait, error)
            return wait
        self._failed_ticks = 0
        return wait

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Leave nothing half done."""
        try:
            yield
        finally:
            self._idle.stop()
            if self._engine.history is not None:
                self._engine.history.flush()

    def stop(self) -> None:
        """Let the loop end after what it is doing."""
        self._stopped.set()

    def cancel(self) -> None:
        """End the loop at once: what it is refreshing is called off, and nothing of it is committed."""
        self.stop()
        self._engine.cancellation.cancel_all()

    def tick(self) -> float:
        """Refresh what is due now; return the seconds to wait until the next look."""
        if self._lease is not None and not self._lease.is_held:
            return min(1.0, self._poll_seconds * 20)
        if self._between is not None:
            self._between()
        members = self._current_members()
        heads = self._heads(members)
        now = self._clock()
        scheduled = {name: self._scheduled(name, members, heads) for name in members.members}
        due = find_due(scheduled, members.graph, now)
        if due:
            self._refresh(members, due, heads)
            return 0.0
        self._idle.offer(members, now)
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

        def take() -> None:
            try:
                lease.take()
            except Exception as error:  # the storage may answer again before the term is over
                logger.warning("the lease of the loop cannot be taken: %s", error)

        def renew() -> None:
            while not ended.wait(lease.seconds / 4):
                take()

        take()
        renewing = threading.Thread(target=renew, name="trickle-lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            try:
                lease.release()
            except Exception as error:  # others wait until its term is over
                logger.warning("the lease of the loop cannot be released: %s", error)

    def _current_members(self) -> Members:
        """Return the stream tables as they were at the last listing."""
        now = self._clock()
        if self._members is None or now >= self._list_at:
            self._members = self._engine.members()
            self._note_broken(self._members.broken, now)
            took = (self._clock() - now).total_seconds()
            self._list_at = now + timedelta(seconds=max(self._list_seconds, _LISTING_SHARE * took))
        return self._members

    @staticmethod
    def _heads(members: Members) -> dict[str, int]:
        """Return the newest version of every base table and every stream table."""
        heads = {node: _version_of(source.head) for node, source in members.bases.items()}
        return {**heads, **{name: _version_of(partial(_own_version, m)) for name, m in members.members.items()}}

    def _scheduled(self, name: str, members: Members, heads: Mapping[str, int]) -> Scheduled:
        memory = self._remembered(name, members)
        schedule = read_schedule(members.members[name].table.definition.schedule)
        behind = isinstance(schedule, OnCommit) and self._is_behind(name, members, heads)
        suspended = self._is_suspended(name, members.members[name], heads[name])
        not_before = self._not_before(name, members, heads)
        return Scheduled(schedule, memory.last, not_before, is_suspended=suspended, is_behind=behind)

    def _not_before(self, name: str, members: Members, heads: Mapping[str, int]) -> datetime | None:
        """Return when a table that failed is tried again: one that waits for others, when these are."""
        memory = self._remembered(name, members)
        if not memory.waits or memory.not_before is None:
            return memory.not_before
        nodes = {node for above in members.graph.upstream([name]) for node in members.members[above].reads.values()}
        known = ((n, self._memory.get(n)) for n in (members.broken_at.get(node, node) for node in nodes))
        failed = [m for n, m in known if m is not None and not m.waits and heads.get(n) in (None, m.failed_at)]
        return max([memory.not_before, *(m.not_before for m in failed if m.not_before is not None)])

    def _is_suspended(self, name: str, member: Member, version: int) -> bool:
        """Say whether a table waits for a person: a property, which only a new version of it can change."""
        known = self._suspended.get(name)
        if known is None or known[0] != version:
            found = _find_suspension(lambda: self._engine.suspensions.find(name, member.table.location))
            if known is not None and known[1] is not None and found is None:
                self._memory.pop(name, None)  # whoever resumed it wants it tried at once
            known = self._suspended[name] = version, found
        return known[1] is not None and not known[1].is_over(self._clock())

    def _remembered(self, name: str, members: Members) -> Memory:
        memory = self._memory.get(name)
        if memory is None:
            memory = self._memory[name] = recall(members.members[name])
        return memory

    def _is_behind(self, name: str, members: Members, heads: Mapping[str, int]) -> bool:
        """Say whether a source has committed; one that is refreshed for its readers, whether one of its own has."""
        seen = self._remembered(name, members).seen
        for node in members.members[name].reads.values():
            if seen.get(node) != heads[node]:
                return True
            upstream = members.members.get(node)
            if upstream is None or self._is_suspended(node, upstream, heads[node]):
                continue
            follows = isinstance(read_schedule(upstream.table.definition.schedule), Downstream)
            if follows and self._is_behind(node, members, heads):
                return True
        return False

    # -- refreshing

    def _refresh(self, members: Members, due: frozenset[str], heads: Mapping[str, int]) -> None:
        report = self._engine.run_members(
            members, due, workers=self._workers, trigger="schedule", is_ended=self._is_ended
        )
        now = self._clock()
        after = {**heads, **{name: r.version for name, r in report.tables.items()}}
        for name in report.tables:
            # Upstream tables that are not in this run may move on meanwhile: what was seen is what was there before it.
            self._memory[name] = Memory(now, {node: after[node] for node in members.members[name].reads.values()})
        for name, error in report.errors.items():
            logger.warning("stream table %s was not refreshed: %s", name, error)
            self._memory[name] = self._memory[name].after_failure(error, now, heads.get(name))
            self._give_up(name, error, members)
        if self._on_run is not None:
            self._on_run(report)

    def _is_ended(self) -> bool:
        """Say whether no other table may be begun: the loop is to end, or another process leads by now."""
        return self._stopped.is_set() or (self._lease is not None and not self._lease.is_held)

    def _note_broken(self, broken: Mapping[str, TrickleError], now: datetime) -> None:
        """Count the failures of stream tables that cannot even be opened."""
        for name, error in broken.items():
            memory = self._memory.get(name, Memory(None))
            if memory.not_before is None or now >= memory.not_before:
                logger.warning("stream table %s cannot be opened: %s", name, error)
                self._memory[name] = memory.after_failure(error, now)
                self._give_up(name, error)

    def _give_up(self, name: str, error: TrickleError, members: Members | None = None) -> None:
        """Suspend a table that has failed too often; those that read it need not wait any longer."""
        try:
            found = self._engine.tables.find(name)
            if self._memory[name].failures < found.definition.options.suspend_after:
                return
            self._engine.suspensions.suspend(name, found.location, "failures", error)
        except Exception as reason:  # nothing is lost: it is tried again, and fails again
            logger.warning("stream table %s cannot be suspended: %s", name, reason)
            return
        for reader in () if members is None else members.graph.downstream([name]):
            if reader in self._memory and not self._memory[reader].failures:
                self._memory[reader] = replace(self._memory[reader], retries=0, not_before=None, waits=False)


def _version_of(head: Callable[[], int]) -> int:
    """Return a version; -1, which nobody has seen, if there is none: the refresh says what is wrong."""
    try:
        return head()
    except (TrickleError, OSError):
        return -1


def _own_version(member: Member) -> int:
    return member.table.target.state().version


def _find_suspension(find: Callable[[], Suspension | None]) -> Suspension | None:
    try:
        return find()
    except (TrickleError, OSError):
        return None
