"""When a stream table is to be refreshed: every so often, by the calendar, on commit, or as often as its readers need.

"30s", "1h30m"                    every so often
"0 6 * * 1-5 Europe/Berlin"       by the calendar, in a time zone (UTC if none is named)
"on commit"                       as soon as a source commits
"on commit at most every 10s"     the same, but not more often than that
"downstream"                      as often as the tightest of its readers
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trickle.errors import DefinitionError

_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")
_ON_COMMIT: Final = re.compile(r"on commit(?: at most every (.+))?")
_YEAR_SECONDS: Final = 366 * 86_400
_SHORTEST: Final = 0.001  # what is shorter could not be written and read again
_CRON_FIELDS: Final = 5


@dataclass(frozen=True, slots=True)
class Every:
    """Every so many seconds."""

    seconds: float

    def __str__(self) -> str:
        return write_duration(self.seconds)


@dataclass(frozen=True, slots=True)
class Cron:
    """By the calendar: five fields of cron, and the time zone that they are meant in."""

    fields: str
    zone: str = "UTC"

    def __str__(self) -> str:
        return self.fields if self.zone == "UTC" else f"{self.fields} {self.zone}"

    def after(self, moment: datetime) -> datetime:
        """Return the first time after a moment, in UTC."""
        return next(CronSim(self.fields, moment.astimezone(ZoneInfo(self.zone)))).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class OnCommit:
    """When a source has committed, but at most every so many seconds."""

    at_most_every: float = 0.0

    def __str__(self) -> str:
        return f"on commit at most every {write_duration(self.at_most_every)}" if self.at_most_every else "on commit"


@dataclass(frozen=True, slots=True)
class Downstream:
    """As often as the tightest of the stream tables that read it."""

    def __str__(self) -> str:
        return "downstream"


Schedule = Every | Cron | OnCommit | Downstream


def read_schedule(text: str | None) -> Schedule | None:
    """Read a schedule; None is by hand only.

    >>> read_schedule("1h30m")
    Every(seconds=5400.0)
    >>> read_schedule("on commit at most every 10s")
    OnCommit(at_most_every=10.0)

    Raises:
        DefinitionError: ``BAD_SCHEDULE``.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise _bad(text, "a schedule is a text")
    words = " ".join(text.split())
    if words.lower() == "downstream":
        return Downstream()
    if found := _ON_COMMIT.fullmatch(words.lower()):
        return OnCommit(read_duration(found[1], text) if found[1] else 0.0)
    if len(words.split(" ")) in (_CRON_FIELDS, _CRON_FIELDS + 1) and not _PART.match(words.replace(" ", "") + "?"):
        return _read_cron(words, text)
    return Every(read_duration(words, text))


def write_schedule(text: str | None) -> str | None:
    """Read a schedule and write it in one way.

    >>> write_schedule("90s")
    '1m30s'
    """
    schedule = read_schedule(text)
    return None if schedule is None else str(schedule)


def read_duration(words: str, text: str | None = None) -> float:
    """Read a duration as seconds.

    >>> read_duration("2h"), read_duration("1m 30s")
    (7200.0, 90.0)

    Raises:
        DefinitionError: ``BAD_SCHEDULE``.
    """
    parts = _PART.findall(words.lower())
    if not parts or _PART.sub("", words.lower()):
        if text is None:
            raise _bad_duration(words, "it has no numbers with units")
        raise _bad(text, "it is not a duration, a cron expression, 'on commit' or 'downstream'")
    seconds = float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
    if not _SHORTEST <= seconds <= _YEAR_SECONDS:
        why = "a duration is at least 1ms and at most 366 days"
        raise _bad_duration(words, why) if text is None else _bad(text, why)
    return seconds


def write_duration(seconds: float) -> str:
    """Write a duration the way it is read.

    >>> write_duration(5400), write_duration(0.25)
    ('1h30m', '250ms')
    """
    left, words = round(seconds * 1000), ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left = divmod(left, size)
        words += f"{count}{unit}" if count else ""
    return words or "0s"


def _read_cron(words: str, text: str) -> Cron:
    parts = words.split(" ")
    fields, zone = " ".join(parts[:_CRON_FIELDS]), "UTC" if len(parts) == _CRON_FIELDS else parts[-1]
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _bad(text, f"{zone!r} is not a time zone") from error
    try:
        next(CronSim(fields, datetime.now(UTC)))
    except CronSimError as error:
        raise _bad(text, f"as cron: {error}") from error
    except StopIteration as error:
        raise _bad(text, "this cron never fires") from error
    return Cron(fields, zone)


def _bad(given: object, why: str) -> DefinitionError:
    hint = 'For instance "30s", "1h30m", "0 6 * * 1-5 Europe/Berlin", "on commit", "on commit at most every 10s", "downstream".'
    return DefinitionError("BAD_SCHEDULE", f"{given!r} is not a schedule: {why}.", hint=hint)


def _bad_duration(words: str, why: str) -> DefinitionError:
    hint = 'For instance "30s", "5m", "1h30m", "2d".'
    return DefinitionError("BAD_SCHEDULE", f"{words!r} is not a duration: {why}.", hint=hint)


def next_due(schedule: Every | Cron, last: datetime | None, now: datetime) -> datetime:
    """Return when a table is next due: at once if it never was refreshed; after a pause once, however long it was."""
    if last is None:
        return now
    return last + timedelta(seconds=schedule.seconds) if isinstance(schedule, Every) else schedule.after(last)
