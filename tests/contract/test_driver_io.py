"""Delta tables written by the driver: the same commits as Spark's, read back by Spark and by delta-rs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from trickle.errors import ConflictError, StateError
from trickle.model.table_options import TableOptions
from trickle.tables.arrow.local import local_frame, row_key
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.tables.delta.commit import Transaction
from trickle.tables.delta.create import make_target, open_target
from trickle.tables.delta.log import last_checkpoint
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.table import forget_table

from .conftest import bag, net, net_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from trickle.tables.delta.target import DeltaTarget
from trickle.testing.targets import create_target

ALL = (
    "b boolean, i8 byte, i16 short, i32 int, i64 bigint, f float, d double, small decimal(9,2), mid decimal(18,4), "
    "wide decimal(38,10), s string, bin binary, day date, at timestamp, wall timestamp_ntz"
)
NOON = datetime(2024, 5, 6, 12, 0, 0, 123456)
ONE = (
    *(True, 1, 2, 3, 2**62, 1.5, 2.5, Decimal("-1.25"), Decimal("12345678901234.5678")),
    *(Decimal("1234567890123456789012345678.0123456789"), "ü", b"\x00\xff", date(1969, 12, 31)),
    *(NOON.replace(tzinfo=UTC), NOON),
)
NULLS = (None,) * 15
NAN = (*ONE[:5], float("nan"), float("nan"), *ONE[7:])
ZERO = (*ONE[:5], 0.0, -0.0, *ONE[7:])
OTHER_ZERO = (*ONE[:5], -0.0, 0.0, *ONE[7:])


def plain(row: Any) -> Any:
    """A row whose instants are UTC without saying so, as a UTC session collects them."""
    return row_key([v.astimezone(UTC).replace(tzinfo=None) if isinstance(v, datetime) and v.tzinfo else v for v in row])


@pytest.fixture
def made(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Any]:
    names: list[str] = []

    def make(schema: str, rows: Any, **properties: str) -> DeltaTarget:
        names.append(f"driver_{abs(hash(request.node.name)) % 10**8}_{len(names)}")
        frame = local_frame(spark, rows, schema)
        settings = {f"delta.{key}": value for key, value in properties.items()}
        return create_target(spark, names[-1], frame, "created", settings)

    yield make
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def local_folder(target: DeltaTarget) -> Path:
    assert target.table.folder is not None
    return Path(target.table.folder.address)


def reopened(spark: SparkSession, target: DeltaTarget) -> DeltaTarget:
    """The same table as another process sees it: nothing is known of it."""
    forget_table(spark, target.path)
    return open_target(spark, target.name)


def by_delta_rs(target: DeltaTarget) -> Counter[Any]:
    table = DeltaTable(str(local_folder(target))).to_pyarrow_table()
    return Counter(plain(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_spark(spark: SparkSession, target: DeltaTarget) -> Counter[Any]:
    return Counter(plain(tuple(row)) for row in spark.table(target.name).collect())


def test_every_plain_type_is_found_and_written_exactly(made: Any, spark: SparkSession) -> None:
    target = made(ALL, [ONE, ONE, NULLS, NULLS, NAN, ZERO])
    schema = spark.table(target.name).schema
    scanned = spark.table(target.name).where("i32 = 99")
    assert "driver" not in target.append(scanned, "by spark", target.state()).steps

    change = [(*ONE, -1), (*NULLS, -2), (*NAN, -1), (*OTHER_ZERO, -1), (*NAN, 2)]
    applied = target.apply_bag(local_frame(spark, change, f"{ALL}, {WEIGHT} bigint"), "bag", target.state())

    assert "driver" in applied.steps
    assert (applied.rows_inserted, applied.rows_deleted) == (2, 5)
    expected = Counter({plain(ONE): 1, plain(NAN): 2})
    assert by_spark(spark, target) == expected
    assert by_delta_rs(target) == expected
    assert spark.table(target.name).schema == schema
    fresh = reopened(spark, target)  # nothing kept: the rows are read from the files
    again = [(*NAN, -2), (*ONE, 1)]
    applied = fresh.apply_bag(local_frame(spark, again, f"{ALL}, {WEIGHT} bigint"), "again", fresh.state())
    assert "driver" in applied.steps
    assert by_spark(spark, target) == by_delta_rs(target) == {plain(ONE): 2}


def test_the_change_feed_tells_the_change(made: Any, spark: SparkSession) -> None:
    target = made("k int, v string", [(1, "a"), (2, "b"), (3, "c")])
    start = target.state().version

    rows, touched = [(1, "a"), (2, "B"), (None, "n")], [(1,), (2,), (3,), (None,)]
    frames = local_frame(spark, rows, "k int, v string"), local_frame(spark, touched, "k int")
    applied = target.replace_keys(*frames, ["k"], "keys", target.state())
    appended = target.append(frames[0], "more", target.state())

    assert "driver" in applied.steps
    feed = spark.sql(f"SELECT * FROM table_changes('{target.name}', {start + 1}, {applied.version})")
    counted = Counter((row["k"], row["v"], row["_change_type"]) for row in feed.collect())
    assert counted == {(2, "b", "delete"): 1, (3, "c", "delete"): 1, (2, "B", "insert"): 1, (None, "n", "insert"): 1}
    feed = spark.sql(f"SELECT * FROM table_changes('{target.name}', {appended.version})")
    assert Counter((row["k"], row["_change_type"]) for row in feed.collect()) == {
        (1, "insert"): 1,
        (2, "insert"): 1,
        (None, "insert"): 1,
    }
    source = DeltaSource(spark, "reader", target.path)
    versions = source.classify(start, appended.version, ["v", "k"])
    assert (versions.kind, versions.rows) == ("mixed", 7)
    small = source.small_changes(versions, ["v", "k"])
    assert small is not None
    assert net_arrow(small) == net(source.changes(versions, ["v", "k"]))
    history = spark.sql(f"DESCRIBE HISTORY {target.name} LIMIT 2").collect()
    assert [row["userMetadata"] for row in history] == ["more", "keys"]
    assert history[1]["operationMetrics"]["numDeletedRows"] == "2"


def test_columns_that_files_call_otherwise_are_read_and_written(made: Any, spark: SparkSession) -> None:
    columns = "k int, `sum(x)` decimal(10,2), `a b` string"
    target = made(columns, [(1, Decimal("1.00"), "x"), (2, None, None)], **{"columnMapping.mode": "name"})
    start = target.state().version

    change = local_frame(spark, [(2, None, None, -1), (3, Decimal("7.50"), "y", 2)], f"{columns}, {WEIGHT} bigint")
    applied = target.apply_bag(change, "bag", target.state())

    assert "driver" in applied.steps
    expected = Counter({(1, Decimal("1.00"), "x"): 1, (3, Decimal("7.50"), "y"): 2})
    assert by_spark(spark, target) == expected
    assert spark.table(target.name).where("`sum(x)` > 5").count() == 2  # by the statistics, too
    feed = spark.sql(f"SELECT * FROM table_changes('{target.name}', {start + 1}, {applied.version})").collect()
    assert Counter((row["k"], row["sum(x)"], row["_change_type"]) for row in feed) == {
        (2, None, "delete"): 1,
        (3, Decimal("7.50"), "insert"): 2,
    }
    fresh = reopened(spark, target)
    whole = fresh.small_rows()
    assert whole is not None
    assert whole.column_names == ["k", "sum(x)", "a b"]
    assert Counter(map(tuple, (row.values() for row in whole.to_pylist()))) == expected
    path = fresh.log.address_of((fresh.table.files(applied.version) or [])[0].path)
    stored = pq.read_schema(path)
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in stored] == [1, 2, 3]
    assert not set(stored.names) & {"k", "sum(x)", "a b"}
    again = fresh.apply_bag(
        local_frame(spark, [(1, Decimal("1.00"), "x", -1)], f"{columns}, {WEIGHT} bigint"), "less", fresh.state()
    )
    assert "driver" in again.steps
    assert by_spark(spark, fresh) == {(3, Decimal("7.50"), "y"): 2}


def test_a_late_writer_is_refused_and_leaves_no_file(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(1,), (2,)])
    start = target.state()
    folder = local_folder(target)

    def files() -> set[Path]:
        return {path for path in folder.rglob("*") if path.suffix in (".parquet", ".json", ".tmp")}

    put = target.driver._try

    def slow(write: Any, record: str, expected: Any) -> Any:
        def between(transaction: Any) -> Any:
            commit = transaction._commit

            def late(*args: Any) -> Any:
                open_target(spark, target.name).touch("first", start)
                return commit(*args)

            transaction._commit = late
            return write(transaction)

        return put(between, record, expected)

    target.driver._try = slow
    before = files()
    change = local_frame(spark, [(1, -1), (5, 1)], f"id bigint, {WEIGHT} bigint")
    with pytest.raises(ConflictError):
        target.apply_bag(change, "late", start)
    assert {path.suffix for path in files() - before} == {".json"}
    assert target.state().record == "first"
    del target.driver._try

    with pytest.raises(StateError):
        target.apply_bag(local_frame(spark, [(9, -1)], f"id bigint, {WEIGHT} bigint"), "mismatch", target.state())
    applied = target.apply_bag(change, "now", target.state())
    assert "driver" in applied.steps
    assert bag(target.frame()) == {(2,): 1, (5,): 1}


def test_what_spark_wrote_is_committed_in_the_driver(made: Any, spark: SparkSession) -> None:
    target = made("id bigint, half decimal(10,1)", [(1, None)])
    start = target.state()
    folder = local_folder(target)
    many = spark.range(1000).selectExpr("id", "CAST(id / 2 AS decimal(10,1)) AS half")
    transaction_write = Transaction.write

    def late(self: Transaction, rows: Any) -> Any:
        written = transaction_write(self, rows)
        open_target(spark, target.name).touch("first", start)
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "write", late)
        before = set(folder.glob("*.parquet"))
        with pytest.raises(ConflictError):
            target.overwrite(many, "late", start)
    assert set(folder.glob("*.parquet")) == before

    applied = target.overwrite(many, "all", target.state())

    assert (applied.rows_inserted, applied.rows_deleted) == (1000, 1)
    assert "driver" not in applied.steps
    commit = target.log.commit(applied.version)
    assert commit.info["engineInfo"].startswith("Trickle/")
    assert commit.info["operationMetrics"]["numOutputRows"] == "1000"
    none = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    assert target.handle.update().validateChecksum(none)
    assert by_spark(spark, target) == by_delta_rs(target) == Counter(plain(tuple(row)) for row in many.collect())
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", applied.version).table(target.name)
    assert Counter(row[0] for row in feed.select("_change_type").collect()) == {"insert": 1000, "delete": 1}


def test_partitions_that_spark_wrote_are_committed_in_the_driver(spark: SparkSession) -> None:
    rows = local_frame(spark, [(1, "a b"), (2, None), (3, "a b")], "id bigint, p string")
    spark.sql("DROP TABLE IF EXISTS in_partitions")
    options = TableOptions(partition_by=("p",))
    target = make_target(
        spark, "in_partitions", rows, lambda made: made.append(rows, "made", made.state()), table=options
    )

    change = local_frame(spark, [(1, "a b", -1), (4, "c", 1)], f"id bigint, p string, {WEIGHT} bigint")
    applied = target.apply_bag(change, "bag", target.state())

    commit = target.log.commit(applied.version)
    assert commit is not None
    assert commit.info["engineInfo"].startswith("Trickle/")
    assert commit.info["operationParameters"]["partitionBy"] == '["p"]'
    assert by_spark(spark, target) == {(2, None): 1, (3, "a b"): 1, (4, "c"): 1}
    assert spark.table(target.name).where("p = 'c'").count() == 1
    assert [row["p"] for row in spark.sql(f"SHOW PARTITIONS {target.name}").collect()].count("c") == 1
    spark.sql("DROP TABLE in_partitions")


def test_rows_of_the_driver_are_taken_as_they_are(made: Any, spark: SparkSession) -> None:
    target = made("id bigint, at timestamp", [(1, NOON.replace(tzinfo=UTC))])
    moment = pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": pa.array([2], pa.int64()), "at": moment})
    applied = target.append(rows, "as it is", target.state())
    other = pa.table({"id": pa.array([3], pa.int32()).cast(pa.int64()), "at": moment.cast(pa.timestamp("ns", "UTC"))})
    once_more = target.append(other, "by way of Spark", target.state())

    assert "driver" in applied.steps
    assert "driver" in once_more.steps
    target.driver = None
    target.append(rows, "by Spark", target.state())
    assert {row[0]: count for row, count in bag(target.frame()).items()} == {1: 1, 2: 2, 3: 1}
    assert len({row[1] for row in bag(target.frame())}) == 1


def test_a_checkpoint_is_written_after_the_commit_that_owes_it(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(1,)], checkpointInterval="4")
    folder = local_folder(target)
    numbers = []
    for number in range(9):
        applied = target.append(local_frame(spark, [(number,)], "id bigint"), str(number), target.state())
        assert "driver" in applied.steps
        numbers.append(target.log.commit(applied.version).transactions["trickle"])
        if applied.version % 4 == 0:
            CHECKPOINTS.finish(target.path)
            assert last_checkpoint(target.table.folder) == applied.version

    assert numbers == list(range(numbers[0], numbers[0] + 9))
    (folder / "_delta_log" / f"{0:020d}.json").unlink()
    target.handle.forget()
    assert bag(spark.table(target.name)) == {(1,): 2, **{(n,): 1 for n in (0, 2, 3, 4, 5, 6, 7, 8)}}
    assert reopened(spark, target).state().record == "8"


def test_a_log_twice_as_long_as_it_should_be_is_waited_for(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(1,)], checkpointInterval="2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target.handle, "checkpoint", lambda: 1 / 0)  # as if the process had ended each time
        for number in range(4):
            target.append(local_frame(spark, [(number,)], "id bigint"), str(number), target.state())
            CHECKPOINTS.finish(target.path)
    assert last_checkpoint(target.table.folder) == -1

    applied = target.touch("waits", target.state())

    assert last_checkpoint(target.table.folder) == applied.version


def test_a_log_without_its_beginning_is_read_from_its_checkpoint(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(1,), (2,), (3,)], checkpointInterval="2")
    target.touch("checkpoint", target.state())
    CHECKPOINTS.finish(target.path)
    folder = local_folder(target)
    (folder / "_delta_log" / f"{0:020d}.json").unlink()
    fresh = reopened(spark, target)
    by_driver = []
    for gone in (1, 2):
        change = local_frame(spark, [(gone, -1)], f"id bigint, {WEIGHT} bigint")
        applied = fresh.apply_bag(change, "less", fresh.state())
        by_driver.append("driver" in applied.steps)
        fresh.touch("step over the checkpoint", fresh.state())

    assert by_driver == [True, True]
    assert bag(fresh.frame()) == {(3,): 1}


def test_many_small_files_become_one(made: Any, spark: SparkSession) -> None:
    target = made("id bigint", [(0,)])
    for number in range(1, 10):
        target.append(local_frame(spark, [(number,)], "id bigint"), "more", target.state())
    assert len(target.table.files(target.log.head()) or ()) == 10

    change = local_frame(spark, [(3, -1)], f"id bigint, {WEIGHT} bigint")
    applied = target.apply_bag(change, "less", target.state())

    assert "driver" in applied.steps
    (file,) = target.table.files(applied.version) or ()
    assert json.loads(file.body["stats"])["numRecords"] == 9
    none = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    assert target.handle.update().validateChecksum(none)  # what we say of the version is what Delta computes
    assert bag(target.frame()) == {(n,): 1 for n in range(10) if n != 3}


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("feed", ["false", "true"])
def test_small_changes_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, vectors: str, feed: str) -> None:
    path = str(tmp_path / "t")
    local_frame(spark, [ONE, ONE, NULLS, NAN, ZERO], ALL).coalesce(1).write.format("delta").option(
        "delta.enableDeletionVectors", vectors
    ).option("delta.enableChangeDataFeed", feed).save(path)
    source = DeltaSource(spark, "t", path)
    names = spark.read.format("delta").load(path).columns
    spark.sql(f"DELETE FROM delta.`{path}` WHERE s IS NULL")
    spark.sql(f"UPDATE delta.`{path}` SET i8 = 7, s = 'x' WHERE isnan(d)")
    local_frame(spark, [ONE], ALL).write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE d = 0")

    for since, upto in ((0, 1), (0, 2), (2, 3), (1, 4), (0, 4), (4, 4)):
        versions = source.classify(since, upto, names)
        assert versions.broken is None
        small = source.small_changes(versions, names)
        assert small is not None
        found = {plain(row): weight for row, weight in net_arrow(small).items()}
        assert found == {plain(row): weight for row, weight in net(source.changes(versions, names)).items()}


def test_partitions_are_read_from_the_log_and_old_files_lack_new_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    local_frame(spark, [(1, "a b", None), (2, None, date(2024, 1, 2))], "id int, p string, q date").write.format(
        "delta"
    ).partitionBy("p", "q").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN extra int")
    local_frame(spark, [(3, "c", None, 5)], "id int, p string, q date, extra int").write.format("delta").mode(
        "append"
    ).save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    source = DeltaSource(spark, "t", path)
    names = ["extra", "p", "id", "q"]
    versions = source.classify(1, source.head(), names)

    small = source.small_changes(versions, names)

    assert small is not None
    assert (
        net_arrow(small) == net(source.changes(versions, names)) == {(5, "c", 3, None): 1, (None, "a b", 1, None): -1}
    )
