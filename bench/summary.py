"""What follows from the stored numbers: medians, ratios, where the time goes."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.results import AUTO, DIFFERENTIAL, FULL, PLAIN

if TYPE_CHECKING:
    from bench.results import Case, Refreshed, Run

WEAK_RATIO: Final = 1.5
"""Below this a differential refresh is hardly worth having: the page lists it among the worst cases."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a table shows of one case.

    Attributes:
        full: Median seconds of the counted full refreshes; None if none counted.
        differential: The same of the differential twin.
        mode: How the differential twin was refreshed, with the reason if not by changes.
        worst_step: The step that takes most of its time, with its share.
    """

    name: str
    full: float | None
    differential: float | None
    mode: str
    worst_step: tuple[str, float] | None
    differences: int

    @property
    def ratio(self) -> float | None:
        """How many times faster the differential refresh is."""
        return ratio(self.full, self.differential)


def median(values: Iterable[float]) -> float | None:
    """Return the middle value; None of none.

    >>> median([3, 1, 2]), median([1, 2])
    (2, 1.5)
    """
    found = list(values)
    return statistics.median(found) if found else None


def quantile(values: Iterable[float], share: float) -> float | None:
    """Return the value that this share of the values does not exceed; None of none.

    >>> quantile([3, 1, 2, 4], 0.5), quantile([3, 1, 2], 1.0)
    (2, 3)
    """
    found = sorted(values)
    return found[max(0, math.ceil(share * len(found)) - 1)] if found else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of ratios, leaving out what was not measured; None of none.

    >>> geometric_mean([2, 8, None])
    4.0
    """
    found = [value for value in values if value is not None]
    return round(statistics.geometric_mean(found), 12) if found else None


def ratio(above: float | None, below: float | None) -> float | None:
    """Divide; None if one of them was not measured."""
    return above / below if above is not None and below else None


def refreshes(case: Case, variant: str) -> Sequence[Refreshed]:
    """Return the counted refreshes of a variant."""
    return [cycle.refreshes[variant] for cycle in case.counted if variant in cycle.refreshes]


def median_seconds(case: Case, variant: str) -> float | None:
    """Return the median of the counted refreshes of a variant."""
    return median(refreshed.seconds for refreshed in refreshes(case, variant))


def beside_plain(case: Case) -> float | None:
    """Return how many times longer the differential refreshes take than those of a plain twin."""
    return ratio(median_seconds(case, DIFFERENTIAL), median_seconds(case, PLAIN))


def spent_seconds(case: Case) -> list[float]:
    """Return the seconds of each differential refresh after the warm-up, those that found nothing new included."""
    return [cycle.refreshes[DIFFERENTIAL].seconds for cycle in case.cycles if not cycle.warm_up]


def full_seconds(case: Case) -> float | None:
    """Return the median of the full refreshes, those of cycles that only they count in included."""
    return median(cycle.refreshes[FULL].seconds for cycle in case.cycles if FULL in cycle.refreshes)


def mean_steps(case: Case, variant: str = DIFFERENTIAL) -> Mapping[str, float]:
    """Return the mean seconds of each step of the counted refreshes of a variant."""
    found = refreshes(case, variant)
    total: Counter[str] = Counter()
    for refreshed in found:
        total.update(refreshed.steps)
    return {step: seconds / len(found) for step, seconds in total.items()}


def breakdown(cases: Iterable[Case], variant: str = DIFFERENTIAL) -> Mapping[str, float]:
    """Return the seconds of each step, summed over cases, longest first."""
    total: Counter[str] = Counter()
    for case in cases:
        total.update(mean_steps(case, variant))
    return dict(total.most_common())


def line_of(case: Case) -> Line:
    """Sum up a case with a full and a differential twin."""
    steps = breakdown([case])
    first = next(iter(steps), None)
    return Line(
        name=case.name,
        full=median_seconds(case, FULL),
        differential=median_seconds(case, DIFFERENTIAL),
        mode=_mode(case),
        worst_step=(first, steps[first] / sum(steps.values())) if first and steps[first] else None,
        differences=case.differences,
    )


def lines_of(run: Run) -> Sequence[Line]:
    """Sum up every case of a run."""
    return [line_of(case) for case in run.cases]


def worst(lines: Iterable[Line]) -> Line | None:
    """Return the line with the smallest ratio."""
    return min((line for line in lines if line.ratio is not None), key=lambda line: line.ratio or 0.0, default=None)


def weak(lines: Iterable[Line]) -> Sequence[Line]:
    """Return the lines whose ratio is below ``WEAK_RATIO``, smallest first."""
    found = [line for line in lines if line.ratio is not None and line.ratio < WEAK_RATIO]
    return sorted(found, key=lambda line: line.ratio or 0.0)


def create_ratio(case: Case) -> float | None:
    """Return how many times longer creating the stream table takes than creating a plain table of the same query."""
    return ratio(case.create.get(DIFFERENTIAL), case.create.get(PLAIN))


def auto_ratio(case: Case) -> float | None:
    """Return how many times longer mode ``auto`` takes than the better of the two others, where all were run."""
    full, differential, auto = (median_seconds(case, label) for label in (FULL, DIFFERENTIAL, AUTO))
    return ratio(auto, min(full, differential)) if full and differential else None


def slowdowns(case: Case) -> Mapping[str, float | None]:
    """Return how many times slower each variant is than the differential one with everything switched on."""
    base = median_seconds(case, DIFFERENTIAL)
    labels = {label: None for cycle in case.cycles for label in cycle.refreshes if label != DIFFERENTIAL}
    return {label: ratio(median_seconds(case, label), base) for label in labels}


def _mode(case: Case) -> str:
    if case.error:
        return "error"
    found = {
        refreshed.mode if refreshed.reason is None else f"{refreshed.mode}: {refreshed.reason}"
        for refreshed in refreshes(case, DIFFERENTIAL)
    }
    return ", ".join(sorted(found)) or "no_data"
