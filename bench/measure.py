"""One run: make the variants of every query, then cycles of changing the sources, refreshing and comparing.

Within a cycle the sources change once, untimed; then each query's variants are refreshed one after the other. The order
of the variants turns by one from cycle to cycle, so that none always pays for being first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bench.results import DIFFERENTIAL, FULL, OTHER, PLAIN, Case, Cycle, Refreshed, Run
from bench.show import console, doing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.session import Session
    from trickle import Trickle
    from trickle.model.definition import Mode

FLOAT_TOLERANCE: Final = 1e-9
MAX_DIFFERENCES: Final = 10_000
"""Rows that are looked at one by one, to see whether they differ only by the order floats were added in."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of maintaining a query."""

    label: str
    trickle: Trickle
    mode: Mode


@dataclass(slots=True)
class Measurement:
    """Queries over sources in the current schema, each in several variants; the first variant is the reference.

    Attributes:
        mutate: Changes the sources; given the number of the cycle, from 1.
        repeats: Cycles that count, after one to warm up.
        title: Says on the console what is being run.
        is_plain_timed: Time a CREATE TABLE AS SELECT of each query too.
    """

    session: Session
    run: Run
    queries: Mapping[str, str]
    variants: Sequence[Variant]
    mutate: Callable[[int], object]
    repeats: int
    title: str
    is_plain_timed: bool = False

    def measure(self) -> None:
        """Fill the run."""
        for place, name in enumerate(self.queries):
            with doing(f"{self.title}: creating {name}"):
                case = Case(name=name)
                self.run.cases.append(case)
                self._guard(case, partial(self._create, case, place))
        for number in range(1, self.repeats + 2):
            with doing(f"{self.title}: cycle {number} of {self.repeats + 1}, changing the sources"):
                self.mutate(number)
            for case in self.run.cases:
                if case.error is None:
                    with doing(f"{self.title}: cycle {number} of {self.repeats + 1}, {case.name}"):
                        self._guard(case, partial(self._cycle, case, number))
                    _tell(self.title, case)
        self.session.end(self.run)

    def _guard(self, case: Case, work: Callable[[], None]) -> None:
        """One query that fails must not cost the numbers of the others."""
        try:
            work()
        except Exception as error:
            first_line = next(iter(str(error).splitlines()), "")
            case.error = f"{type(error).__name__}: {first_line}"
            console.print(f"  [red]{self.title}: {case.name}: {case.error}[/]")
        self.session.save()

    def _create(self, case: Case, place: int) -> None:
        """Make the variants; the first warms up for the query, the order of the others alternates by query."""
        query, spark = self.queries[case.name], self.session.spark
        work: dict[str, Callable[[], Any]] = {
            v.label: partial(v.trickle.create, f"{case.name}_{v.label}", query, mode=v.mode) for v in self.variants
        }
        if self.is_plain_timed:
            plain, columns = f"{case.name}_{PLAIN}", spark.sql(query).columns
            # A column that is called sum(x) needs its name mapped, in a plain table too.
            mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if "(" in str(columns) else ""
            work[PLAIN] = partial(spark.sql, f"CREATE TABLE {plain} USING delta {mapped} AS {query}")
        first, *others = work
        for label in [first, *(others if place % 2 else reversed(others))]:
            begun = time.perf_counter()
            work[label]()
            case.create[label] = time.perf_counter() - begun
        if self.is_plain_timed:
            spark.sql(f"DROP TABLE {plain}")

    def _cycle(self, case: Case, number: int) -> None:
        turn = number % len(self.variants)
        ordered = [*self.variants[turn:], *self.variants[:turn]]
        found = {v.label: refresh(v.trickle, f"{case.name}_{v.label}") for v in ordered}
        reference, *others = (f"{case.name}_{v.label}" for v in self.variants)
        differing = sum(count_differences(self.session.spark, reference, other) for other in others)
        case.cycles.append(Cycle(number=number, warm_up=number == 1, refreshes=found, differences=differing))


def refresh(trickle: Trickle, table: str, *, full: bool = False) -> Refreshed:
    """Refresh a stream table by the clock on the wall."""
    begun = time.perf_counter()
    report = trickle.refresh(table, full=full)
    seconds = time.perf_counter() - begun
    steps = dict(report.steps)
    return Refreshed(
        seconds=seconds,
        mode=report.mode,
        reason=report.reason.code if report.reason else None,
        rows_inserted=report.rows_inserted,
        rows_deleted=report.rows_deleted,
        changed=sum(report.changed.values()),
        steps={**steps, OTHER: max(0.0, seconds - sum(steps.values()))},
    )


def count_differences(spark: SparkSession, left: str, right: str) -> int:
    """Count the rows, with multiplicities, that one table has and the other has not; floats may differ in the last digits."""
    from pyspark.sql import functions as F

    both = (
        spark.table(left).withColumn("__weight", F.lit(1)).union(spark.table(right).withColumn("__weight", F.lit(-1)))
    )
    columns = [F.col(f"`{column}`") for column in both.columns[:-1]]
    uneven = both.groupBy(*columns).agg(F.sum("__weight").alias("__weight")).where("__weight <> 0")
    rows = [tuple(row) for row in uneven.limit(MAX_DIFFERENCES).collect()]
    if len(rows) == MAX_DIFFERENCES:
        return MAX_DIFFERENCES
    missing = [row[:-1] for row in rows for _ in range(max(0, row[-1]))]
    extra = [row[:-1] for row in rows for _ in range(max(0, -row[-1]))]
    return unpaired(missing, extra)


def unpaired(left: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]]) -> int:
    """Count the rows of two bags that find no partner, equal but for the last digits of floats, in the other.

    >>> unpaired([(1, 0.1 + 0.2)], [(1, 0.3)]), unpaired([(1, 0.1)], [(1, 0.2)])
    (0, 2)
    """
    lonely = list(right)
    alone = 0
    for row in left:
        partner = next((at for at, other in enumerate(lonely) if _close(row, other)), None)
        if partner is None:
            alone += 1
        else:
            del lonely[partner]
    return alone + len(lonely)


def _close(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=FLOAT_TOLERANCE) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return len(left) == len(right) and all(map(_close, left, right))
    return bool(left == right)


@contextmanager
def schema(spark: SparkSession, name: str, location: str | None = None) -> Iterator[None]:
    """Work in a schema of its own, which is dropped with its tables at the end."""
    spark.sql(f"CREATE DATABASE {name}" + (f" LOCATION '{location}'" if location else ""))
    spark.sql(f"USE {name}")
    try:
        yield
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {name} CASCADE")


def _tell(title: str, case: Case) -> None:
    if case.error or not case.cycles:
        return
    cycle = case.cycles[-1]
    times = ", ".join(f"{label} {refreshed.seconds:.2f} s" for label, refreshed in sorted(cycle.refreshes.items()))
    notes = [f"{cycle.differences} rows differ"] if cycle.differences else []
    notes += ["warm-up"] if cycle.warm_up else []
    notes += [] if cycle.had_data else ["no data"]
    fallen_back = cycle.refreshes.get(DIFFERENTIAL)
    notes += [f"in full: {fallen_back.reason}"] if fallen_back and fallen_back.mode == FULL else []
    note = f" [yellow]({', '.join(notes)})[/]" if notes else ""
    console.print(f"  {title}, cycle {cycle.number}: {case.name:<16} {times}{note}", soft_wrap=True)
