"""Every case, in the naive and the optimised form, over tables in memory; and on Delta tables, some or all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import MAINTAINED, REFUSED, REPRESENTATIVE
from .harness import maintain_on_delta, refusal, run_case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from .case import Case

_REST = tuple(case for case in MAINTAINED if case not in REPRESENTATIVE)


def _titled(cases: Iterable[Case]) -> list:
    return [pytest.param(case, id=case.title) for case in cases]


@pytest.mark.parametrize("form", ["naive", "optimised"])
@pytest.mark.parametrize("case", _titled(MAINTAINED))
def test_table_equals_a_recompute_after_every_round(spark: SparkSession, case: Case, form: str) -> None:
    run_case(spark, case, optimised=form == "optimised")


@pytest.mark.parametrize("case", _titled(REFUSED))
def test_refused_query_names_its_reason(spark: SparkSession, case: Case) -> None:
    assert refusal(spark, case) == case.refused


@pytest.mark.parametrize("case", _titled(REPRESENTATIVE))
def test_representative_case_on_delta_tables(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=True, make=maintain_on_delta)


@pytest.mark.slow
@pytest.mark.parametrize("case", _titled(_REST))
def test_other_case_on_delta_tables(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=True, make=maintain_on_delta)
