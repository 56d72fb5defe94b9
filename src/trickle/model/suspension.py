"""A stream table that waits for a person: since when, and why. It is a property of the table itself."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from trickle.errors import StateError
from trickle.model.stored import Stored

Cause = Literal["user", "failures", "fuse", "replacement"]

SUSPENDED_PROPERTY: Final = "trickle.suspended"


class Suspension(Stored):
    """Why a stream table is not refreshed.

    Attributes:
        since: When it was suspended, in UTC.
        cause: ``user``, someone asked for it; ``failures``, the loop gave up; ``fuse``, a change was too big;
            ``replacement``, another query is being computed for it, while refreshes stay away.
        code: Of the last error.
        message: The last error, or what the user said.
        at: For a blown fuse, the versions of the sources up to which the change that waits goes; None if it cannot be
            pinned.
        until: When it ends by itself, in UTC; None if only ``resume`` ends it.
    """

    since: str
    cause: Cause
    code: str | None = None
    message: str | None = None
    at: dict[str, int] | None = None
    until: str | None = None

    def is_over(self, now: datetime) -> bool:
        """Return whether it has ended by itself."""
        return self.until is not None and now >= datetime.fromisoformat(self.until)

    def __str__(self) -> str:
        """Say it in one line.

        >>> str(Suspension(since="2026-01-01T00:00:00+00:00", cause="failures", code="DIVIDE_BY_ZERO", message="zero"))
        'suspended since 2026-01-01T00:00:00+00:00 after failures: [DIVIDE_BY_ZERO] zero'
        """
        why = {"user": "by a user", "failures": "after failures", "fuse": "by its fuse"}.get(
            self.cause, "while its query is replaced"
        )
        said = " ".join(part for part in (f"[{self.code}]" if self.code else "", self.message or "") if part)
        return f"suspended since {self.since} {why}" + (f": {said}" if said else "")


def read_suspension(table: str, text: str | None) -> Suspension | None:
    """Read the property of a table; None if it is active.

    Raises:
        StateError: ``BAD_SUSPENSION``.
    """
    if text is None:
        return None
    try:
        return Suspension.model_validate_json(text)
    except ValueError as error:
        message = f"the property {SUSPENDED_PROPERTY} of stream table '{table}' cannot be read."
        raise StateError("BAD_SUSPENSION", message, hint=f"resume({table!r}) takes it away.") from error
