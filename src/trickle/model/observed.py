"""What ``status`` and ``history`` tell of stream tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trickle.model.definition import Mode

Health = Literal["ok", "behind", "late", "suspended", "failed", "broken"]


@dataclass(frozen=True, slots=True)
class SourceLag:
    """How far a stream table is behind one of its sources.

    Attributes:
        source: The source's name.
        included: The version that the stream table equals.
        newest: The source's newest version; None if it cannot be read.
        commits: How many commits changed rows of the source since then.
        oldest: When the first of these was made; None if there is none, or the log no longer has it.
        note: What else stands between them: the source is gone, was made anew, or went back to an older version.
    """

    source: str
    included: int
    newest: int | None
    commits: int
    oldest: datetime | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a stream table is suspended.

    Attributes:
        since: When it was suspended.
        cause: ``user``, ``failures``, ``fuse`` or ``replacement``.
        code: The code of the error, if one led to it.
        message: The reason that was given, or the text of the error.
    """

    since: datetime | None
    cause: str
    code: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How a stream table is.

    Attributes:
        table: Its name.
        health: ``ok``: it has all that its sources have. ``behind``: a source has committed since. ``late``: that should have
            come in by its schedule. ``suspended``: it waits for a person. ``failed``: the same, after failures.
            ``broken``: its log, its definition, its record or a source cannot be read.
        mode: ``auto``, ``differential`` or ``full``.
        schedule: When it is to be refreshed; None is by hand.
        version: Its newest version.
        last_refresh: When the last refresh that committed anything began.
        last_mode: ``differential`` or ``full``.
        last_reason: Why that refresh was full.
        last_inserted: Rows that it inserted; None if its commit does not say.
        last_deleted: Rows that it deleted.
        last_seconds: What it took up to its commit.
        age_seconds: How long ago it began.
        lag_seconds: How long ago the oldest commit was made that it does not have yet, also where one that it reads does
            not have it; 0 if it has all, None if that is not known.
        sources: How far it is behind each of its sources.
        next_due: When it is next due by its schedule; a moment that has passed is overdue.
        suspended: Why it is suspended; None if it is not.
        problem: What is broken, who wrote to it, or what is wrong with its rows: a change was passed over, or the last
            verification found differences. None if nothing is known to be.
    """

    table: str
    health: Health
    mode: Mode | None = None
    schedule: str | None = None
    version: int | None = None
    last_refresh: datetime | None = None
    last_mode: str | None = None
    last_reason: str | None = None
    last_inserted: int | None = None
    last_deleted: int | None = None
    last_seconds: float | None = None
    age_seconds: float | None = None
    lag_seconds: float | None = None
    sources: tuple[SourceLag, ...] = ()
    next_due: datetime | None = None
    suspended: Waiting | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PastRefresh:
    """One refresh of a stream table, as its commit tells.

    Attributes:
        table: The stream table.
        version: The version of the stream table that it made.
        started: When it began.
        committed: When it committed.
        mode: ``differential`` or ``full``; ``unknown`` if the record is of another version of Trickle.
        reason: Why it was full; None if it was not.
        rows_inserted: Rows inserted; None if the commit does not say.
        rows_deleted: Rows deleted.
        seconds: What it took up to its commit; None if the commit does not say.
        steps: The seconds of each step that had ended by then.
        frontier: The version of each source that the table then equalled.
        trigger: Who asked for it: ``creation``, ``manual`` or ``schedule``; None if the commit does not say.
    """

    table: str
    version: int
    started: datetime | None
    committed: datetime | None
    mode: str
    reason: str | None
    rows_inserted: int | None
    rows_deleted: int | None
    seconds: float | None
    steps: Mapping[str, float] = field(default_factory=dict)
    frontier: Mapping[str, int] = field(default_factory=dict)
    trigger: str | None = None
