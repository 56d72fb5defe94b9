"""Hooks hear what happens, and cannot disturb it."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from trickle.engine.events import Events, reported
from trickle.errors import DefinitionError, SparkError
from trickle.model.events import RefreshEnded, RefreshFailed, RefreshStarted, Resumed, Suspended
from trickle.model.report import RefreshReport
from trickle.model.suspension import Suspension, read_suspension


def report(mode: str) -> RefreshReport:
    return RefreshReport("totals", mode, None, 1, 0, {"orders": 2}, 4, 0.1)


def refresh(events: Events, mode: str = "differential") -> None:
    with reported(events, "totals", "manual") as tell:
        tell(report(mode))


def test_a_refresh_is_told_from_its_start_to_its_end():
    events, heard = Events(), []
    for kind in (RefreshStarted, RefreshEnded, RefreshFailed):
        events.on(kind, heard.append)

    refresh(events)

    assert [type(event) for event in heard] == [RefreshStarted, RefreshEnded]
    assert heard[1].report == report("differential")
    assert heard[1].started == heard[0].at


def test_a_failure_is_told_and_still_raised():
    events, heard = Events(), []
    events.on_failure(heard.append)

    with pytest.raises(ZeroDivisionError), reported(events, "totals", "schedule"):
        raise ZeroDivisionError

    (event,) = heard
    assert (event.table, event.trigger, event.error.code) == ("totals", "schedule", "UNEXPECTED_ERROR")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_a_refresh_that_is_interrupted_is_told_as_one_that_ended(interruption):
    events, heard = Events(), []
    events.on(RefreshStarted, heard.append)
    events.on(RefreshFailed, heard.append)

    with pytest.raises(interruption), reported(events, "totals", "manual"):
        raise interruption

    assert [type(event) for event in heard] == [RefreshStarted, RefreshFailed]
    assert heard[1].error.code == "CANCELLED"


def test_on_full_hears_only_recomputes():
    events, full, every = Events(), [], []
    events.on_full(full.append)
    events.on_refresh(every.append)

    refresh(events)
    refresh(events, "full")

    assert [event.report.mode for event in full] == ["full"]
    assert len(every) == 2


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog):
    events, heard = Events(), []
    events.on_suspend(lambda _: 1 / 0)
    events.on_suspend(heard.append)

    with caplog.at_level(logging.ERROR, "trickle"):
        events.emit(Suspended("totals", Suspension(since="now", cause="user")))

    assert len(heard) == 1
    assert "a hook failed on Suspended" in caplog.text


def test_a_hook_can_be_taken_away():
    events, heard = Events(), []
    kept, gone = (lambda event: heard.append(("kept", event))), (lambda event: heard.append(("gone", event)))
    events.on(Resumed, kept)
    events.on(Resumed, gone)
    events.off(gone)

    events.emit(Resumed("totals"))

    assert heard == [("kept", Resumed("totals"))]


@pytest.mark.parametrize(("kind", "listener"), [("refresh", print), (RefreshEnded, None), (SimpleNamespace, print)])
def test_what_is_no_event_or_function_is_refused(kind, listener):
    with pytest.raises(DefinitionError) as caught:
        Events().on(kind, listener)

    assert caught.value.code == "BAD_OPTION"


def test_a_suspension_is_read_as_it_was_written():
    error = SparkError("DIVIDE_BY_ZERO", "zero")
    made = Suspension(since="2026-01-01T00:00:00+00:00", cause="failures", code=error.code, message=error.message)

    assert read_suspension("totals", made.model_dump_json()) == made
    assert read_suspension("totals", None) is None
    assert "[DIVIDE_BY_ZERO] zero" in str(made)
