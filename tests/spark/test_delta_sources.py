"""Delta tables as sources: every way a table changes gives its exact change, or a named reason."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from trickle.errors import DefinitionError, SourceError
from trickle.model.options import Options
from trickle.model.reason import HISTORY_EXPIRED, SOURCE_ALTERED, SOURCE_REPLACED, SOURCE_REWOUND
from trickle.tables.arrow.local import local_frame, row_key
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import VersionRange
from trickle.tables.delta.changes import reading_plans
from trickle.tables.delta.source import DeltaSource
from trickle.testing.targets import create_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ["id", "k", "s"]


def _bag(frame: DataFrame) -> Counter[Any]:
    return Counter(row_key(tuple(row)) for row in frame.collect())


def _net(change: DataFrame) -> dict[Any, int]:
    weights: dict[Any, int] = {}
    for *row, weight in change.collect():
        key = row_key(row)
        weights[key] = weights.get(key, 0) + weight
    return {key: weight for key, weight in weights.items() if weight}


def _difference(source: DeltaSource, since: int, upto: int, columns: Sequence[str]) -> dict[Any, int]:
    return _minus(_bag(source.snapshot(upto).select(*columns)), _bag(source.snapshot(since).select(*columns)))


def _minus(new: Counter[Any], old: Counter[Any]) -> dict[Any, int]:
    return {row: new[row] - old[row] for row in old.keys() | new.keys() if new[row] != old[row]}


@dataclass
class Tables:
    """Makes Delta tables in a folder and runs SQL on them, `{t}` being the table."""

    spark: SparkSession
    folder: Path

    def make(self, name: str, *statements: str, properties: str = "", partitioned: str = "") -> DeltaSource:
        path = self.folder / name
        self.spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, k INT, s STRING) USING delta {partitioned} "
            f"TBLPROPERTIES ('delta.minReaderVersion' = '1' {properties})"
        )
        source = DeltaSource(self.spark, name, str(path))
        self.run(source, *statements)
        return source

    def run(self, source: DeltaSource, *statements: str) -> int:
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{source.path}`"))
        return source.head()


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    return Tables(spark, tmp_path)


HISTORY = (
    ("INSERT INTO {t} SELECT id, id % 2, 'x' FROM range(10)", None),
    ("UPDATE {t} SET s = 'y' WHERE id = 3", "mixed"),
    ("DELETE FROM {t} WHERE id IN (4, 5)", "mixed"),
    ("INSERT INTO {t} VALUES (100, 0, 'z'), (101, NULL, NULL)", "append"),
    (
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (100), (7), (55) AS v(id)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 100 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, k, s) VALUES (s.id, 0, 'n')",
        "mixed",
    ),
    ("OPTIMIZE {t}", "none"),
    ("RESTORE TABLE {t} TO VERSION AS OF 2", "mixed"),
    ("TRUNCATE TABLE {t}", "mixed"),
    ("INSERT OVERWRITE {t} VALUES (1, 1, 'o')", "append"),
)
"""Statements, and the kind of change each makes."""


@pytest.mark.parametrize(
    ("feed", "vectors"),
    [
        ("true", "true"),
        pytest.param("false", "false", marks=pytest.mark.slow),
        pytest.param("true", "false", marks=pytest.mark.slow),
        pytest.param("false", "true", marks=pytest.mark.slow),
    ],
)
def test_every_statement_gives_its_exact_change(tables: Tables, feed: str, vectors: str) -> None:
    source = tables.make(
        "orders",
        *(statement for statement, _ in HISTORY),
        properties=f", 'delta.enableChangeDataFeed' = '{feed}', 'delta.enableDeletionVectors' = '{vectors}'",
        partitioned="PARTITIONED BY (k)",
    )
    assert source.head() == len(HISTORY)

    bags = {version: _bag(source.snapshot(version)) for version in range(1, len(HISTORY) + 1)}
    for since, upto in pairwise(bags):
        versions = source.classify(since, upto, COLUMNS)
        truth = _minus(bags[upto], bags[since])
        assert (versions.broken, versions.kind) == (None, HISTORY[upto - 1][1])
        assert versions.rows is None or versions.rows >= sum(abs(weight) for weight in truth.values())
        assert _net(source.changes(versions, COLUMNS)) == truth, versions
    for since, upto in [(1, 4), (3, 6), (1, len(HISTORY))]:
        versions = source.classify(since, upto, COLUMNS)
        for plan in reading_plans(
            source.log.commits(since, upto)
        ):  # each way to read must agree, not only the cheapest
            assert _net(source.read(plan, versions, COLUMNS)) == _minus(bags[upto], bags[since]), (versions, plan)
    versions = source.classify(1, 5, ["s"])
    assert _net(source.changes(versions, ["s"])) == _difference(source, 1, 5, ["s"])


def test_column_mapping_keeps_changes_of_the_columns_that_stay(tables: Tables) -> None:
    source = tables.make(
        "mapped",
        "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 2, 'b')",
        properties=", 'delta.columnMapping.mode' = 'name'",
    )
    head = tables.run(
        source,
        "ALTER TABLE {t} RENAME COLUMN s TO `odd name`",
        "INSERT INTO {t} VALUES (3, 3, 'c')",
        "ALTER TABLE {t} DROP COLUMN k",
        "UPDATE {t} SET id = 20 WHERE id = 2",
    )

    versions = source.classify(1, head, ["id"])
    assert (versions.broken, versions.kind) == (None, "mixed")
    assert _net(source.changes(versions, ["id"])) == {(3,): 1, (20,): 1, (2,): -1}
    assert _net(source.changes(source.classify(2, head, ["id", "odd name"]), ["id", "odd name"])) == {
        (3, "c"): 1,
        (20, "b"): 1,
        (2, "b"): -1,
    }
    for column in ("s", "k"):
        broken = source.classify(1, head, ["id", column]).broken
        assert broken is not None
        assert broken.code == SOURCE_ALTERED
        assert f"`{column}`" in broken.text

    head = tables.run(source, "ALTER TABLE {t} ADD COLUMN k INT")
    again = source.classify(1, head, ["k"]).broken  # the same name and type, but another column
    assert again is not None
    assert again.code == SOURCE_ALTERED
    assert source.columns(1)["k"].identity != source.columns(head)["k"].identity


def test_a_changed_type_or_partitioning_is_named(tables: Tables, spark: SparkSession) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a')")
    writer = spark.sql("SELECT 1L AS id, 'one' AS k, 'a' AS s").write.format("delta").mode("overwrite")
    writer.option("overwriteSchema", "true").save(source.path)
    writer = spark.sql("SELECT 1L AS id, 1 AS k, 'a' AS s").write.format("delta").mode("overwrite")
    writer.option("overwriteSchema", "true").save(source.path)
    head = source.head()

    altered = source.classify(1, head, ["k"]).broken  # equal at both ends, but not between
    assert altered is not None
    assert altered.code == SOURCE_ALTERED
    versions = source.classify(1, head, ["id", "s"])
    assert versions.broken is None
    assert _net(source.changes(versions, ["id", "s"])) == {}

    writer.partitionBy("s").option("overwriteSchema", "true").save(source.path)
    repartitioned = source.classify(head, source.head(), ["id"]).broken
    assert repartitioned is not None
    assert "partitioning" in repartitioned.text


def test_vacuum_breaks_only_what_it_took(tables: Tables, spark: SparkSession) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 2, 'b')")
    head = tables.run(
        source, "INSERT INTO {t} VALUES (3, 3, 'c')", "OPTIMIZE {t}", "UPDATE {t} SET s = 'z' WHERE id = 1"
    )
    updated = source.classify(1, head, COLUMNS)
    assert updated.broken is None
    assert source.classify(2, 3, COLUMNS).kind == "none"

    for file in {file.path for commit in source.log.commits(0, head) for file in commit.removes}:
        (Path(source.path) / file).unlink()

    expired = source.classify(1, head, COLUMNS).broken
    assert expired is not None
    assert expired.code == HISTORY_EXPIRED
    assert "vacuumed" in expired.text
    head = tables.run(source, "INSERT INTO {t} VALUES (4, 4, 'd')")
    versions = source.classify(head - 1, head, COLUMNS)
    assert (versions.kind, versions.broken) == ("append", None)
    assert _net(source.changes(versions, COLUMNS)) == {(4, 4, "d"): 1}


def test_a_log_that_does_not_reach_back_is_expired(tables: Tables, spark: SparkSession) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a')", "INSERT INTO {t} VALUES (2, 2, 'b')")
    (Path(source.path) / "_delta_log" / f"{1:020d}.json").unlink()
    fresh = DeltaSource(spark, "orders", source.path)

    expired = fresh.classify(0, 2, COLUMNS).broken

    assert expired is not None
    assert expired.code == HISTORY_EXPIRED
    assert expired.hint
    assert fresh.classify(1, 2, COLUMNS).kind == "append"


def test_a_table_dropped_and_made_again_is_another(tables: Tables, spark: SparkSession) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a')", "INSERT INTO {t} VALUES (2, 2, 'b')")
    head, identity = source.head(), source.identity(2)
    source.snapshot(head)

    shutil.rmtree(source.path)
    with pytest.raises(SourceError) as missing:
        source.head()
    assert missing.value.code == "SOURCE_MISSING"
    gone = source.classify(1, 2, COLUMNS).broken
    assert gone is not None
    assert gone.code == SOURCE_REPLACED

    tables.make("orders", "INSERT INTO {t} VALUES (9, 9, 'new')")
    assert source.head() == 1
    assert source.identity(1) != identity
    rewound = source.classify(head, source.head(), COLUMNS).broken
    assert rewound is not None
    assert rewound.code == SOURCE_REWOUND
    tables.run(source, "INSERT INTO {t} VALUES (10, 9, 'new')")
    assert _bag(source.snapshot(2).select("id")) == {(9,): 1, (10,): 1}


def test_a_snapshot_is_one_plain_relation_and_is_cached(tables: Tables) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a')", "INSERT INTO {t} VALUES (2, 2, 'b')")

    frame = source.snapshot(1)

    plan = frame._jdf.queryExecution().analyzed()
    assert plan.getClass().getSimpleName() == "LogicalRelation"
    assert source.snapshot(1) is frame
    assert frame.where("id > 0").count() == 1
    assert source.snapshot(2).count() == 2


def test_a_look_up_rolls_rows_forward_over_files_that_were_rewritten(tables: Tables, spark: SparkSession) -> None:
    feed = ", 'delta.enableChangeDataFeed' = 'true'"
    made = tables.make("orders", "INSERT INTO {t} SELECT id, id % 7, 'a' FROM range(1000)", properties=feed)
    source = DeltaSource(spark, "orders", made.path, columns=ColumnCache(), options=Options(whole_rows=0))
    first, keys = source.head(), {"id": pa.array([5, 6, 2000])}
    before = source.find(first, ["s", "id"], keys)
    changed = tables.run(source, "UPDATE {t} SET s = 'b' WHERE id = 5", "DELETE FROM {t} WHERE id = 6")
    rewritten = {file.path for file in source.table.files(changed)} - {file.path for file in source.table.files(first)}
    second = tables.run(source, "INSERT INTO {t} VALUES (2000, 1, 'c')")
    hidden = {Path(source.path) / path: tables.folder / path for path in rewritten}

    # Nobody decodes the rewritten files, so nobody misses them.
    for path, place in hidden.items():
        path.rename(place)
    after = {version: source.find(version, ["s", "id"], keys) for version in (second, first)}
    for path, place in hidden.items():
        place.rename(path)
    third = tables.run(source, "UPDATE {t} SET s = s || '!' WHERE id >= 900")

    assert hidden
    assert sorted(before.to_pydict()["id"]) == [5, 6]
    assert after[first].to_pylist() == before.to_pylist()
    assert sorted(after[second].to_pydict()["s"]) == ["b", "c"]
    # Too much has changed by then: from here on the newer files are looked into.
    assert sorted(source.find(third, ["s"], {"id": pa.array([5, 900])}).to_pydict()["s"]) == ["a!", "b"]
    assert source._lookup._base.version == third


def test_files_and_names_with_odd_signs_are_read(tables: Tables, spark: SparkSession) -> None:
    path = tables.folder / "odd folder %20 é"
    rows = local_frame(spark, [(1, "a b/c=d%é", 1.0), (2, None, 2.0)], "id INT, p STRING, v DOUBLE")
    rows.write.format("delta").partitionBy("p").save(str(path))
    source = DeltaSource(spark, "odd", str(path))
    spark.sql(f"UPDATE delta.`{path}` SET v = -v")

    versions = source.classify(0, 1, ["p", "v"])

    assert versions.broken is None
    assert _net(source.changes(versions, ["p", "v"])) == _difference(source, 0, 1, ["p", "v"])


def test_a_target_shows_only_changed_rows_in_its_feed_and_can_be_a_source(spark: SparkSession) -> None:
    schema = "k INT, n BIGINT"
    target = create_target(
        spark, "feed_of_target", local_frame(spark, [(k, 0) for k in range(20)], schema), "r0", {"trickle.x": "it's"}
    )
    change = local_frame(spark, [(1, 0, -1), (1, 7, 1)], "k INT, n BIGINT, __weight BIGINT")

    applied = target.apply_bag(change, "r1", target.state())

    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", applied.version).table(target.name)
    assert _bag(feed.select("k", "n", "_change_type")) == {(1, 0, "delete"): 1, (1, 7, "insert"): 1}
    source = DeltaSource(spark, "down", target.path)
    versions = source.classify(applied.version - 1, applied.version, ["k", "n"])
    assert _net(source.changes(versions, ["k", "n"])) == {(1, 0): -1, (1, 7): 1}
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {target.name}").collect()}
    assert properties["trickle.x"] == "it's"
    assert properties["delta.enableChangeDataFeed"] == "true"


def test_a_failed_creation_leaves_nothing(spark: SparkSession, warehouse_folder: Path) -> None:
    rows = spark.sql("SELECT id, CAST(raise_error('stop') AS INT) AS x FROM range(3)")

    with pytest.raises(Exception, match="stop"):
        create_target(spark, "never_made", rows, "r0")
    assert not spark.catalog.tableExists("never_made")
    assert not list(warehouse_folder.rglob("never_made"))

    create_target(spark, "made_once", spark.range(1), "r0")
    spark.range(1).createOrReplaceTempView("a_view")
    for name in ("made_once", "a_view"):
        with pytest.raises(DefinitionError) as taken:
            create_target(spark, name, spark.range(1), "r0")
        assert taken.value.code == "NAME_TAKEN"


def test_version_ranges_cost_no_job_and_no_data(tables: Tables, spark: SparkSession) -> None:
    source = tables.make("orders", "INSERT INTO {t} VALUES (1, 1, 'a')")
    source.classify(1, 1, COLUMNS)
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup()

    head = source.head()
    versions = source.classify(0, head, COLUMNS)

    assert versions == VersionRange(0, 1, "append", 1, versions.bytes)
    assert tracker.getJobIdsForGroup() == before
