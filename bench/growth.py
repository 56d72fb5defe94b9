"""The same number of changed order lines under ever larger sources: a full refresh grows with them, a change should not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.measure import Measurement
from bench.sources import tpch_sources
from bench.tpch import mutation, twins
from trickle.testing import tpch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.session import Session

LINES: Final = 1000
QUERIES: Final = ("q01", "q06")
"""Sums over order lines that changes are added to, without looking at other lines."""


def run_growth(session: Session, scales: Sequence[float], repeats: int) -> None:
    """Measure each scale."""
    from deltalake import DeltaTable

    part = session.part("growth")
    for scale in scales:
        run = session.begin(part, {"scale": scale, "lines": LINES, "repeats": repeats})
        if run is None:
            continue
        name = f"growth_{scale:g}".replace(".", "_")
        with tpch_sources(session.spark, session.folder, scale=scale, name=name) as sources:
            rate = LINES / DeltaTable(sources.path("lineitem")).count()
            Measurement(
                session=session,
                run=run,
                queries={query: tpch.QUERIES[query] for query in QUERIES},
                variants=twins(session.spark),
                mutate=mutation(session.spark, sources, rate, "random", only="RF3"),
                repeats=repeats,
                title=f"growth, scale {scale:g}",
            ).measure()
