"""The cost model of mode ``auto``: it learns from the refreshes of the table itself.

Law    chosen = the mode with the lower estimate; full only if it is clearly lower and differential takes more than a moment
       estimate(full)          = the last full refresh
       estimate(differential)  = on the line through earlier changes of the same sources, by their rows;
                                 beyond the largest of them, as fast as the best queries are;
                                 plus half a full refresh if state tables must catch up first

An unknown cost is assumed to be low, so that the mode is tried: one slow refresh teaches better, and never trying teaches
nothing. The first refresh of a mode in a process includes start-up, so only a part of it counts. A mode that lost is tried
again after a while: each time it is not chosen, its estimate shrinks a little. Catching up costs about a full refresh; only
half of it counts because more changes like this one will probably follow, but not many.
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
"""An estimate that is off by fewer seconds is not called wrong."""


class Estimate(Stored):
    """The estimated seconds of a refresh in both modes; None if unknown."""

    differential: float
    full: float | None = None

    @property
    def prefers_full(self) -> bool:
        """True if recomputing is clearly cheaper and the other mode takes more than a moment."""
        return self.full is not None and self.differential > max(_CLEARLY * self.full, _MOMENT)


class Change(Stored):
    """What changed since the last refresh: which sources, and how many rows in all."""

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
        """Return whether both affect the same sources and have about the same size."""
        return self.sources == other.sources and self._size == other._size

    @property
    def _size(self) -> int:
        return self.rows.bit_length() // 2


class Measured(Stored):
    """The measured or estimated seconds of a change."""

    change: Change
    seconds: float


class Costs(Stored):
    """The last measured seconds of a full refresh, and of differential ones by kind of change.

    Attributes:
        known: One entry for each kind of change, the latest last.
        warm: The modes that this process has already used.
    """

    # Costs that another version recorded are advice, not state: they may be lost.
    model_config = ConfigDict(extra="ignore")

    full: float | None = None
    known: tuple[Measured, ...] = ()
    warm: frozenset[str] = Field(default=frozenset(), exclude=True)

    def estimate(self, change: Change, *, is_behind: bool = False, options: Options = DEFAULT) -> Estimate:
        """Estimate a refresh; with ``is_behind``, state tables must catch up first."""
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
        """Learn from a full refresh; if it was chosen for its cost, the differential estimate shrinks."""
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
    """Return whether an estimate was off by more than a factor of two, and by enough to matter."""
    return abs(estimated - seconds) > _MATTERS and not 1 / _WRONG <= seconds / max(estimated, 1e-9) <= _WRONG
