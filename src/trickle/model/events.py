"""What happens to stream tables while they run, told to whoever listens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from trickle.errors import TrickleError
    from trickle.model.report import RefreshReport, RunReport, VerifyReport
    from trickle.model.spec import ApplyPlan
    from trickle.model.suspension import Suspension

Trigger = Literal["creation", "manual", "schedule"]
"""Who asked for a refresh: a verb that made or altered the table, a person or program, or the loop."""


@dataclass(frozen=True, slots=True)
class RefreshStarted:
    """A refresh of a stream table began."""

    table: str
    trigger: Trigger
    at: datetime


@dataclass(frozen=True, slots=True)
class RefreshEnded:
    """A refresh of a stream table ended well, perhaps with nothing to do."""

    table: str
    trigger: Trigger
    started: datetime
    report: RefreshReport


@dataclass(frozen=True, slots=True)
class RefreshFailed:
    """A refresh of a stream table failed; nothing was committed."""

    table: str
    trigger: Trigger
    started: datetime
    seconds: float
    error: TrickleError


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run over several stream tables began."""

    tables: tuple[str, ...]
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run over several stream tables ended."""

    trigger: Trigger
    report: RunReport


@dataclass(frozen=True, slots=True)
class ApplyPlanned:
    """``apply`` has found out what it will do, and what that will take; nothing has changed yet."""

    plan: ApplyPlan


@dataclass(frozen=True, slots=True)
class Suspended:
    """A stream table is not refreshed any more until someone resumes it."""

    table: str
    suspension: Suspension


@dataclass(frozen=True, slots=True)
class Resumed:
    """A stream table is refreshed again."""

    table: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A verification found that a stream table is not what its query returns."""

    table: str
    report: VerifyReport


@dataclass(frozen=True, slots=True)
class Warned:
    """Something will go wrong if nobody looks after it.

    Attributes:
        code: ``RETENTION_SHORT``.
    """

    table: str
    code: str
    message: str


Event: TypeAlias = (
    RefreshStarted
    | RefreshEnded
    | RefreshFailed
    | RunStarted
    | RunEnded
    | ApplyPlanned
    | Suspended
    | Resumed
    | Mismatch
    | Warned
)


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
