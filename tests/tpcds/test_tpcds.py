"""The 99 TPC-DS queries as stream tables: differential and exact after every round of changes.

What is right is what plain Spark answers over the same rows, in Parquet files. A dozen of the queries, chosen for
their variety, run in ``make test``; ``TPCDS_QUERIES=5,64`` runs some of the others.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trickle.testing import tpcds

if TYPE_CHECKING:
    from collections.abc import Iterator

DOZEN = {1, 3, 5, 10, 16, 39, 51, 59, 67, 76, 86, 97}
"""Correlated averages, ROLLUP, EXISTS under OR, NOT EXISTS, deviations, running sums, ranks, FULL JOIN."""

ASKED = {int(number) for number in os.environ.get("TPCDS_QUERIES", "").split(",") if number}
QUERIES = [
    pytest.param(number, marks=[] if number in DOZEN | ASKED else pytest.mark.slow, id=f"q{number:02d}")
    for number in tpcds.NUMBERS
    if not ASKED or number in ASKED
]


@pytest.fixture(scope="module")
def suite(spark, tmp_path_factory) -> Iterator[tpcds.Suite]:
    spark.sql("CREATE DATABASE tpcds")
    spark.sql("USE tpcds")
    yield tpcds.Suite(spark, tmp_path_factory.mktemp("tpcds"))
    spark.sql("USE default")
    spark.sql("DROP DATABASE tpcds CASCADE")


@pytest.fixture(scope="module", params=range(tpcds.ROUNDS + 1), ids="round{}".format)
def round_(suite, request) -> int:
    if request.param:
        suite.mutate(request.param)
    return request.param


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_follows_its_sources(suite, round_, query):
    outcome = suite.refresh(query) if round_ else suite.create(query)

    assert not (text := outcome.wrong()), f"q{query:02d}, round {round_}: {text}"
