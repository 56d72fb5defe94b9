"""The loop over fake tables: what fails stops nothing else, and is given up in the end."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.engine.graph import Member, Members
from trickle.errors import SessionError, SourceError, SparkError, StorageError
from trickle.model.report import RunReport
from trickle.model.suspension import Suspension
from trickle.model.table_options import NO_OPTIONS
from trickle.schedule.loop import Loop
from trickle.schedule.running import stopped_by_signals

GONE = SourceError("SOURCE_MISSING", "it is gone.")
ZERO = SparkError("DIVIDE_BY_ZERO", "division by zero.")


def _suspension(cause: Any, code: str) -> Suspension:
    return Suspension(since="2026-01-01T00:00:00+00:00", cause=cause, code=code)


@dataclass
class Source:
    name: str
    newest: int = 1
    is_gone: bool = False

    def head(self) -> int:
        if self.is_gone:
            raise GONE
        return self.newest


@dataclass
class Engine:
    """Stream tables over ``orders`` and ``items`` that fail as they are told to."""

    sources: dict[str, Source] = field(default_factory=lambda: {n: Source(n) for n in ("orders", "items")})
    reads: dict[str, str] = field(default_factory=lambda: {"totals": "orders", "counts": "items"})
    failing: dict[str, Any] = field(default_factory=dict)
    broken: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)
    runs: list[frozenset[str]] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    history: None = None
    is_ended: Any = None

    @property
    def suspensions(self) -> Any:
        return SimpleNamespace(
            find=lambda name, _: self.held.get(name),
            suspend=lambda name, _, cause, error: self.held.__setitem__(name, _suspension(cause, error.code)),
        )

    @property
    def tables(self) -> Any:
        options = NO_OPTIONS.model_copy(update={"suspend_after": 2})
        return SimpleNamespace(
            find=lambda _: SimpleNamespace(definition=SimpleNamespace(options=options), location="/")
        )

    def state(self, name: str) -> Any:
        return SimpleNamespace(version=len(self.held) + self.versions.get(name, 1), record=None)

    def members(self) -> Members:
        known: dict[str, Any] = {}
        for name, source in self.reads.items():
            target = SimpleNamespace(name=name, state=lambda name=name: self.state(name))
            definition = SimpleNamespace(schedule="on commit", options=NO_OPTIONS)
            known[name] = Member(SimpleNamespace(target=target, definition=definition, location="/"), {source: source})
        bases: Any = dict(self.sources)
        return Members(known, bases, self.broken)

    def run_members(self, members: Members, due: frozenset[str], **given: Any) -> RunReport:
        self.runs.append(due)
        self.is_ended = given["is_ended"]
        members.pin()
        errors = {name: self.failing[name] for name in due if name in self.failing}
        done: Any = {name: SimpleNamespace(version=self.state(name).version) for name in due if name not in errors}
        return RunReport(done, errors, {}, 0.0)


@dataclass
class Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(engine, clock) -> Loop:
    loop = Loop(engine, clock=clock, list_seconds=1.0)
    idle: Any = SimpleNamespace(offer=lambda *_: False, stop=lambda: None)
    loop._idle = idle
    return loop


def tick(loop: Loop, clock: Clock, seconds: float) -> None:
    clock.now += timedelta(seconds=seconds)
    loop.tick()


def test_a_table_that_keeps_failing_is_given_up_and_others_go_on(engine, clock, loop):
    engine.failing["totals"] = ZERO
    loop.tick()
    tick(loop, clock, 1.5)
    assert engine.runs == [{"totals", "counts"}]  # it waits
    engine.sources["items"].newest = 2
    tick(loop, clock, 1)
    assert engine.runs[1] == {"totals", "counts"}

    assert engine.held == {"totals": _suspension("failures", "DIVIDE_BY_ZERO")}
    engine.sources["orders"].newest = engine.sources["items"].newest = 3
    tick(loop, clock, 100)
    assert engine.runs[2:] == [{"counts"}]


def test_what_is_done_between_refreshes_is_done_before_them_and_by_whoever_leads(engine, clock):
    seen: list[int] = []
    follower = SimpleNamespace(is_held=False)
    for lease in (None, follower):
        loop = Loop(engine, clock=clock, between=lambda: seen.append(len(engine.runs)), lease=lease)
        loop.tick()

    assert (seen, len(engine.runs)) == ([0], 1)


def test_a_table_that_is_resumed_is_tried_at_once(engine, clock, loop):
    engine.failing["totals"] = ZERO
    loop.tick()
    tick(loop, clock, 3)
    tick(loop, clock, 1)
    engine.held.clear()
    engine.failing.clear()

    tick(loop, clock, 1)

    assert "totals" in engine.runs[-1]


def test_a_table_whose_upstream_failed_is_tried_with_it(engine, clock, loop):
    engine.reads["best"] = "totals"
    engine.failing["totals"] = StorageError("STORAGE_FAILED", "it did not answer.")
    engine.failing["best"] = SourceError("UPSTREAM_FAILED", "totals failed.")
    loop.tick()
    for seconds in (2, 4, 8, 16, 32):
        tick(loop, clock, seconds - 0.5)
        tick(loop, clock, 0.5)
    assert engine.runs[1:] == [{"totals", "best"}] * 5

    engine.failing.clear()
    tick(loop, clock, 59)
    assert len(engine.runs) == 6
    tick(loop, clock, 1)
    assert engine.runs[6:] == [{"totals", "best"}]


def test_a_table_follows_at_once_if_somebody_else_mends_its_upstream(engine, clock, loop):
    engine.reads["best"] = "totals"
    engine.failing["totals"] = StorageError("STORAGE_FAILED", "it did not answer.")
    engine.failing["best"] = SourceError("UPSTREAM_FAILED", "totals failed.")
    loop.tick()
    for seconds in (2, 4, 8, 16):
        tick(loop, clock, seconds)
    engine.failing.clear()
    engine.versions["totals"] = 2  # it is refreshed by hand

    tick(loop, clock, 1)

    assert "best" in engine.runs[-1]


def test_a_source_that_is_gone_stops_no_other_table(engine, clock, loop):
    loop.tick()
    engine.sources["orders"].is_gone = True
    engine.failing["totals"] = GONE
    engine.sources["items"].newest = 2

    tick(loop, clock, 1)

    assert engine.runs[-1] == {"totals", "counts"}
    engine.sources["items"].newest = 3
    tick(loop, clock, 3)
    assert engine.held == {"totals": _suspension("failures", "SOURCE_MISSING")}


def test_a_table_that_cannot_be_opened_is_given_up_too(engine, clock, loop):
    engine.broken["odd"] = GONE
    for _ in range(3):
        tick(loop, clock, 10)

    assert engine.held == {"odd": _suspension("failures", "SOURCE_MISSING")}


def test_a_listing_that_fails_does_not_end_the_loop(engine, clock, loop, caplog):
    members, tries = engine.members, []

    def fail() -> Members:
        tries.append(clock.now)
        clock.now += timedelta(seconds=100)
        if len(tries) < 9:
            raise OSError(5, "Input/output error")
        loop.stop()
        return members()

    engine.members = fail
    waits: list[float] = []
    loop._stopped.wait = waits.append

    loop.run()

    assert waits[:7] == [2, 4, 8, 16, 32, 60, 60]
    assert engine.runs == [{"totals", "counts"}]
    assert "Input/output error" in caplog.text


def test_a_loop_without_a_jvm_ends(engine, loop):
    def fail() -> Members:
        raise SessionError("JVM_GONE", "it is gone.")

    engine.members = fail

    with pytest.raises(SessionError):
        loop.run()


def test_a_lease_that_does_not_answer_at_first_is_taken_later(engine, clock):
    tries: list[str] = []

    class Lease:
        seconds, is_held = 0.04, False

        def take(self) -> bool:
            tries.append("take")
            if len(tries) < 3:
                raise StorageError("STORAGE_FAILED", "it did not answer.")
            self.is_held = True
            return True

        def release(self) -> None:
            tries.append("release")
            raise StorageError("STORAGE_FAILED", "it did not answer.")

    lease: Any = Lease()
    loop = Loop(engine, lease=lease, on_run=lambda _: loop.stop())
    loop.run()

    assert engine.runs == [{"totals", "counts"}]
    assert tries[-1] == "release"


def test_a_run_begins_no_other_table_once_another_process_leads(engine, clock):
    lease: Any = SimpleNamespace(is_held=True)
    loop = Loop(engine, clock=clock, lease=lease)
    loop.tick()
    assert not engine.is_ended()

    lease.is_held = False
    assert engine.is_ended()


def test_a_second_signal_calls_off_what_is_at_work():
    heard: list[str] = []
    before = signal.getsignal(signal.SIGTERM)

    with stopped_by_signals(lambda: heard.append("stop"), lambda: heard.append("cancel")):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    assert heard == ["stop", "cancel"]
    assert signal.getsignal(signal.SIGTERM) is before
