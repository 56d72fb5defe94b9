"""Every case, in the naive and the optimised form, over tables in memory; and on Delta tables, some or all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import MAINTAINED, REFUSED, every
from .harness import maintain_on_delta, refusal, run_case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from .case import Case


def _cases(cases: Iterable[Case], quick: Iterable[Case]) -> list:
    """Give the cases by title; those not among the quick ones are left to `make test-all`."""
    titles = {case.title for case in quick}
    return [pytest.param(case, id=case.title, marks=() if case.title in titles else pytest.mark.slow) for case in cases]


@pytest.mark.parametrize("case", _cases(MAINTAINED, every(4)))
def test_table_equals_a_recompute_after_every_round(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=True)


@pytest.mark.parametrize("case", _cases(MAINTAINED, every(8)))
def test_table_equals_a_recompute_without_optimisations(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=False)


@pytest.mark.parametrize("case", _cases(MAINTAINED, every(4)))
def test_table_on_delta_lake_equals_a_recompute(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=True, make=maintain_on_delta)


@pytest.mark.parametrize("case", _cases(REFUSED, REFUSED))
def test_refused_query_names_its_reason(spark: SparkSession, case: Case) -> None:
    assert refusal(spark, case) == case.refused


def test_the_support_page_says_what_the_corpus_says() -> None:
    script = Path(__file__).parents[2] / "scripts" / "sql_support.py"

    checked = subprocess.run([sys.executable, script, "--check"], check=False)

    assert checked.returncode == 0, "run `python scripts/sql_support.py`"
