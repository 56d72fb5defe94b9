"""The 22 TPC-H queries as stream tables, in five phases.

    phase 1   each query on its own: a whole cycle of inserts, updates and deletes in every table, then one refresh.
              Keys are drawn from all over the tables; sources have a change feed.
    phase 2   all queries at once on shared sources: every refresh function is followed by a refresh of all, so they
              meet changes that only insert, only delete or only update, and changes that do not concern them.
              Keys are recent ones; Spark writes the changes, with deletion vectors.
    phase 3   a full and a differential twin of each query, equal after every cycle. Sources have no change feed; their
              keys are declared.
    phase 4   phase 1 at a scale where tables are too big to be read whole: look-ups find what a change meets, remember
              it, and Spark computes what the driver does not take.
    phase 5   phase 1 under regimes, which take those ways and others at any scale: each query under one of them, a few
              that have most of what the others have under all.

``TPCH_SCALE`` and ``TPCH_CYCLES`` set the size, ``TPCH_LARGE_SCALE`` that of phase 4;
``TPCH_QUERIES=q03,q18`` runs some of the queries.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import trickle
from trickle.testing import tpch
from trickle.testing.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SCALE = float(os.environ.get("TPCH_SCALE", "0.01"))
LARGE_SCALE = float(os.environ.get("TPCH_LARGE_SCALE", "0.1"))
CYCLES = int(os.environ.get("TPCH_CYCLES", "3"))
QUERIES = [name for name in tpch.QUERIES if name in os.environ.get("TPCH_QUERIES", name).split(",")]
STEPS = range(CYCLES + 1)
"""Step 0 creates the stream tables, the others are cycles of changes."""

LIMITED = [name for name in REGIMES if name != "default"]
TYPICAL = ("q03", "q13", "q15", "q21")
"""Joins and groups with a top-k, a left join under two aggregates, a scalar subquery over a CTE, EXISTS and NOT EXISTS."""
UNDER = [
    (query, regime)
    for at, query in enumerate(QUERIES)
    for regime in (LIMITED if query in TYPICAL else [LIMITED[at % len(LIMITED)]])
]
ONE_BY_ONE = [(cycle, name) for cycle in range(1, CYCLES + 1) for name in tpch.REFRESH_FUNCTIONS]


@dataclass
class Phase:
    """Stream tables over their own sources, in a schema of their own."""

    spark: SparkSession
    schema: str
    sources: tpch.Sources
    mutation: tpch.Mutation
    stream_tables: trickle.Trickle
    created: set[str] = field(default_factory=set)
    rows_changed: Counter[str] = field(default_factory=Counter)

    @classmethod
    @contextmanager
    def start(
        cls,
        spark: SparkSession,
        location: Path,
        schema: str,
        mutation: tpch.Mutation,
        *,
        scale: float = SCALE,
        change_feed: bool = True,
        deletion_vectors: bool = False,
    ) -> Iterator[Phase]:
        spark.sql(f"CREATE DATABASE {schema}")
        with using(spark, schema):
            sources = tpch.load(
                spark, scale=scale, location=location, change_feed=change_feed, deletion_vectors=deletion_vectors
            )
        yield cls(spark, schema, sources, mutation, trickle.Trickle(spark))
        spark.sql(f"DROP DATABASE {schema} CASCADE")

    def create(self, query: str, *, mode: str = "differential", suffix: str = "") -> str:
        with using(self.spark, self.schema):
            self.stream_tables.create(query + suffix, tpch.QUERIES[query], mode=mode)
        self.created.add(query + suffix)
        return f"{self.schema}.{query}{suffix}"

    def refresh(self, query: str, *, suffix: str = "") -> trickle.RefreshReport:
        assert query + suffix in self.created, f"{query}{suffix} was not created"
        report = self.stream_tables.refresh(f"{self.schema}.{query}{suffix}")
        self.rows_changed[query] += report.rows_inserted + report.rows_deleted
        return report

    def verify(self, query: str, when: str) -> str:
        """Return the mismatch between stream table and recompute as text, empty if they agree."""
        found = self.stream_tables.verify(f"{self.schema}.{query}")
        return (
            ""
            if found.ok
            else mismatch(query, when, found.missing, found.missing_sample, found.extra, found.extra_sample)
        )

    def rows(self, query: str, *, suffix: str = "") -> Counter[tuple[object, ...]]:
        return bag(self.spark, f"SELECT * FROM {self.schema}.{query}{suffix}")

    def recompute(self, query: str) -> Counter[tuple[object, ...]]:
        with using(self.spark, self.schema):
            return bag(self.spark, tpch.QUERIES[query])


@contextmanager
def using(spark: SparkSession, schema: str) -> Iterator[None]:
    before = spark.catalog.currentDatabase()
    spark.sql(f"USE {schema}")
    try:
        yield
    finally:
        spark.sql(f"USE {before}")


def bag(spark: SparkSession, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in spark.sql(query).collect())


def mismatch(query, when, missing, missing_sample, extra, extra_sample) -> str:
    lines = [f"{query}, {when}: {missing} rows missing, {extra} extra"]
    lines += [f"  missing {row}" for row in missing_sample[:5]]
    lines += [f"  extra   {row}" for row in extra_sample[:5]]
    return "\n".join(lines)


def difference(query: str, when: str, expected: Counter, found: Counter) -> str:
    """Return the difference of two bags of rows as text, empty if they are equal."""
    missing, extra = expected - found, found - expected
    if not missing and not extra:
        return ""
    return mismatch(query, when, missing.total(), list(missing.elements()), extra.total(), list(extra.elements()))


# -- phase 1


@pytest.fixture(scope="module")
def alone(spark, tmp_path_factory) -> Iterator[Phase]:
    with Phase.start(spark, tmp_path_factory.mktemp("tpch"), "tpch_alone", tpch.Mutation()) as phase:
        yield phase


@pytest.fixture(
    scope="module",
    params=[pytest.param(step, marks=pytest.mark.slow if step > 1 else (), id=f"cycle{step}") for step in STEPS],
)
def alone_cycle(alone, request) -> int:
    if request.param:
        tpch.mutate(alone.sources, alone.mutation, request.param)
    return request.param


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_follows_its_sources(alone, alone_cycle, query):
    when = f"cycle {alone_cycle}"

    if alone_cycle == 0:
        alone.create(query)
        return
    report = alone.refresh(query)

    assert report.mode == "differential", f"{query}, {when}: {report.mode}, {report.reason}"
    assert not (text := alone.verify(query, when)), text
    if alone_cycle > 1:
        # The plain query, so that this does not rest on verify alone.
        assert not (text := difference(query, when, alone.recompute(query), alone.rows(query))), text
    if alone_cycle == CYCLES >= 3 and SCALE >= 0.01:
        assert alone.rows_changed[query], f"{query} never changed: the refresh functions give it nothing to do"


# -- phase 2


@pytest.fixture(scope="module")
def together(spark, tmp_path_factory) -> Iterator[Phase]:
    mutation = tpch.Mutation(pattern="recent", seed=2)
    with Phase.start(spark, tmp_path_factory.mktemp("tpch"), "tpch_together", mutation, deletion_vectors=True) as phase:
        for query in QUERIES:
            phase.create(query)
        yield phase


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("cycle", "refresh_function"), ONE_BY_ONE, ids=lambda value: f"{value}")
def test_all_queries_follow_shared_sources(together, cycle, refresh_function):
    when = f"cycle {cycle} {refresh_function}"

    commits = tpch.mutate(together.sources, together.mutation, cycle, only=refresh_function, spark=together.spark)
    reports = {query: together.refresh(query) for query in QUERIES}

    touched = {commit.table for commit in commits}
    wrong = [
        f"{query}, {when}: {report.mode}, {report.reason}"
        for query, report in reports.items()
        if report.mode != ("differential" if touched & tpch.sources_of(query) else "no_data")
    ]
    assert not wrong, "\n".join(wrong)
    wrong = [text for query in QUERIES if (text := together.verify(query, when))]
    assert not wrong, "\n".join(wrong)


# -- phase 3


@pytest.fixture(scope="module")
def twins(spark, tmp_path_factory) -> Iterator[Phase]:
    mutation = tpch.Mutation(seed=3)
    with Phase.start(spark, tmp_path_factory.mktemp("tpch"), "tpch_twins", mutation, change_feed=False) as phase:
        with using(spark, phase.schema):
            tpch.declare(phase.stream_tables)
        yield phase


@pytest.fixture(scope="module", params=STEPS, ids="cycle{}".format)
def twins_cycle(twins, request) -> int:
    if request.param:
        tpch.mutate(twins.sources, twins.mutation, request.param)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_full_and_differential_twins_are_equal(twins, twins_cycle, query):
    when = f"cycle {twins_cycle}"

    if twins_cycle == 0:
        twins.create(query)
        twins.create(query, mode="full", suffix="_full")
    else:
        modes = twins.refresh(query).mode, twins.refresh(query, suffix="_full").mode
        assert modes == ("differential", "full"), f"{query}, {when}: {modes}"

    assert not (text := difference(query, when, twins.rows(query, suffix="_full"), twins.rows(query))), text


# -- phase 4


@pytest.fixture(scope="module")
def large(spark, tmp_path_factory) -> Iterator[Phase]:
    mutation = tpch.Mutation(rate=0.002, seed=4)
    with Phase.start(spark, tmp_path_factory.mktemp("tpch"), "tpch_large", mutation, scale=LARGE_SCALE) as phase:
        yield phase


@pytest.fixture(scope="module", params=STEPS, ids="cycle{}".format)
def large_cycle(large, request) -> int:
    if request.param:
        tpch.mutate(large.sources, large.mutation, request.param)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_each_query_follows_large_sources(large, large_cycle, query):
    when = f"cycle {large_cycle}"

    if large_cycle == 0:
        large.create(query)
        return
    report = large.refresh(query)

    assert report.mode == "differential", f"{query}, {when}: {report.mode}, {report.reason}"
    assert not (text := difference(query, when, large.recompute(query), large.rows(query))), text


# -- phase 5


@dataclass
class Regimes:
    """Stream tables under regimes, over shared sources."""

    phase: Phase
    under: dict[str, trickle.Trickle]
    expected: dict[str, Counter[tuple[object, ...]]] = field(default_factory=dict)

    def name(self, query: str, regime: str) -> str:
        return f"{self.phase.schema}.{query}_{re.sub(r'[^a-z]', '_', regime)}"

    def create(self, query: str, regime: str) -> None:
        with using(self.phase.spark, self.phase.schema):
            self.under[regime].create(self.name(query, regime), tpch.QUERIES[query], mode="differential")

    def refresh(self, query: str, regime: str) -> trickle.RefreshReport:
        return self.under[regime].refresh(self.name(query, regime))

    def rows(self, query: str, regime: str) -> Counter[tuple[object, ...]]:
        return bag(self.phase.spark, f"SELECT * FROM {self.name(query, regime)}")

    def recompute(self, query: str) -> Counter[tuple[object, ...]]:
        if query not in self.expected:
            self.expected[query] = self.phase.recompute(query)
        return self.expected[query]


@pytest.fixture(scope="module")
def regimes(spark, tmp_path_factory) -> Iterator[Regimes]:
    mutation = tpch.Mutation(seed=5)
    with Phase.start(spark, tmp_path_factory.mktemp("tpch"), "tpch_regimes", mutation) as phase:
        yield Regimes(phase, {name: trickle.Trickle(spark, options=options) for name, options in REGIMES.items()})


@pytest.fixture(scope="module", params=range(3), ids="cycle{}".format)
def regimes_cycle(regimes, request) -> int:
    if request.param:
        tpch.mutate(regimes.phase.sources, regimes.phase.mutation, request.param)
        regimes.expected.clear()
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize(("query", "regime"), UNDER)
def test_each_query_follows_its_sources_under_a_regime(regimes, regimes_cycle, query, regime):
    when = f"cycle {regimes_cycle}, {regime}"

    if regimes_cycle == 0:
        regimes.create(query, regime)
        return
    report = regimes.refresh(query, regime)

    assert report.mode == "differential", f"{query}, {when}: {report.mode}, {report.reason}"
    assert not (text := difference(query, when, regimes.recompute(query), regimes.rows(query, regime))), text
