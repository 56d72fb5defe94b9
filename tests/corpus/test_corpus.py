"""Every case, in the naive and the optimised form, over tables in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trickle.model.options import OPTIMISATIONS, Options

from . import MAINTAINED, REFUSED, every
from .conftest import to_run
from .harness import refusal, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .case import Case


@pytest.mark.parametrize("case", to_run(MAINTAINED, every(28, 1)))
def test_table_equals_a_recompute_after_every_round(spark: SparkSession, case: Case) -> None:
    run_case(spark, case)


@pytest.mark.parametrize("case", to_run(MAINTAINED, every(40)))
def test_table_equals_a_recompute_without_optimisations(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, {"naive": Options(disable=OPTIMISATIONS)})


@pytest.mark.parametrize("case", to_run(REFUSED, REFUSED))
def test_refused_query_names_its_reason(spark: SparkSession, case: Case) -> None:
    assert refusal(spark, case) == case.refused


def test_the_support_page_says_what_the_corpus_says() -> None:
    script = Path(__file__).parents[2] / "scripts" / "sql_support.py"

    checked = subprocess.run([sys.executable, script, "--check"], check=False)

    assert checked.returncode == 0, "run `python scripts/sql_support.py`"
