"""Schedules are read, written, and tell when a table is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.errors import DefinitionError
from trickle.model.schedule import Cron, Downstream, Every, OnCommit, next_due, read_duration, read_schedule

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("30s", Every(30)),
        ("1h30m", Every(5400)),
        ("1h 30m", Every(5400)),
        ("250ms", Every(0.25)),
        ("0.5s", Every(0.5)),
        ("2D", Every(172_800)),
        ("on commit", OnCommit()),
        ("ON  COMMIT at most every 10s", OnCommit(10)),
        ("downstream", Downstream()),
        ("*/5 * * * *", Cron("*/5 * * * *")),
        ("0 6 * * 1-5 Europe/Berlin", Cron("0 6 * * 1-5", "Europe/Berlin")),
    ],
)
def test_a_schedule_is_read_and_written(text, schedule):
    assert read_schedule(text) == schedule
    assert read_schedule(str(schedule)) == schedule


def test_no_schedule_is_by_hand():
    assert read_schedule(None) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a duration"),
        ("5", "not a duration"),
        ("5 parsecs", "not a duration"),
        ("0s", "at least 1ms"),
        ("0.0001s", "at least 1ms"),
        ("-5s", "not a duration"),
        ("400d", "at most 366 days"),
        ("on commit at most every never", "not a duration"),
        ("hourly", "not a duration"),
        ("0 0 30 2 *", "as cron"),
        ("0 0 31 4,6 *", "as cron"),
        ("61 * * * *", "as cron"),
        ("0 6 * * * Mars/Olympus", "not a time zone"),
        ("0 6 * * * ../../etc/passwd", "not a time zone"),
        (5, "a schedule is a text"),
        (b"5s", "a schedule is a text"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_forms_there_are(text, why):
    with pytest.raises(DefinitionError) as caught:
        read_schedule(text)

    assert caught.value.code == "BAD_SCHEDULE"
    assert why in str(caught.value)
    assert "on commit" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["", "soon", "30", "0.4ms", "400d"])
def test_what_is_no_duration_is_refused_as_one(text):
    with pytest.raises(DefinitionError, match="is not a duration") as caught:
        read_duration(text)

    assert "downstream" not in str(caught.value)


@given(st.integers(1, 366 * 86_400_000))
def test_durations_survive_being_written(milliseconds):
    schedule = Every(milliseconds / 1000)

    again = read_schedule(str(schedule))

    assert isinstance(again, Every)
    assert again.seconds == pytest.approx(schedule.seconds)


def test_a_table_that_never_was_refreshed_is_due_at_once():
    assert next_due(Every(60), None, NOON) == NOON


def test_a_long_pause_makes_a_table_due_once():
    due = next_due(Every(60), NOON, NOON + timedelta(days=3))

    assert due == NOON + timedelta(seconds=60)


def test_cron_follows_its_time_zone_over_the_change_of_clocks():
    daily = Cron("0 6 * * *", "Europe/Berlin")

    before, after = daily.after(NOON - timedelta(days=1)), daily.after(NOON)

    assert (before, after) == (datetime(2026, 3, 28, 5, tzinfo=UTC), datetime(2026, 3, 29, 4, tzinfo=UTC))
