"""One bench for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.testing.fuzz.run import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def bench(spark: SparkSession) -> Bench:
    return Bench(spark)
