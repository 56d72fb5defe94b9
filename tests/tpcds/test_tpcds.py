"""The 99 TPC-DS queries as stream tables: differential and exact after every round of changes.

What is right is what plain Spark answers over the same rows, in Parquet files. A dozen of the queries, chosen for
their variety, run in ``make test``, for one round. ``TPCDS_QUERIES=5,64`` runs some of the others, ``TPCDS_REGIME``
under other limits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trickle.testing import tpcds
from trickle.testing.regimes import regime

if TYPE_CHECKING:
    from collections.abc import Iterator

DOZEN = {16, 35, 39, 40, 41, 45, 63, 67, 76, 81, 87, 97}
"""Quick ones: NOT EXISTS and a distinct count, EXISTS under OR, deviations met by themselves, a LEFT JOIN, a correlated
count, IN under OR, a window over sums, ROLLUP and ranks, NULL keys, a correlated average, EXCEPT, a FULL JOIN."""

ASKED = {int(number) for number in os.environ.get("TPCDS_QUERIES", "").split(",") if number}
QUERIES = [
    pytest.param(number, marks=[] if number in DOZEN | ASKED else pytest.mark.slow, id=f"q{number:02d}")
    for number in tpcds.NUMBERS
    if not ASKED or number in ASKED
]
ROUNDS = [
    pytest.param(round_, marks=[] if round_ < 2 or ASKED else pytest.mark.slow, id=f"round{round_}")
    for round_ in range(tpcds.ROUNDS + 1)
]


@pytest.fixture(scope="module")
def suite(spark, tmp_path_factory) -> Iterator[tpcds.Suite]:
    spark.sql("CREATE DATABASE tpcds")
    spark.sql("USE tpcds")
    options = regime(os.environ.get("TPCDS_REGIME", "default"))
    yield tpcds.Suite(spark, tmp_path_factory.mktemp("tpcds"), options=options)
    spark.sql("USE default")
    spark.sql("DROP DATABASE tpcds CASCADE")


@pytest.fixture(scope="module", params=ROUNDS)
def round_(suite, request) -> int:
    if request.param:
        suite.mutate(request.param)
    return request.param


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_follows_its_sources(suite, round_, query):
    outcome = suite.refresh(query) if round_ else suite.create(query)

    assert not (text := outcome.wrong()), f"q{query:02d}, round {round_}: {text}"
