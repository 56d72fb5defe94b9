"""Cases on Delta tables, through the public face, under regimes: limits so small that ten rows take the ways of many.

In `make test` a twelfth of each family, each case under a regime drawn by its title; in `make test-all` every case under every
regime. Rounds come two at a time, so that there are several commits between refreshes, and half as many of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.testing.regimes import REGIMES, drawn, regime

from . import MAINTAINED, every
from .harness import maintain_on_delta, run_case

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from .case import Case


def _under_regimes() -> list[ParameterSet]:
    """Give each case with each regime; those not drawn are left to `make test-all`."""
    # Two of three of every eighth case: by every twelfth alone some regime would not be drawn.
    quick = {case.title for case in every(8)} - {case.title for case in every(24, 8)}
    found = []
    for case in MAINTAINED:
        for name in REGIMES:
            is_quick = case.title in quick and name == drawn(case.title)
            marks = () if is_quick else pytest.mark.slow
            found.append(pytest.param(case, name, id=f"{case.title}-{name}", marks=marks))
    return found


@pytest.mark.parametrize(("case", "name"), _under_regimes())
def test_table_on_delta_lake_equals_a_recompute(spark: SparkSession, case: Case, name: str) -> None:
    run_case(spark, case, regime(name), make=maintain_on_delta, pairs=True)
