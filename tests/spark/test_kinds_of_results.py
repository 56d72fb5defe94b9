"""The driver commits to stream tables stored as users want them: partitioned, clustered, stamped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle import Trickle
from trickle.errors import TrickleError
from trickle.tables.delta.driver.transaction import DriverTransaction
from trickle.testing.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

KEYS = {
    "date": "date_add(DATE'2026-02-27', CAST(id % 4 AS INT))",
    "text": "element_at(array('a b', 'é/=%:', \"'\", NULL), CAST(id % 4 AS INT) + 1)",
    "number": "CAST(id % 4 - 2 AS INT)",
    "decimal": "CAST(id % 4 - 1.5 AS DECIMAL(9, 2))",
    "boolean": "id % 2 = 0",
}
"""Expressions of partition columns."""

KINDS = {
    **{f"partitioned by {name}": {"partition_by": "p"} for name in KEYS},
    "partitioned by two": {"partition_by": ["p", "q"]},
    "partitioned, mapped names": {"partition_by": "p", "properties": {"delta.columnMapping.mode": "name"}},
    "partitioned, deletion vectors": {"partition_by": "p", "properties": {"delta.enableDeletionVectors": "true"}},
    "clustered": {"cluster_by": "p"},
    "clustered, deletion vectors": {"cluster_by": "p", "properties": {"delta.enableDeletionVectors": "true"}},
    "in-commit timestamps": {"properties": {"delta.enableInCommitTimestamps": "true"}},
}


@pytest.fixture
def facts(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE kinds_of_results")
    spark.sql("USE kinds_of_results")
    feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    columns = ", ".join(f"{key} AS {name}" for name, key in KEYS.items())
    spark.sql(f"CREATE TABLE facts {feed} AS SELECT id, {columns}, id * 7 AS n FROM range(24)")
    yield
    Trickle(spark).settle()  # a checkpoint that is still written would leave a folder to the next table of the name
    spark.sql("USE default")
    spark.sql("DROP DATABASE kinds_of_results CASCADE")


CHANGES = (
    "UPDATE facts SET n = n + 1 WHERE id % 5 = 0",
    "UPDATE facts SET date = DATE'2026-03-09', text = 'new', number = 7, decimal = 4.25, boolean = NULL WHERE id IN (3, 4)",
    "DELETE FROM facts WHERE id % 4 = 1",
    "INSERT INTO facts SELECT id + 100, date, NULL, number, decimal, boolean, n FROM facts WHERE id < 6",
)


QUICK = {
    "partitioned by text",
    "partitioned by two",
    "partitioned, deletion vectors",
    "clustered",
    "in-commit timestamps",
}
CASES = [
    pytest.param(kind, regime, marks=() if regime == "default" and kind in QUICK else pytest.mark.slow)
    for kind in KINDS
    for regime in ("default", "vectors", "look-ups")
]


@pytest.mark.parametrize(("kind", "regime"), CASES)
def test_the_driver_commits_to_every_kind_of_result(
    spark: SparkSession, facts: None, kind: str, regime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trickle, options = Trickle(spark, options=REGIMES[regime]), KINDS[kind]
    by = kind.removeprefix("partitioned by ") if kind.startswith("partitioned by ") else "date"
    key = "text" if by == "two" else by
    trickle.create("rows", f"SELECT id, {key} AS p, n, number AS q FROM facts", mode="differential", **options)
    trickle.create(
        "sums", f"SELECT {key} AS p, number AS q, sum(n) AS s FROM facts GROUP BY ALL", mode="differential", **options
    )
    committed = []
    commit = DriverTransaction._commit
    monkeypatch.setattr(
        DriverTransaction, "_commit", lambda self, *given: (committed.append(self.target.name), commit(self, *given))[1]
    )

    for change in CHANGES:
        spark.sql(change)
        committed.clear()
        for name in ("rows", "sums"):
            assert trickle.refresh(name).mode == "differential"
        assert {name.split(".")[-1].strip("`") for name in committed} >= {"rows", "sums"}
    assert trickle.verify("sums").ok
    detail = spark.sql("DESCRIBE DETAIL rows").collect()[0]
    assert detail["numFiles"] > 0
    changes = spark.sql("SELECT p, n, _change_type FROM table_changes('rows', 0) WHERE _change_type = 'delete'")
    assert changes.where("p IS NOT NULL").count() > 0
    spark.sql("OPTIMIZE rows")
    spark.sql("UPDATE facts SET n = n + 1 WHERE id = 2")
    assert trickle.refresh("rows").rows_inserted == 1
    assert trickle.verify("rows").ok


def test_a_result_has_texts_where_the_source_has_a_length(spark: SparkSession, facts: None) -> None:
    feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(f"CREATE TABLE short (v VARCHAR(3), c CHAR(4)) {feed}")
    spark.sql(f"CREATE TABLE long (v VARCHAR(9), c CHAR(9)) {feed}")
    spark.sql("INSERT INTO short VALUES ('abc', 'x')")
    trickle = Trickle(spark)
    trickle.create("both_lengths", "SELECT v, c FROM short UNION ALL SELECT v, c FROM long", mode="differential")

    spark.sql("INSERT INTO long VALUES ('too long', 'y')")
    report = trickle.refresh("both_lengths")

    assert (report.mode, report.rows_inserted) == ("differential", 1)
    assert trickle.verify("both_lengths").ok
    assert dict(spark.table("both_lengths").dtypes) == {"v": "string", "c": "string"}


@pytest.mark.parametrize("regime", ["default", "forgetful"])
def test_an_empty_text_is_refused_as_the_name_of_a_partition(spark: SparkSession, facts: None, regime: str) -> None:
    trickle = Trickle(spark, options=REGIMES[regime])
    trickle.create("rows", "SELECT id, text AS p FROM facts", mode="differential", partition_by="p")
    spark.sql("UPDATE facts SET text = '' WHERE id = 3")

    with pytest.raises(TrickleError, match="NULL") as refused:
        trickle.refresh("rows")
    assert refused.value.code == "EMPTY_PARTITION"
    with pytest.raises(TrickleError) as refused:
        trickle.create("others", "SELECT id, text AS p FROM facts", partition_by="p")
    assert refused.value.code == "EMPTY_PARTITION"
    assert "others" not in [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]

    spark.sql("UPDATE facts SET text = 'full' WHERE id = 3")
    assert trickle.refresh("rows").mode == "differential"
    assert trickle.verify("rows").ok
