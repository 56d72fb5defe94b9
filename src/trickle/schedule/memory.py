"""What the loop remembers of a stream table: when it was last brought up, where its sources were, how often it failed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.engine.transient import is_transient
from trickle.errors import TrickleError
from trickle.refresh.record import read_record

if TYPE_CHECKING:
    from trickle.engine.graph import Member

_WAIT_SECONDS: Final = 300.0
"""How long a failing table waits at most."""

_TRANSIENT_SECONDS: Final = 60.0
"""The same, if what failed is likely to pass."""

_NOT_ITS_OWN: Final = frozenset({"SUSPENDED", "FUSE_BLOWN", "CANCELLED"})
"""Why a table was not refreshed without having failed itself, or being suspended for it already."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of one table.

    Attributes:
        last: When it was last brought up to its sources; None if never.
        seen: The versions of what it reads, as they were then.
        failures: How often it has failed since, in a row, for reasons that do not pass by themselves.
        retries: How often in all it was tried since.
        not_before: When it is tried again.
        waits: True if it is what it reads that failed: it is tried with that.
        failed_at: Its own version when it failed; another one since tells that somebody has refreshed it.
    """

    last: datetime | None
    seen: Mapping[str, int] = field(default_factory=dict)
    failures: int = 0
    retries: int = 0
    not_before: datetime | None = None
    waits: bool = False
    failed_at: int | None = None

    def after_failure(self, error: TrickleError, now: datetime, version: int | None = None) -> Memory:
        """Wait twice as long as the last time; count what does not pass by itself."""
        if error.code == "UPSTREAM_FAILED":
            return replace(self, waits=True, not_before=now + timedelta(seconds=1))
        retries = self.retries + 1
        most = _TRANSIENT_SECONDS if is_transient(error) else _WAIT_SECONDS
        again = now + timedelta(seconds=min(2.0 ** min(retries, 20), most))
        if is_transient(error) or error.code in _NOT_ITS_OWN:
            return replace(self, retries=retries, not_before=again, waits=False, failed_at=version)
        failures = self.failures + 1
        return replace(self, failures=failures, retries=retries, not_before=again, waits=False, failed_at=version)


def recall(member: Member) -> Memory:
    """Read from a table's own record when it was last brought up, and where its sources were then."""
    try:
        record = read_record(member.table.target.name, member.table.target.state())
    except (TrickleError, OSError):
        record = None  # the refresh itself says what is wrong
    if record is None:
        return Memory(None)
    seen = {member.reads[name]: at.version for name, at in record.frontier.items() if name in member.reads}
    return Memory(datetime.fromisoformat(record.started), seen)
