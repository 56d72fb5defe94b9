"""What the last verification of a stream table by the loop found: a property of the table itself."""

from __future__ import annotations

from typing import Final

from trickle.model.stored import Stored

VERIFIED_PROPERTY: Final = "trickle.verified"


class Verification(Stored):
    """The result of a verification.

    Attributes:
        at: When it was made, in UTC.
        ok: True if nothing was wrong.
        rows: Rows that were compared.
        missing: Rows of the query that the table lacked.
        extra: Rows of the table that the query did not return.
        part: One in so many keys was looked at; 1 if all were.
    """

    at: str
    ok: bool
    rows: int
    missing: int
    extra: int
    part: int = 1

    def __str__(self) -> str:
        """Say it in one line.

        >>> str(Verification(at="2026-01-01T00:00:00+00:00", ok=False, rows=10, missing=1, extra=0, part=5))
        'verified 2026-01-01T00:00:00+00:00 (one in 5 keys): 1 rows missing, 0 extra'
        """
        what = "ok" if self.ok else f"{self.missing} rows missing, {self.extra} extra"
        some = f" (one in {self.part} keys)" if self.part > 1 else ""
        return f"verified {self.at}{some}: {what}"


def read_verification(text: str | None) -> Verification | None:
    """Read the property of a table; None if it was never verified, or the property is not ours."""
    try:
        return None if text is None else Verification.model_validate_json(text)
    except ValueError:
        return None
