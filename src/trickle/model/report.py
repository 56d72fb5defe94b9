"""What the verbs give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trickle.model.cost import Estimate
    from trickle.model.definition import RefreshMode
    from trickle.model.reason import Reason


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did.

    Attributes:
        table: The stream table.
        mode: ``differential``, ``full`` or ``no_data`` (nothing was new).
        reason: Why it was not differential; None if it was, or if nothing was new.
        rows_inserted: Rows that came into the stream table.
        rows_deleted: Rows that went.
        frontier: The version of each source that the table now equals.
        version: The stream table's own version.
        seconds: The whole time.
        steps: The seconds of each step, in order.
        changed: Netted changed rows read of each source, by a differential refresh.
        estimate: The seconds foreseen for either mode, which ``auto`` chose by; None where there was nothing to choose.
    """

    table: str
    mode: RefreshMode
    reason: Reason | None
    rows_inserted: int
    rows_deleted: int
    frontier: Mapping[str, int]
    version: int
    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """How a stream table compares with a recompute at the same source versions.

    Attributes:
        ok: True if both are the same multiset of rows, and the keys declared of the sources hold.
        rows: Rows in the stream table.
        missing: Rows of the query that the table lacks.
        extra: Rows of the table that the query does not give.
        missing_sample: The first five of the missing, as tuples.
        extra_sample: The first five of the extra.
        broken_keys: The declared keys of sources that do not hold, each with a value that shows it.
    """

    table: str
    ok: bool
    rows: int
    missing: int
    extra: int
    missing_sample: tuple[tuple[object, ...], ...] = ()
    extra_sample: tuple[tuple[object, ...], ...] = ()
    broken_keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Read as ``if t.verify(name)``."""
        return self.ok


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether a query can be maintained by its changes, and every obstacle if not."""

    differentiable: bool
    obstacles: tuple[Reason, ...]
    sources: tuple[str, ...]

    def __bool__(self) -> bool:
        """Read as ``if t.validate(sql)``."""
        return self.differentiable
