"""Rows deleted by deletion vectors that the driver writes: the same rows to Spark, to polars and to us."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deltalake import DeltaTable

from trickle.errors import ConflictError, StateError
from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.local import local_frame, row_key
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.compaction import compact, wasteful_files
from trickle.tables.delta.create import open_target
from trickle.tables.delta.driver.masking import VECTORS
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.table import forget_table

from .conftest import bag, net, net_arrow
from .test_driver_io import ALL, NAN, NULLS, ONE, OTHER_ZERO, ZERO, by_spark, local_folder, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from trickle.tables.delta.target import DeltaTarget
from trickle.testing.targets import create_target

MASKED = Options(vector_rows=0, inline_vector_rows=0)


@pytest.fixture
def made(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Any]:
    names: list[str] = []

    def make(schema: str, rows: Any, options: Options = MASKED, **properties: str) -> DeltaTarget:
        names.append(f"masked_{abs(hash(request.node.name)) % 10**8}_{len(names)}")
        settings = {f"delta.{key}": value for key, value in properties.items()}
        return create_target(spark, names[-1], local_frame(spark, rows, schema), "created", settings, options=options)

    yield make
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def reopened(spark: SparkSession, target: DeltaTarget, options: Options = MASKED) -> DeltaTarget:
    """The same table as another process sees it: nothing is known of it."""
    forget_table(spark, target.path, options)
    return open_target(spark, target.name, options=options)


def by_polars(target: DeltaTarget) -> Counter[Any]:
    return Counter(plain(row) for row in pl.scan_delta(str(local_folder(target))).collect().rows())


def changed(spark: SparkSession, target: DeltaTarget, schema: str, *rows: Any) -> Any:
    applied = target.apply_bag(local_frame(spark, rows, f"{schema}, {WEIGHT} bigint"), "bag", target.state())
    assert "driver" in applied.steps
    return applied


def masks(target: DeltaTarget) -> list[int]:
    """How many rows are masked in each file."""
    return [file.masked for file in target.table.files(target.log.head()) or ()]


@pytest.mark.parametrize("writer", ["driver", "spark"])  # whose old timestamps have a form of their own
def test_rows_of_every_type_are_found_and_masked(made: Any, spark: SparkSession, writer: str) -> None:
    target = made(ALL, [])
    target.driver = target.driver if writer == "driver" else None
    rows = local_frame(spark, [ONE, ONE, NULLS, NULLS, NAN, ZERO], ALL)
    target.append(rows if writer == "driver" else rows.coalesce(1), "rows", target.state())
    fresh = reopened(spark, target)

    applied = changed(spark, fresh, ALL, (*ONE, -1), (*NULLS, -2), (*NAN, -1), (*OTHER_ZERO, -1), (*NAN, 2))

    assert (applied.rows_inserted, applied.rows_deleted) == (2, 5)
    expected = Counter({plain(ONE): 1, plain(NAN): 2})
    assert by_spark(spark, target) == by_polars(target) == expected
    assert sorted(masks(fresh)) == [0, 5]
    assert fresh.count(applied.version) == 3
    with pytest.raises(Exception, match=r"deletion|Unsupported"):  # delta-rs's reader of Arrow; docs/limits.md
        DeltaTable(str(local_folder(target))).to_pyarrow_table()
    with pytest.raises(StateError):
        changed(spark, fresh, ALL, (*ONE, -2))
    changed(spark, reopened(spark, target), ALL, (*ONE, -1), (*NAN, -1))
    assert by_spark(spark, target) == by_polars(target) == {plain(NAN): 1}
    (left,) = fresh.table.files(fresh.log.head()) or ()
    assert (left.records, left.masked) == (2, 1)  # the file without rows is gone


def test_the_change_feed_tells_the_change(made: Any, spark: SparkSession) -> None:
    target = made("k int, v string", [(n, "a") for n in range(6)])
    start = target.state().version

    rows, touched = [(1, "a"), (2, "B"), (None, "n")], [(1,), (2,), (3,), (None,)]
    frames = local_frame(spark, rows, "k int, v string"), local_frame(spark, touched, "k int")
    applied = target.replace_keys(*frames, ["k"], "keys", target.state())
    changed(spark, target, "k int, v string", (0, "a", -1), (None, "n", -1))

    feed = spark.sql(f"SELECT * FROM table_changes('{target.name}', {start + 1}, {applied.version})")
    counted = Counter((row["k"], row["v"], row["_change_type"]) for row in feed.collect())
    assert counted == {(2, "a", "delete"): 1, (3, "a", "delete"): 1, (2, "B", "insert"): 1, (None, "n", "insert"): 1}
    source = DeltaSource(spark, "reader", target.path)
    versions = source.classify(start, source.head(), ["v", "k"])
    expected = {("a", 0): -1, ("a", 2): -1, ("a", 3): -1, ("B", 2): 1}
    small = source.small_changes(versions, ["v", "k"])
    assert small is not None
    assert net_arrow(small) == net(source.changes(versions, ["v", "k"])) == expected
    assert by_spark(spark, target) == by_polars(target) == {(1, "a"): 1, (4, "a"): 1, (5, "a"): 1, (2, "B"): 1}
    before = spark.read.option("versionAsOf", start).table(target.name)
    assert bag(before) == {(n, "a"): 1 for n in range(6)}
    spark.sql(f"RESTORE TABLE {target.name} TO VERSION AS OF {applied.version}")
    assert bag(spark.table(target.name))[(None, "n")] == 1
    assert target.state().external == ("RESTORE",)


def test_vectors_of_others_are_merged(made: Any, spark: SparkSession) -> None:
    target = made("`sum(x)` int, v string", [], **{"columnMapping.mode": "name", "enableDeletionVectors": "true"})
    rows = spark.range(1000).selectExpr("CAST(id AS int) AS `sum(x)`", "CAST(id % 3 AS string) AS v").coalesce(1)
    target.append(rows, "rows", target.state())
    spark.sql(f"DELETE FROM {target.name} WHERE `sum(x)` % 10 = 0")
    assert masks(target) == [100]

    schema = "`sum(x)` int, v string"
    with pytest.raises(StateError):  # a row that is masked is not there
        changed(spark, target, schema, (10, "1", -1))
    changed(spark, target, schema, (11, "2", -1), (12, "0", -1), (None, None, 1))

    assert sorted(masks(target)) == [0, 102]
    expected = {(n, str(n % 3)): 1 for n in range(1000) if n % 10 and n not in (11, 12)} | {(None, None): 1}
    assert bag(spark.table(target.name)) == expected
    everything = local_frame(spark, [(*row, -1) for row in expected], f"{schema}, {WEIGHT} bigint")
    target.apply_bag(everything, "nothing is left", target.state())
    assert target.table.files(target.log.head()) == []


def test_a_property_turns_vectors_off_and_on(made: Any, spark: SparkSession) -> None:
    schema, rows = "k int", [(n,) for n in range(5)]
    off, small = made(schema, rows, enableDeletionVectors="false"), made(schema, rows, DEFAULT)
    on = made(schema, rows, DEFAULT, enableDeletionVectors="true")
    for target in (off, small, on):
        changed(spark, target, schema, (3, -1))
        assert bag(target.frame()) == {(n,): 1 for n in (0, 1, 2, 4)}

    assert (masks(off), masks(small), masks(on)) == ([0], [0], [1])
    metadata = small.log.metadata(small.log.head())
    assert (
        VECTORS not in metadata["configuration"]
    )  # of a small result, every reader can read what it could read before
    spark.sql(f"ALTER TABLE {on.name} SET TBLPROPERTIES ('{VECTORS}' = 'false')")
    changed(spark, on, schema, (4, -1), (7, 1))
    assert (masks(on), bag(on.frame())) == ([0], {(n,): 1 for n in (0, 1, 2, 7)})


def test_without_vectors_only_files_with_changed_rows_are_written_anew(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [], Options(commit_rows=30), enableDeletionVectors="false")
    for start in (0, 20, 40):
        target.append(spark.range(start, start + 20).coalesce(1), "rows", target.state())
    before = {file.path for file in target.table.files(target.log.head()) or ()}

    changed(spark, target, "id bigint", (25, -1), (70, 1))

    after = target.table.files(target.log.head()) or []
    assert sorted(file.records or 0 for file in after) == [1, 19, 20, 20]
    assert len(before & {file.path for file in after}) == 2
    assert by_polars(target) == {(n,): 1 for n in (*range(60), 70) if n != 25}
    both = local_frame(spark, [(1, -1), (41, -1), (71, 1)], f"id bigint, {WEIGHT} bigint")
    applied = target.apply_bag(both, "of more rows than the driver may hold", target.state())
    assert "driver" not in applied.steps
    assert by_polars(target) == {(n,): 1 for n in (*range(60), 70, 71) if n not in (1, 25, 41)}


def test_a_late_writer_leaves_no_vector_behind(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(1,), (2,)])
    start = target.state()
    put = target.driver._try

    def slow(write: Any, record: str, expected: Any) -> Any:
        def between(transaction: Any) -> Any:
            commit = transaction._commit

            def late(*args: Any) -> Any:
                assert list(local_folder(target).glob("*.bin"))
                open_target(spark, target.name).touch("first", start)
                return commit(*args)

            transaction._commit = late
            return write(transaction)

        return put(between, record, expected)

    target.driver._try = slow
    before = set(local_folder(target).glob("*.*"))
    change = local_frame(spark, [(1, -1), (5, 1)], f"id bigint, {WEIGHT} bigint")
    with pytest.raises(ConflictError):
        target.apply_bag(change, "late", start)
    assert set(local_folder(target).glob("*.*")) == before
    del target.driver._try
    target.apply_bag(change, "now", target.state())
    assert bag(target.frame()) == by_polars(target) == {(2,): 1, (5,): 1}


def test_only_wasteful_files_are_written_anew(made: Any, spark: SparkSession) -> None:
    options = Options(vector_rows=0, small_files=2, small_file_bytes=2500, masked_share=4)
    target = made("id bigint", [], options)
    for start in (0, 1000, 2000):
        target.append(spark.range(start, start + 1000).coalesce(1), "big", target.state())
    gone = [(n, -1) for n in (*range(1), *range(1000, 1300))]
    changed(spark, target, "id bigint", *gone, *((n, 1) for n in range(5000, 5003)))
    for number in range(2):
        changed(spark, target, "id bigint", (5000 + number, -1), (6000 + number, 1))
    source, start = DeltaSource(spark, "reader", target.path), target.log.head()
    expected, files = bag(target.frame()), target.table.files(start) or []
    assert sorted(masks(target)) == [0, 0, 0, 1, 2, 300]
    assert len(wasteful_files(files, options)) == 4

    assert compact(target.table)

    assert sorted(masks(target)) == [0, 0, 1]
    assert bag(target.frame()) == expected
    assert by_polars(target) == expected
    assert target.state().external == ()
    assert source.classify(start, source.head(), ["id"]).kind == "none"
    changed(spark, target, "id bigint", (6000, -1), (1500, -1))
    assert source.classify(start, source.head(), ["id"]).rows == 2
    assert by_polars(target) == expected - Counter([row_key((6000,)), row_key((1500,))])


def test_small_files_that_nobody_merged_go_into_the_commit(made: Any, spark: SparkSession) -> None:
    options = Options(vector_rows=0, small_file_bytes=2500, appended_files=3)
    target = made("id bigint", [], options)
    start = target.append(spark.range(20_000).coalesce(1), "big", target.state()).version + 1
    expected, most = Counter(range(20_000)), 0
    for number in range(5):
        changed(spark, target, "id bigint", (number, -1), (20_000 + number, 1), (30_000 + number, 1))
        changed(spark, target, "id bigint", (20_000 + number, -1))
        expected -= Counter([number])
        expected += Counter([30_000 + number])
        assert by_polars(target) == {(n,): 1 for n in expected}
        most = max(most, len(masks(target)))
    assert most == 4  # the big one, and three small ones: a fourth is merged with the next
    assert bag(spark.table(target.name)) == {(n,): 1 for n in expected}
    feed = spark.sql(f"SELECT * FROM table_changes('{target.name}', {start})").groupBy("_change_type").count().collect()
    assert dict(map(tuple, feed)) == {"delete": 10, "insert": 10}
