"""State that is too big to be kept: noticed before it is written whole, and never committed."""

from __future__ import annotations

import pytest

from trickle import Options, Trickle
from trickle.tables.contract import check_count
from trickle.tables.delta import target as delta_target


@pytest.fixture
def numbers(spark, warehouse_folder):
    spark.sql("CREATE DATABASE big")
    spark.sql("USE big")
    spark.sql("CREATE TABLE numbers USING delta AS SELECT id AS k, id * 2 AS v FROM range(5000)")
    yield warehouse_folder / "big.db"
    spark.sql("USE default")
    spark.sql("DROP DATABASE big CASCADE")


def test_of_state_that_is_too_big_little_is_written_and_nothing_committed(spark, numbers, monkeypatch):
    written = []

    def noted(rows: int, most: int | None) -> None:
        if most is not None:
            written.append((rows, most, [*numbers.glob("sums/_trickle/*/_delta_log/*1.json")]))
        check_count(rows, most)

    monkeypatch.setattr(delta_target, "check_count", noted)
    trickle = Trickle(spark, options=Options(state_rows=10))

    trickle.create("sums", "SELECT k % 4000 AS k, sum(v) AS s FROM numbers GROUP BY k % 4000", mode="differential")

    ((rows, most, commits),) = written
    assert most == 10
    assert 10 < rows <= 11 * int(spark.conf.get("spark.sql.shuffle.partitions"))
    assert not commits
    assert not [*numbers.glob("sums/_trickle/*")]
    spark.sql("INSERT INTO numbers VALUES (1, 7), (9000, 8)")
    assert trickle.refresh("sums").mode == "differential"
    assert trickle.verify("sums").ok
