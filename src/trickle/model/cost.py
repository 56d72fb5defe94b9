"""What refreshes of one table cost, learnt from its own: what mode ``auto`` chooses by.

Law    chosen = the mode of the lower estimate; full only if it is clearly lower, and differential takes more than a moment
       estimate(full)          = the last full one
       estimate(differential)  = on the line through what changes of the same sources took, by their rows;
                                 beyond the most rows known, as fast as the best queries are;
                                 half a full one more if state that was left behind must be brought up first

What is not known is thought to be fast, so that it is tried: it costs one slow refresh to learn better, and many to never
know. A mode's first refresh in a process also starts things up, so only a part of it counts. A mode that lost is measured
again after a while: each time it is not chosen, its estimate shrinks a little. To bring state up costs about a full
refresh; that only half of it is counted says that more changes like this one are expected, but not many.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import ConfigDict, Field

from trickle.model.options import DEFAULT, Options
from trickle.model.stored import Stored

_ROWS_A_SECOND: Final = 5_000_000
_ROWS_A_SECOND_BEYOND: Final = 500_000
_MOMENT: Final = 0.75
_CLEARLY: Final = 1.1
_FORGET: Final = {"differential": 0.97, "full": 0.99}
_COLD: Final = {"differential": 0.5, "full": 0.75}
_CATCH_UP: Final = 0.5
_WRONG: Final = 2.0
_MATTERS: Final = 0.5
"""Seconds by which an estimate must be off to be called wrong."""


class Estimate(Stored):
    """The seconds a refresh was thought to take in either mode; None where nothing is known."""

    differential: float
    full: float | None = None

    @property
    def prefers_full(self) -> bool:
        """True if recomputing is clearly cheaper, and the other mode takes more than a moment."""
        return self.full is not None and self.differential > max(_CLEARLY * self.full, _MOMENT)


class Change(Stored):
    """What changed since the last refresh: which sources, and how many rows of them together."""

    sources: tuple[str, ...]
    rows: int

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]]) -> Change:
        """Sum up the changed rows of each source.

        >>> Change.of([("b", 2), ("a", 1), ("c", 0)])
        Change(sources=('a', 'b'), rows=3)
        """
        changed = {name: count for name, count in rows if count}
        return cls(sources=tuple(sorted(changed)), rows=sum(changed.values()))

    def is_like(self, other: Change) -> bool:
        """Tell whether both are of the same sources and of about the same size."""
        return self.sources == other.sources and self._size == other._size

    @property
    def _size(self) -> int:
        return self.rows.bit_length() // 2


class Measured(Stored):
    """The seconds that a change took, or is thought to take."""

    change: Change
    seconds: float


class Costs(Stored):
    """The last measured seconds of a full refresh, and of differential ones by what had changed.

    Attributes:
        known: One for each kind of change, the latest last.
        warm: The modes that this process has used already.
    """

    # What another version learnt is advice, not state: it may be lost.
    model_config = ConfigDict(extra="ignore")

    full: float | None = None
    known: tuple[Measured, ...] = ()
    warm: frozenset[str] = Field(default=frozenset(), exclude=True)

    def estimate(self, change: Change, *, is_behind: bool = False, options: Options = DEFAULT) -> Estimate:
        """Foresee a refresh; ``is_behind`` says that there is state to be brought up first."""
        first = _CATCH_UP * (self.full or 0.0) if is_behind else 0.0
        return Estimate(differential=first + self._foreseen(change, options), full=self.full)

    def _foreseen(self, change: Change, options: Options) -> float:
        line = sorted((k.change.rows, k.seconds) for k in self.known if k.change.sources == change.sources)
        rows, seconds = 0, 0.0
        for more, longer in line:
            if change.rows <= more:
                share = (change.rows - rows) / max(more - rows, 1)
                return seconds + share * (longer - seconds)
            rows, seconds = more, longer
        rate = _ROWS_A_SECOND if change.rows <= options.driver_change_rows else _ROWS_A_SECOND_BEYOND
        return seconds + (change.rows - rows) / rate

    def after_differential(self, seconds: float, change: Change, options: Options = DEFAULT) -> Costs:
        """Learn from a differential refresh."""
        full = None if self.full is None else _FORGET["full"] * self.full
        costs = self.model_copy(update={"full": full})
        return costs._with(change, self._counted("differential", seconds), options)._warmed("differential")

    def after_full(self, seconds: float, instead_of: Change | None = None, options: Options = DEFAULT) -> Costs:
        """Learn from a full one; if it was chosen for its cost, differential comes nearer to its next try."""
        costs = self
        if instead_of is not None:
            costs = self._with(instead_of, _FORGET["differential"] * self._foreseen(instead_of, options), options)
        return costs.model_copy(update={"full": self._counted("full", seconds)})._warmed("full")

    def _with(self, change: Change, seconds: float, options: Options) -> Costs:
        others = [k for k in self.known if not k.change.is_like(change)]
        latest = [*others, Measured(change=change, seconds=round(seconds, 3))][-options.costs_kept :]
        return self.model_copy(update={"known": tuple(latest)})

    def _counted(self, mode: str, seconds: float) -> float:
        return seconds if mode in self.warm else _COLD[mode] * seconds

    def _warmed(self, mode: str) -> Costs:
        return self.model_copy(update={"warm": self.warm | {mode}})


def was_wrong(estimated: float, seconds: float) -> bool:
    """Tell whether an estimate was off by more than a factor of two, and by enough to matter."""
    return abs(estimated - seconds) > _MATTERS and not 1 / _WRONG <= seconds / max(estimated, 1e-9) <= _WRONG
