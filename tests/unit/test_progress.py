"""What a terminal shows of a run, and that nothing is shown elsewhere."""

from __future__ import annotations

import io
import re
import sys

import pytest

from trickle.engine.events import Events, reported
from trickle.engine.progress import progress
from trickle.errors import SparkError
from trickle.model.events import ApplyPlanned, RunStarted
from trickle.model.report import RefreshReport
from trickle.model.spec import ApplyPlan, ApplyStep


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(events: Events) -> None:
    steps = (ApplyStep("shop.daily", "query", "its query is replaced, by one commit", 4.2),)
    events.emit(ApplyPlanned(ApplyPlan(steps)))
    events.emit(RunStarted(("shop.daily", "shop.best"), "manual"))
    with reported(events, "shop.daily", "manual") as tell:
        tell(RefreshReport("shop.daily", "no_data", None, 0, 0, {}, 1, 0.1))
    with pytest.raises(SparkError), reported(events, "shop.best", "manual"):
        raise SparkError("DIVIDE_BY_ZERO", "division by zero.")


def test_a_terminal_shows_the_plan_and_how_far_a_run_is(monkeypatch):
    events, terminal = Events(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress(events):
        run(events)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "query    shop.daily: its query is replaced, by one commit, about 4.2 s" in text
    assert "2/2" in text
    assert events._listeners == ()


def test_who_draws_progress_of_their_own_gets_nothing(monkeypatch):
    events, terminal = Events(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress(events, is_drawn=False):
        run(events)
    assert terminal.getvalue() == ""


def test_a_pipe_gets_nothing(monkeypatch):
    events, pipe = Events(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress(events):
        run(events)
    assert pipe.getvalue() == ""
