"""Sums of doubles under every operator, on Delta tables, over two hundred refreshes whose great magnitudes cancel."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from trickle import Trickle
from trickle.tables.arrow.local import local_frame

from .doubles import CASES
from .tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("bin", pa.int32()), ("id", pa.int32()), ("x", pa.float64())])
GREAT = (1e16, -1e16, 1e12, -1e12, 1e8, -1e8)
REFRESHES = 200
PARTS = 8
"""The cases are refreshed side by side, a few at a time."""

pytestmark = pytest.mark.slow


@pytest.fixture
def weights(spark: SparkSession) -> Iterator[Path]:
    spark.sql("CREATE DATABASE doubles")
    spark.sql("USE doubles")
    for name in ("dept", "weights"):
        spark.sql(f"CREATE TABLE {name} ({TABLES[name].ddl}) USING delta")
        local_frame(spark, list(TABLES[name].rows), TABLES[name].ddl).write.insertInto(name)
    location = spark.sql("DESCRIBE DETAIL weights").first()["location"]
    yield Path(location.removeprefix("file:"))
    spark.sql("USE default")
    spark.sql("DROP DATABASE doubles CASCADE")


def drawn(rng: Random, number: int) -> list[tuple[int | None, int, float]]:
    """Draw rows of which the great ones cancel, more or less, and some stay for long."""
    great = rng.choice(GREAT)
    bins = [rng.choice([1, 2, 3, 4, 5, None]) for _ in range(2)]
    return [
        (bins[0], 1000 + number, great),
        (bins[0], 1000 + number, -great * rng.choice([1.0, 1.0, 1.0 + 2**-40])),
        (bins[1], number, rng.uniform(-3, 3)),
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_sums_of_doubles_stay_differential_under_every_operator(spark: SparkSession, weights: Path, part: int) -> None:
    trickle, rng = Trickle(spark), Random(part)
    names = {f"v{number}": case for number, case in enumerate(CASES[part::PARTS])}
    for name, case in names.items():
        trickle.create(name, case.query, mode="differential")

    for number in range(REFRESHES):
        rows = drawn(rng, number)
        came = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        write_deltalake(weights, came, mode="append")
        if number >= 5:
            gone = f"(id = {1000 + number - 5} AND x > 0) OR id = {1000 + number - 3} OR id = {number - 5}"
            DeltaTable(weights).delete(gone)
        for name, case in names.items():
            assert trickle.refresh(name).mode in ("differential", "no_data"), (number, case.title)

    # What is left when all great ones have gone has no rounding error that counts.
    DeltaTable(weights).delete("abs(x) > 1000000 OR id >= 1000")
    wrong = []
    for name, case in names.items():
        assert trickle.refresh(name).mode in ("differential", "no_data"), case.title
        report = trickle.verify(name)
        if not report.ok:
            wrong.append((case.title, report))
    trickle.settle()  # a checkpoint that is written late would make its table's folder again
    assert not wrong
