"""Cases on Delta tables, through the public face, under regimes: limits so small that ten rows take the ways of many.

In `make test` some cases of each regime, each drawn by its title; in `make test-all` every case under all regimes, side by
side over the same sources. Rounds come two at a time, so that there are several commits between refreshes, and half as many of
these. The same on S3, where only some cases are ever run: Spark takes seconds for each.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from trickle.testing.regimes import REGIMES, drawn, regime

from . import MAINTAINED
from .harness import maintain_on_delta, maintain_on_s3, run_case

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from trickle.testing.s3 import S3Server

    from .case import Case


def _drawn() -> list[ParameterSet]:
    """Return some cases of each regime."""
    found = []
    for name in REGIMES:
        cases = [case for case in MAINTAINED if drawn(case.title) == name]
        quick = cases[len(cases) // 4 :: len(cases) // 2]
        found += [pytest.param(case, name, id=f"{case.title}-{name}") for case in quick]
    return found


@pytest.mark.parametrize(("case", "name"), _drawn())
def test_table_on_delta_lake_equals_a_recompute(spark: SparkSession, case: Case, name: str) -> None:
    run_case(spark, case, {name: regime(name)}, make=maintain_on_delta, pairs=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", MAINTAINED, ids=lambda case: case.title)
def test_tables_on_delta_lake_equal_a_recompute_under_all_regimes(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, REGIMES, make=maintain_on_delta, pairs=True)


def _on_s3() -> list[ParameterSet]:
    """Return one case of twelve; two of them for `make test`."""
    chosen = MAINTAINED[5::12]
    quick = chosen[3 :: len(chosen) // 2]
    return [pytest.param(case, id=case.title, marks=() if case in quick else pytest.mark.slow) for case in chosen]


@pytest.fixture(scope="module")
def schema_on_s3(spark: SparkSession, s3: S3Server) -> Iterator[str]:
    """A schema in a bucket."""
    name = f"corpus_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name} LOCATION 's3a://lake/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.mark.parametrize("case", _on_s3())
def test_table_on_s3_equals_a_recompute(spark: SparkSession, schema_on_s3: str, s3: S3Server, case: Case) -> None:
    spark.sql(f"USE {schema_on_s3}")
    try:
        run_case(spark, case, make=partial(maintain_on_s3, s3), pairs=True)
    finally:
        spark.sql("USE default")
