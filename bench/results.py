"""The numbers of a benchmark, as stored in ``benchmarks.json``: all raw measurements, nothing computed.

Results          the file: parts by name (tpch, cost, micro, growth, ablation)
  Part           runs of one kind
    Run          cases over one set of sources, changed once per cycle for all of them
      Origin     where, when and by which command it was made
      Case       one query as several variants: a full and a differential twin, say
        Cycle    one refresh of each variant after the sources changed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

FULL: Final = "full"
DIFFERENTIAL: Final = "differential"
AUTO: Final = "auto"
PLAIN: Final = "plain"
"""The variants of a query: refreshed in full, by its changes, in the mode that Trickle chooses where the other two are
forced, and a CREATE TABLE AS SELECT made for comparison."""

OTHER: Final = "other"
"""The step that holds what a user waits for outside the steps that a refresh reports."""


class Stored(BaseModel):
    """A part of the file; a misspelt or unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Refreshed(Stored):
    """One refresh.

    Attributes:
        seconds: By the clock on the wall, around the call.
        mode: What it did: ``differential``, ``full`` or ``no_data``.
        reason: Code of the reason why it was not differential.
        changed: Changed rows of the sources it read, if it was differential.
        steps: Seconds of each step; they add up to ``seconds``.
        requests: What it asked an object store for; None if that was not counted.
    """

    seconds: float
    mode: str
    reason: str | None = None
    rows_inserted: int = 0
    rows_deleted: int = 0
    changed: int = 0
    steps: dict[str, float] = {}
    requests: int | None = None

    @property
    def had_data(self) -> bool:
        """False if no source had anything new for it."""
        return self.mode == FULL or (self.mode == DIFFERENTIAL and self.changed > 0)


class Cycle(Stored):
    """One refresh of each variant, in the order they ran.

    Attributes:
        differences: Rows in which the variants differ from the first one, afterwards; None if not compared.
    """

    number: int
    warm_up: bool
    refreshes: dict[str, Refreshed]
    differences: int | None = None

    @property
    def had_data(self) -> bool:
        """False if some variant found nothing new, so that there is nothing to compare."""
        return all(refreshed.had_data for refreshed in self.refreshes.values())


class Case(Stored):
    """One query.

    Attributes:
        create: Seconds to make each variant.
        error: What stopped it, if something did.
    """

    name: str
    create: dict[str, float] = {}
    error: str | None = None
    cycles: list[Cycle] = []

    @property
    def counted(self) -> Sequence[Cycle]:
        """The cycles that count: not the warm-up, and something was new."""
        return [cycle for cycle in self.cycles if not cycle.warm_up and cycle.had_data]

    @property
    def differences(self) -> int:
        """Rows in which variants differed, over all cycles, the warm-up included."""
        return sum(cycle.differences or 0 for cycle in self.cycles)


class Origin(Stored):
    """Where, when and by which command a run was made."""

    command: str
    date: str
    machine: dict[str, str | int | float]

    def is_like(self, other: Origin) -> bool:
        """Return whether numbers of both can stand beside each other: machine and versions are the same, whatever the load."""
        return {**self.machine, "load_average": 0} == {**other.machine, "load_average": 0}


class Run(Stored):
    """Cases over one set of sources.

    Attributes:
        facts: What tells this run from the others of its part: scale, rate, pattern, rows …
        peak_memory: The most that each process of the driver had resident so far, in GiB.
        resident: What each had resident at each look after the warm-up, and the JVM's objects took, in MiB, where asked.
        is_complete: False while it runs, and after an interruption.
    """

    facts: dict[str, str | int | float]
    origin: Origin
    cases: list[Case] = []
    peak_memory: dict[str, float] = {}
    resident: dict[str, list[int]] = {}
    is_complete: bool = False

    def case(self, name: str) -> Case | None:
        """Return a case by name."""
        return next((case for case in self.cases if case.name == name), None)


class Part(Stored):
    """Runs of one kind."""

    runs: list[Run] = []

    def begin(self, facts: dict[str, str | int | float], origin: Origin, *, resume: bool) -> Run | None:
        """Begin a run in the place of an earlier one of the same facts; None if that is as good and is to be kept."""
        place = next((at for at, run in enumerate(self.runs) if run.facts == facts), len(self.runs))
        before, new = self.runs[place : place + 1], Run(facts=facts, origin=origin)
        if resume and before and before[0].is_complete and before[0].origin.is_like(origin):
            return None
        self.runs[place : place + 1] = [new]
        return new


class Results(Stored):
    """The whole file."""

    format: int = 2
    parts: dict[str, Part] = {}


def read(file: Path) -> Results:
    """Read stored results; empty ones if there is no file."""
    return Results.model_validate_json(file.read_text("utf-8")) if file.exists() else Results()


def write(file: Path, results: Results) -> None:
    """Store results: the whole file or, if interrupted, the one before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_text(results.model_dump_json(indent=1, exclude_defaults=True) + "\n", "utf-8")
    unfinished.replace(file)
