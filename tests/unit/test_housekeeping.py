"""What the loop does when nothing is due, without tables."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.engine.cancel import Cancellation
from trickle.engine.events import Events
from trickle.engine.history import History, as_row
from trickle.engine.upkeep import Housekeeping, why_outrun
from trickle.errors import CancelledError, ConflictError, SuspendedError
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.model.events import RefreshEnded, RefreshFailed, Suspended
from trickle.model.options import Options
from trickle.model.report import RefreshReport
from trickle.model.suspension import Suspension
from trickle.model.table_options import NO_OPTIONS
from trickle.schedule.idle import Idle
from trickle.tables.delta.upkeep import read_interval

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Table:
    """A table that was committed to once a day, the last time today."""

    head: int = 20
    kept: timedelta = 7 * DAY
    vacuumed: list[timedelta] = field(default_factory=list)
    log: timedelta = 30 * DAY

    def has_wasteful_files(self) -> bool:
        return False

    def checkpoint(self) -> bool:
        return False

    def log_kept_for(self) -> timedelta:
        return self.log

    def keep_log_for(self, time: timedelta) -> None:
        self.log = max(self.log, time)

    def committed_at(self, version: int) -> datetime | None:
        return NOW - (self.head - version) * DAY if 5 <= version <= self.head else None

    def kept_for(self) -> timedelta:
        return self.kept

    def vacuum(self, keep: timedelta) -> None:
        self.vacuumed.append(keep)


def reader(version: int | None) -> Any:
    """A stream table that was computed from a version of another."""
    frontier = {} if version is None else {"totals": SourceVersion(version=version, identity="t")}
    record = RefreshRecord(refresh_id="r", mode="full", frontier=frontier, fingerprint="f", started="now")
    state = SimpleNamespace(record=record.model_dump_json())
    target = SimpleNamespace(name="reader", state=lambda: state)
    return SimpleNamespace(table=SimpleNamespace(target=target, location="/reader"), reads={"totals": "totals"})


def keeping(table: Table, *readers: Any, broken: Any = ()) -> tuple[Housekeeping, Any]:
    engine: Any = SimpleNamespace(
        catalog=SimpleNamespace(results=SimpleNamespace(upkeep=lambda _: table)), events=Events()
    )
    own = SimpleNamespace(
        table=SimpleNamespace(location="/totals", prepared=SimpleNamespace(state_tables=())), reads={}
    )
    members: Any = SimpleNamespace(
        members={"totals": own, **{f"r{n}": member for n, member in enumerate(readers)}},
        broken=dict(broken),
        broken_at={},
    )
    return Housekeeping(engine), members


def keep_for(table: Table, *readers: Any, broken: Any = ()) -> timedelta | None:
    housekeeping, members = keeping(table, *readers, broken=broken)
    found = housekeeping.vacuum("totals", members, NOW)
    assert table.vacuumed == ([] if found is None else [found])
    return found


@pytest.mark.parametrize(("kept", "version", "then"), [(30, 8, 30), (20, 8, 22), (20, 18, 20), (3, 20, 3)])
def test_a_log_is_kept_for_a_reader_that_is_far_behind(kept, version, then):
    table = Table(log=kept * DAY)
    housekeeping, members = keeping(table, reader(version))

    housekeeping.tidy("totals", members, NOW)

    assert table.log == then * DAY


def test_history_that_is_gone_already_is_told():
    table = Table()
    housekeeping, _ = keeping(table)
    member = reader(2)
    source = SimpleNamespace(head=lambda: 20, path="/totals")
    member.table.prepared = SimpleNamespace(sources={"totals": source})
    member.table.definition = SimpleNamespace(schedule="1d")

    (text,) = housekeeping.warn("r0", member, NOW)

    assert "since version 2" in text


def test_files_are_kept_as_long_as_the_table_says():
    assert keep_for(Table()) == 7 * DAY
    assert keep_for(Table(), reader(20)) == 7 * DAY  # it has the newest
    assert keep_for(Table(), reader(18)) == 7 * DAY


def test_files_are_kept_longer_for_a_reader_that_is_behind():
    # Version 8 was the newest until version 9 came, eleven days ago.
    assert keep_for(Table(), reader(19), reader(8)) == 11 * DAY + timedelta(hours=1)


@pytest.mark.parametrize("version", [2, None])
def test_nothing_is_deleted_if_a_reader_may_need_anything(version):
    assert keep_for(Table(), reader(version)) is None
    assert keep_for(Table(), broken={"other": ConflictError("X", "…")}) is None


@pytest.mark.parametrize(
    ("age", "period", "kept", "warned"),
    [
        (timedelta(), None, 7 * DAY, False),
        (3 * DAY, DAY, 7 * DAY, False),
        (4 * DAY, DAY, 7 * DAY, True),
        (timedelta(), 7 * DAY, 7 * DAY, True),
        (timedelta(), 6 * DAY, 7 * DAY, False),
    ],
)
def test_when_a_source_may_outrun_a_table(age, period, kept, warned):
    assert (why_outrun(age, period, kept) is not None) == warned


def test_intervals_are_read_as_delta_writes_them():
    assert read_interval("interval 168 hours") == read_interval("interval 1 week") == 7 * DAY
    assert read_interval("INTERVAL 30 DAYS") == 30 * DAY
    assert read_interval("for ever") == timedelta()


# -- the thread beside the loop


def idle_over(done: list[str], monkeypatch: Any, verify_every: str | None = None) -> tuple[Idle, Any]:
    engine: Any = SimpleNamespace(cancellation=Cancellation(None))
    engine.cancellation._tagged = lambda *_, **__: nullcontext()
    idle = Idle(engine, NOW)
    keeping: Any = SimpleNamespace(
        tidy=lambda *_: done.append("tidy"),
        warn=lambda *_: done.append("warn"),
        vacuum=lambda *_: done.append("vacuum"),
    )
    idle._keeping = keeping
    monkeypatch.setattr("trickle.schedule.idle.last_verified", lambda *_: None)
    monkeypatch.setattr("trickle.schedule.idle.verify_and_tell", lambda *_: done.append("verify"))
    options = NO_OPTIONS.model_copy(update={"verify_every": verify_every})
    prepared = SimpleNamespace(obstacles=())
    table = SimpleNamespace(definition=SimpleNamespace(options=options), location="/totals", prepared=prepared)
    return idle, SimpleNamespace(members={"totals": SimpleNamespace(table=table)})


def do_all(idle: Idle, members: Any, now: datetime) -> None:
    end = time.monotonic() + 10
    while idle.offer(members, now):
        assert time.monotonic() < end
        time.sleep(0.001)


def test_work_that_can_wait_is_done_by_and_by(monkeypatch):
    done: list[str] = []
    idle, members = idle_over(done, monkeypatch, "12h")

    do_all(idle, members, NOW)
    assert done == []
    do_all(idle, members, NOW + timedelta(minutes=1))
    assert done == ["tidy", "warn"]
    do_all(idle, members, NOW + timedelta(minutes=9))
    assert done == ["tidy", "warn"]
    do_all(idle, members, NOW + timedelta(hours=13))
    assert done[2:] == ["verify", "tidy", "warn", "vacuum"]
    do_all(idle, members, NOW + DAY)
    assert done[6:] == ["tidy", "warn"]


def test_work_that_fails_stops_nothing(monkeypatch):
    done: list[str] = []
    idle, members = idle_over(done, monkeypatch)
    idle._keeping.tidy = lambda *_: 1 / 0

    do_all(idle, members, NOW + timedelta(minutes=1))

    assert done == ["warn"]


# -- the rows of the history


def ended(mode: Any, trigger: Any = "schedule") -> RefreshEnded:
    report = RefreshReport("totals", mode, None, 3, 1, {"orders": 2}, 4, 0.1, {"look": 0.1})
    return RefreshEnded("totals", trigger, NOW, report)


def failed(error: Any) -> RefreshFailed:
    return RefreshFailed("totals", "schedule", NOW, 0.5, error)


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (ended("differential"), "SUCCEEDED"),
        (ended("no_data", "manual"), "SUCCEEDED"),
        (failed(ConflictError("CONCURRENT_REFRESH", "…")), "FAILED"),
        (failed(CancelledError("TIMED_OUT", "…")), "CANCELLED"),
        (failed(SuspendedError("FUSE_BLOWN", "…")), "HELD"),
        (Suspended("totals", Suspension(since="now", cause="user")), "SUSPENDED"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_event_is_a_row(event, state):
    row = as_row(event)

    assert row is not None
    assert (row["name"], row["state"]) == ("totals", state)


def test_looks_of_the_loop_that_found_nothing_are_no_rows():
    assert as_row(ended("no_data")) is None


@dataclass
class Appended:
    """A table that takes rows only now and then."""

    is_broken: bool = False
    batches: list[Any] = field(default_factory=list)

    def append(self, rows: Any) -> None:
        if self.is_broken:
            raise OSError
        self.batches.append(rows.to_pylist())

    def trim(self, *_: object) -> None: ...


def test_rows_that_cannot_be_written_wait_and_no_refresh_fails():
    table, events = Appended(is_broken=True), Events()
    catalog: Any = SimpleNamespace(results=SimpleNamespace(appends=lambda *_: table))
    history = History(catalog, events, "ops.refreshes", Options(history_waiting_rows=3))

    for _ in range(5):
        events.emit(ended("differential"))
    history.flush()
    assert table.batches == []
    table.is_broken = False
    history.flush()

    (rows,) = table.batches
    assert [(row["rows_inserted"], row["frontier"], row["steps"]) for row in rows] == [
        (3, [("orders", 2)], [("look", 0.1)])
    ] * 3
