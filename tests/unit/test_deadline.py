"""A refresh ends when its time is over, but never in the middle of a commit."""

from __future__ import annotations

from typing import Any

import pytest

from trickle.engine.cancel import Cancellation
from trickle.errors import CancelledError
from trickle.refresh.deadline import Deadline
from trickle.refresh.fuse import Fuse
from trickle.refresh.stopwatch import Stopwatch


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_is_over_when_it_is():
    clock = Clock()
    deadline = Deadline("totals", 90, clock)
    watch = Stopwatch()
    watch.check_before_steps(deadline.check)

    with watch.step("look"):
        clock.now = 90.0

    with pytest.raises(CancelledError, match="1m30s") as caught, watch.step("compute"):
        pytest.fail("it went on")
    assert caught.value.code == "TIMED_OUT"


def test_a_commit_that_began_is_made():
    clock, done = Clock(), []
    deadline = Deadline("totals", 90, clock)
    deadline.begin_commit()
    clock.now = 100.0

    deadline.check()
    deadline.while_uncommitted(lambda: done.append("cancelled"))
    assert not done

    deadline.end_commit()  # that was a state table's
    with pytest.raises(CancelledError):
        deadline.begin_commit()


def called_off(then: Any) -> None:
    """A refresh that is called off and then does something."""
    spark: Any = None
    with Cancellation(spark).guarded("totals", None, stoppable=False) as deadline:
        deadline.cancel()
        then(deadline)


def test_what_is_called_off_ends_at_its_next_step():
    with pytest.raises(CancelledError) as caught:
        called_off(lambda deadline: deadline.check())

    assert caught.value.code == "CANCELLED"


def test_an_error_of_a_refresh_that_was_called_off_is_told_as_such():
    with pytest.raises(CancelledError) as caught:
        called_off(lambda _: 1 / 0)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("fuse", "changed", "stored", "blown"),
    [
        (Fuse(max_rows=3), 3, 0, False),
        (Fuse(max_rows=3), 4, 100, True),
        (Fuse(max_ratio=0.5), 5, 10, False),
        (Fuse(max_ratio=0.5), 6, 10, True),
        (Fuse(max_ratio=0.5), 1000, 0, False),  # a share of nothing
        (Fuse(max_rows=10, max_ratio=0.1), 2, 10, True),
        (Fuse(), 10**9, 1, False),
    ],
)
def test_when_a_fuse_blows(fuse, changed, stored, blown):
    assert (fuse.why_blown(changed, stored) is not None) == blown
