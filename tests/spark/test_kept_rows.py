"""Rows of a big change stay in the cluster: what reads them reads a leaf, whatever they were computed from."""

from __future__ import annotations

from trickle.catalyst.jvm import Jvm
from trickle.compute.spark import SparkExecution
from trickle.model.options import DEFAULT


def test_kept_rows_are_a_leaf_of_what_reads_them(spark):
    execution = SparkExecution(Jvm(spark, DEFAULT), in_driver=False)
    groups = execution.compute(spark.sql("SELECT id % 3 AS k, count(*) AS n FROM range(10) GROUP BY id % 3"))
    pairs = execution.compute(groups.frame.join(groups.frame.withColumnRenamed("n", "m"), "k"))

    assert (groups.count, pairs.count) == (3, 3)
    for rows in (groups, pairs):
        assert rows.frame._jdf.queryExecution().analyzed().children().isEmpty()
    assert sorted(map(tuple, pairs.frame.collect())) == [(0, 4, 4), (1, 3, 3), (2, 3, 3)]

    execution.release()
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
