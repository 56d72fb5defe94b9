"""Sums of doubles whose magnitudes cancel, below other operators, over two hundred refreshes.

Two laws are checked. The remembered sums are as near to the exact ones as any summation is: within n * eps * sum of |x|.
And the table is, to the bit, what the query makes of the remembered sums: nothing drifts above them.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from trickle import Trickle
from trickle.compute.evaluation import evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.model.definition import SourceVersion
from trickle.tables.arrow.local import row_key
from trickle.testing.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
SUMS = "(SELECT k, sum(x) AS s FROM t GROUP BY k)"
RANKED = f"""
    SELECT name, k, s, rank() OVER (PARTITION BY name ORDER BY s) AS place
    FROM (SELECT c.name, c.k, g.s FROM c LEFT JOIN {SUMS} g ON c.k = g.k)
"""
QUERIES = {
    "union": f"SELECT k, s FROM {SUMS} UNION ALL SELECT k, CAST(NULL AS DOUBLE) FROM c",
    "group by": f"SELECT s, count(*) AS n FROM {SUMS} GROUP BY s",
    "having": f"SELECT c.name, g.k FROM c JOIN {SUMS} g ON c.k = g.k WHERE g.s > 1",
    "scalar": "SELECT k, x / (SELECT sum(x) FROM t) AS share FROM t",
    "top-k": f"SELECT k, s FROM {SUMS} ORDER BY s LIMIT 3",
    "distinct": "SELECT DISTINCT a FROM (SELECT k, avg(x) AS a FROM t GROUP BY k)",
}


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key in SETTINGS:
        spark.conf.unset(key)


class Draw:
    """Rows whose sums cancel: of each great number there is often the opposite."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.number = 0

    def rows(self, count: int) -> list[tuple[int, int, float]]:
        return [self._row() for _ in range(count)]

    def _row(self) -> tuple[int, int, float]:
        self.number += 1
        great = self.rng.choice([1e16, -1e16, 1e8, -1e8, 1.0, 0.1, 0.2, 0.3])
        return self.rng.randrange(6), self.number, self.rng.choice([great, self.rng.uniform(-1, 1) * great])


def run(spark: SparkSession, query: str, refreshes: int) -> None:
    draw = Draw(200)
    rows = draw.rows(40)
    tables = {"t": ("k INT, id INT, x DOUBLE", rows), "c": ("k INT, name STRING", [(k, "ab"[k % 2]) for k in range(7)])}
    lab = Lab(spark, tables)
    lab.define(query)
    for nth in range(refreshes):
        gone, came = draw.rng.sample(rows, 3), draw.rows(3)
        rows = [row for row in rows if row not in gone] + came
        lab.sources["t"].commit(inserts=came, deletes=gone)
        assert lab.refresh().mode == "differential"
        if nth % 20 == 19:
            check_sums(lab, rows, is_mean="avg" in query)
            check_above(lab)


def check_sums(lab: Lab, rows: list[tuple[int, int, float]], *, is_mean: bool) -> None:
    """The remembered values are those of the rows, but for the error that any order of adding may have."""
    for name in remembered(lab):
        rows_stored = lab.state_tables._known[name][0].rows()
        assert rows_stored
        for stored in rows_stored:
            keys = [value for value in stored if isinstance(value, int)]
            (found,) = [value for value in stored if isinstance(value, float)]
            values = [x for k, _, x in rows if not keys or k in keys]
            count = len(values) if is_mean else 1
            bound = len(values) * sys.float_info.epsilon * math.fsum(map(abs, values)) / count
            assert abs(found - math.fsum(values) / count) <= bound


def check_above(lab: Lab) -> None:
    """The table is to the bit what its query makes of the remembered values."""
    prepared, target = lab._defined()
    sources: dict[str, Any] = {
        **lab.sources,
        **{name: lab.state_tables._known[name][1] for name in lab.state_tables._known},
    }

    newest = {name: SourceVersion(version=source.head(), identity="") for name, source in sources.items()}
    expected = evaluate_by_spark(lab._jvm, Inputs(sources, newest, newest)).frame(prepared.program.plan).collect()
    assert Counter(map(row_key, target.rows())) == Counter(row_key(tuple(row)) for row in expected)


def remembered(lab: Lab) -> list[str]:
    found = [
        p.state_table.name
        for p in lab._defined()[0].state_tables
        if p.state_table is not None and p.state_table.is_required
    ]
    assert found
    return found


@pytest.mark.parametrize("refreshes", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_a_ranked_sum_stays_differential(spark: SparkSession, refreshes: int) -> None:
    run(spark, RANKED, refreshes)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_a_sum_of_doubles_stays_differential_under(spark: SparkSession, query: str) -> None:
    run(spark, QUERIES[query], 200)


def test_a_ranked_sum_on_delta_stays_differential(spark: SparkSession) -> None:
    for table, columns in (("t", "k INT, id INT, x DOUBLE"), ("c", "k INT, name STRING")):
        spark.catalog.dropTempView(table)
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql("INSERT INTO c SELECT id, IF(id % 2 = 0, 'a', 'b') FROM range(7)")
    spark.sql("INSERT INTO t SELECT id % 6, id, 0.1 * id FROM range(60)")
    trickle = Trickle(spark)
    trickle.create("ranked", RANKED, mode="differential")
    try:
        for nth in range(8):
            spark.sql(f"DELETE FROM t WHERE id % 11 = {nth}")
            spark.sql(f"INSERT INTO t SELECT id % 6, 100 + {nth} * 10 + id, 0.7 * id FROM range(3)")
            assert trickle.refresh("ranked").mode == "differential"
        report = trickle.verify("ranked")
        assert report.ok, report
    finally:
        trickle.drop("ranked")
        spark.sql("DROP TABLE t")
        spark.sql("DROP TABLE c")
