"""Cases on Delta tables, through the public face, under regimes: limits so small that ten rows take the ways of many.

In `make test` some cases of each regime, each drawn by its title; in `make test-all` every case under every regime.
Rounds come two at a time, so that there are several commits between refreshes, and half as many of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.testing.regimes import REGIMES, drawn, regime

from . import MAINTAINED
from .harness import maintain_on_delta, run_case

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from .case import Case


def _under_regimes() -> list[ParameterSet]:
    """Return each case with each regime; those not drawn are left to `make test-all`."""
    found = []
    for name in REGIMES:
        titles = [case.title for case in MAINTAINED if drawn(case.title) == name]
        quick = titles[len(titles) // 4 :: len(titles) // 2]
        for case in MAINTAINED:
            marks = () if case.title in quick else pytest.mark.slow
            found.append(pytest.param(case, name, id=f"{case.title}-{name}", marks=marks))
    return found


@pytest.mark.parametrize(("case", "name"), _under_regimes())
def test_table_on_delta_lake_equals_a_recompute(spark: SparkSession, case: Case, name: str) -> None:
    run_case(spark, case, regime(name), make=maintain_on_delta, pairs=True)
