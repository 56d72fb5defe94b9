"""State that is too big to be kept: noticed before it is written whole, and never committed."""

from __future__ import annotations

import pytest

from trickle import Options, Trickle
from trickle.refresh import write as refresh_write
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


def test_state_that_is_too_big_is_not_written(spark, numbers, monkeypatch):
    written = []
    monkeypatch.setattr(delta_target, "check_count", lambda rows, most: written.append(rows) if most else None)
    trickle = Trickle(spark, options=Options(state_rows=1000))
    spark.sql("CREATE TABLE names USING delta AS SELECT id AS k, string(id) AS n FROM range(3000)")
    top = "SELECT k, n, v FROM numbers JOIN names USING (k) ORDER BY v DESC, k LIMIT 3"

    trickle.create("sums", "SELECT k, sum(v) AS s, count(*) AS c FROM numbers GROUP BY k", mode="differential")
    trickle.create("best", top, mode="differential")

    assert written == []
    assert not [*numbers.glob("*/_trickle/*")]
    for table, query in {
        "few": "SELECT k % 900 AS g, sum(v) AS s FROM numbers GROUP BY 1",
        "all": "SELECT sum(v) AS s FROM numbers",
    }.items():
        trickle.create(table, query, mode="differential")
        assert [*numbers.glob(f"{table}/_trickle/*")]
    spark.sql("INSERT INTO numbers VALUES (1, 7), (9000, 8)")
    for table in ("sums", "best", "few", "all"):
        assert trickle.refresh(table).mode == "differential"
        assert trickle.verify(table).ok


def test_of_state_that_is_too_big_little_is_written_and_nothing_committed(spark, numbers, monkeypatch):
    written = []

    def noted(rows: int, most: int | None) -> None:
        if most is not None:
            written.append((rows, most, [*numbers.glob("sums/_trickle/*/_delta_log/*1.json")]))
        check_count(rows, most)

    monkeypatch.setattr(delta_target, "check_count", noted)
    monkeypatch.setattr(refresh_write, "has_more_rows", lambda *_: False)  # an estimate that is wrong
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
