"""What refreshes of one table cost, learnt from its own: what mode ``auto`` chooses by.

Law    chosen = the mode of the lower estimate; full only if it is clearly lower, and differential takes more than a moment
       estimate(full)          = the last full one
       estimate(differential)  = the last differential one, scaled by the number of changed rows beyond what it had;
                                 before there was one, the rates of a small machine: slower once the rows are too many
                                 for the driver

A mode's first refresh in a process also starts things up, so only half of it counts. A mode that lost is measured again
after a while: each time it is not chosen, its estimate shrinks a little.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from trickle.model.stored import Stored

DRIVER_ROWS: Final = 1_000_000
"""Changes of more rows than this stay in the cluster."""

_ROWS_A_SECOND: Final = 500_000
_ROWS_A_SECOND_BEYOND: Final = 100_000
_LEAST_SECONDS: Final = 0.5
_MOMENT: Final = 1.0
_CLEARLY: Final = 1.1
_FORGET: Final = 0.97
_COLD: Final = 0.5
_WRONG: Final = 2.0


class Estimate(Stored):
    """The seconds a refresh was thought to take in either mode; None where nothing is known."""

    differential: float
    full: float | None = None

    @property
    def prefers_full(self) -> bool:
        """True if recomputing is clearly cheaper, and the other mode takes more than a moment."""
        return self.full is not None and self.differential > max(_CLEARLY * self.full, _MOMENT)


class Costs(Stored):
    """The last measured seconds of each mode, and the changed rows of the differential one.

    Attributes:
        warm: The modes that this process has used already.
    """

    full: float | None = None
    differential: float | None = None
    rows: int = 0
    warm: frozenset[str] = Field(default=frozenset(), exclude=True)

    def estimate(self, rows: int) -> Estimate:
        """Foresee a refresh of so many changed rows."""
        if self.differential is None:
            rate = _ROWS_A_SECOND if rows <= DRIVER_ROWS else _ROWS_A_SECOND_BEYOND
            return Estimate(differential=_LEAST_SECONDS + rows / rate, full=self.full)
        growth = max(1.0, rows / max(self.rows, 1000))
        return Estimate(differential=self.differential * growth, full=self.full)

    def after_differential(self, seconds: float, rows: int) -> Costs:
        """Learn from a differential refresh."""
        return self._learn("differential", seconds).model_copy(update={"rows": rows})

    def after_full(self, seconds: float, *, chosen: bool) -> Costs:
        """Learn from a full one; if it was ``chosen`` for its cost, the other mode comes nearer to its next try."""
        kept = self.differential * _FORGET if chosen and self.differential is not None else self.differential
        return self.model_copy(update={"differential": kept})._learn("full", seconds)

    def _learn(self, mode: str, seconds: float) -> Costs:
        counted = seconds if mode in self.warm else _COLD * seconds
        return self.model_copy(update={mode: counted, "warm": self.warm | {mode}})


def was_wrong(estimated: float, seconds: float) -> bool:
    """Tell whether an estimate was off by more than a factor of two, and by enough to matter."""
    return abs(estimated - seconds) > _LEAST_SECONDS and not 1 / _WRONG <= seconds / max(estimated, 1e-9) <= _WRONG
