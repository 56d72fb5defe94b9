"""Cases on Delta tables, through the public face: a quarter of each family, or all in `make test-all`.

Rounds come two at a time, so that there are several commits between refreshes, and half as many of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import MAINTAINED, every
from .conftest import to_run
from .harness import maintain_on_delta, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .case import Case


@pytest.mark.parametrize("case", to_run(MAINTAINED, every(4)))
def test_table_on_delta_lake_equals_a_recompute(spark: SparkSession, case: Case) -> None:
    run_case(spark, case, optimised=True, make=maintain_on_delta, pairs=True)
