"""What each optimisation is worth: the same queries over the same changes with one of them switched off at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.measure import Measurement, Variant
from bench.results import DIFFERENTIAL
from bench.sources import tpch_sources
from bench.tpch import mutation
from trickle import Trickle
from trickle.model.options import OPTIMISATIONS
from trickle.testing import tpch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.session import Session
    from bench.tpch import Pattern


def run_ablation(
    session: Session, queries: Sequence[str], scale: float, rate: float, pattern: Pattern, repeats: int
) -> None:
    """Measure a variant with everything on, and one for each optimisation without it."""
    part = session.part("ablation")
    facts: dict[str, str | int | float] = {"scale": scale, "rate": rate, "pattern": pattern, "repeats": repeats}
    run = session.begin(part, {**facts, "queries": ",".join(queries)})
    if run is None:
        return
    everything = Variant(DIFFERENTIAL, Trickle(session.spark), "auto")
    without = [Variant(name, Trickle(session.spark, disable={name}), "auto") for name in sorted(OPTIMISATIONS)]
    with tpch_sources(session.spark, session.folder, scale=scale, name="ablation") as sources:
        tpch.declare(everything.trickle, check=False)
        Measurement(
            session=session,
            run=run,
            queries={query: tpch.QUERIES[query] for query in queries},
            variants=[everything, *without],
            mutate=mutation(session.spark, sources, rate, pattern),
            repeats=repeats,
            title=f"ablation, {rate:.3g} {pattern}",
        ).measure()
