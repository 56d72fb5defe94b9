"""The TPC-H queries, each as a full and a differential twin, for each rate and pattern of change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from bench.measure import Measurement, Variant
from bench.results import AUTO, DIFFERENTIAL, FULL
from bench.sources import tpch_sources
from trickle import Trickle
from trickle.testing import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.session import Session
    from trickle.model.definition import Mode

Pattern = Literal["random", "recent"]
TwinMode = Literal["auto", "differential", "both"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run.

    Attributes:
        disable: Optimisations that the differential twin goes without; the full one always has all.
        mode: Of the differential twin: ``auto``, or ``differential``, which fails rather than recompute. ``both`` makes
            one of each, to see whether ``auto`` chooses well.
        keys: Declare the primary and foreign keys that the standard gives its tables.
        plain: Time a plain CREATE TABLE AS of each query too.
    """

    queries: Sequence[str]
    scale: float
    rates: Sequence[float]
    patterns: Sequence[Pattern]
    repeats: int
    disable: Collection[str] = ()
    mode: TwinMode = "auto"
    keys: bool = True
    plain: bool = True


def run_tpch(session: Session, choice: Choice) -> None:
    """Measure every rate and pattern."""
    part = session.part("tpch")
    for rate in choice.rates:
        for pattern in choice.patterns:
            facts: dict[str, str | int | float] = {
                "scale": choice.scale,
                "rate": rate,
                "pattern": pattern,
                "repeats": choice.repeats,
                "mode": choice.mode,
                "keys": choice.keys,
                "disable": ",".join(sorted(choice.disable)),
                "queries": ",".join(choice.queries),
            }
            run = session.begin(part, facts)
            if run is None:
                continue
            name = f"tpch_{pattern}_{rate:g}".translate(str.maketrans(".-", "__"))
            with tpch_sources(session.spark, session.folder, scale=choice.scale, name=name) as sources:
                if choice.keys:
                    tpch.declare(Trickle(session.spark), check=False)
                Measurement(
                    session=session,
                    run=run,
                    queries={query: tpch.QUERIES[query] for query in choice.queries},
                    variants=twins(session.spark, choice.mode, choice.disable),
                    mutate=mutation(session.spark, sources, rate, pattern),
                    repeats=choice.repeats,
                    title=f"{rate:.3g} {pattern}",
                    is_plain_timed=choice.plain,
                ).measure()


def twins(spark: SparkSession, mode: TwinMode = "auto", disable: Collection[str] = ()) -> Sequence[Variant]:
    """Return the full and the differential twin, and with ``both`` the one that chooses."""
    full = Variant(FULL, Trickle(spark), "full")
    if mode == "both":
        modes: dict[str, Mode] = {DIFFERENTIAL: "differential", AUTO: "auto"}
    else:
        modes = {DIFFERENTIAL: mode}
    return (full, *(Variant(label, Trickle(spark, disable=disable), chosen) for label, chosen in modes.items()))


def mutation(
    spark: SparkSession, sources: tpch.Sources, rate: float, pattern: Pattern, *, only: str | None = None
) -> Callable[[int], object]:
    """Return the function that changes the sources in a cycle.

    No nation is renamed: that would reach a 25th of all customers and suppliers, whatever the rate. Above scale 1 Spark
    commits the changes, since delta-rs holds them in memory.
    """
    change = tpch.Mutation(rate=rate, pattern=pattern, renamed_nations=0)
    return partial(tpch.mutate, sources, change, only=only, spark=spark if sources.scale > 1 else None)
