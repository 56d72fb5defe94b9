"""Settings for thousands of refreshes of a few rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.testing.jvm import INTERPRETED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from .case import Case

# To compile expressions costs more than to interpret them over ten rows, and one partition holds these.
SETTINGS = {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
    # Last, for the interpreter cannot make the rows of listTables.
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


def to_run(cases: Iterable[Case], quick: Iterable[Case]) -> list[ParameterSet]:
    """Return the cases by title; those not among the quick ones are left to `make test-all`."""
    titles = {case.title for case in quick}
    return [pytest.param(case, id=case.title, marks=() if case.title in titles else pytest.mark.slow) for case in cases]
