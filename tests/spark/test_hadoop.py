"""Stream tables on Hadoop's file systems: the driver reads and commits by Spark's JVM; what cannot commit safely is Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest

from trickle import Trickle
from trickle.errors import ConflictError, SourceError
from trickle.observe.places import warehouse_places
from trickle.tables.storage import schemes
from trickle.tables.storage.hadoop import HadoopStorage
from trickle.tables.storage.protocol import TooLargeError
from trickle.tables.storage.schemes import Folder, folder_at
from trickle.testing.hadoop import mount

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = (
    "SELECT c.city, count(*) AS n, sum(o.amount) AS s FROM {orders} o JOIN {customers} c ON o.customer = c.id "
    "GROUP BY c.city"
)


@pytest.fixture(
    params=["viewfs", pytest.param("hdfs", marks=pytest.mark.slow), pytest.param("both", marks=pytest.mark.slow)]
)
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """A folder that viewfs mounts from this machine, one of HDFS, and one of HDFS that viewfs mounts."""
    root = "" if request.param == "viewfs" else f"{request.getfixturevalue('hdfs')}/{tmp_path.name}"
    return root if request.param == "hdfs" else mount(spark, root or tmp_path.as_uri())


@pytest.fixture
def schema(spark: SparkSession, place: str) -> Iterator[str]:
    """A database of two tables that are there; a mount is not known to the catalog, which has the settings of its start."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name}")
    feed = "USING delta LOCATION '{}' TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    rows = "SELECT id, id % 10 AS customer, CAST(id % 100 AS INT) AS amount FROM range(500)"
    spark.sql(f"CREATE TABLE {name}.orders {feed.format(f'{place}/orders')} AS {rows}")
    rows = "SELECT id, 'city ' || id % 3 AS city FROM range(10)"
    spark.sql(f"CREATE TABLE {name}.customers {feed.format(f'{place}/customers')} AS {rows}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def create(t: Trickle, schema: str, place: str) -> str:
    query = QUERY.format(orders=f"{schema}.orders", customers=f"{schema}.customers")
    t.create(f"{schema}.cities", query, location=f"{place}/cities")
    return f"{schema}.cities"


def test_a_refresh_is_done_by_the_driver_without_a_job(spark: SparkSession, schema: str, place: str) -> None:
    t = Trickle(spark)
    name = create(t, schema, place)
    for change in (
        f"INSERT INTO {schema}.orders VALUES (1000, 3, 70), (1001, 5, 80)",
        f"UPDATE {schema}.orders SET amount = 99 WHERE id = 7",
        f"DELETE FROM {schema}.orders WHERE id = 60",
        f"UPDATE {schema}.customers SET city = 'elsewhere' WHERE id = 4",
    ):
        spark.sql(change)
        before = set(spark.sparkContext.statusTracker().getJobIdsForGroup())

        report = t.refresh(name)

        jobs = set(spark.sparkContext.statusTracker().getJobIdsForGroup()) - before
        assert (report.mode, jobs) == ("differential", set()), report
        assert t.verify(name).ok
    assert t.refresh(name).mode == "no_data"
    assert "only Hadoop knows" not in str(t.explain(name))


def test_another_process_and_another_writer_see_the_commits(spark: SparkSession, schema: str, place: str) -> None:
    name = create(Trickle(spark), schema, place)
    spark.sql(f"INSERT INTO {schema}.orders VALUES (1000, 3, 70)")
    one = Trickle(spark).refresh(name)
    spark.sql(f"OPTIMIZE {name}")  # a commit of Delta's own, on top of the driver's
    spark.sql(f"INSERT INTO {schema}.orders VALUES (1001, 3, 70)")

    other = Trickle(spark).refresh(name)

    assert (one.mode, other.mode) == ("differential", "differential")
    assert Trickle(spark).verify(name).ok
    assert spark.table(name).agg({"n": "sum"}).first()[0] == 502


def test_of_two_who_commit_at_once_one_wins(spark: SparkSession, schema: str, place: str) -> None:
    name = create(Trickle(spark), schema, place)
    processes = [Trickle(spark) for _ in range(3)]
    for number in range(3):
        spark.sql(f"INSERT INTO {schema}.orders VALUES ({2000 + number}, {number}, 1)")
        start, done = Barrier(len(processes)), []

        def refresh(process: Trickle, start: Barrier = start, done: list[str] = done) -> None:
            start.wait()
            try:
                done.append(process.refresh(name).mode)
            except ConflictError as error:
                done.append(error.code)

        threads = [Thread(target=refresh, args=(process,)) for process in processes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert done.count("differential") == 1, done
        assert set(done) <= {"differential", "no_data", "CONCURRENT_REFRESH"}
    assert Trickle(spark).verify(name).ok
    assert spark.table(name).agg({"n": "sum"}).first()[0] == 503


def test_what_cannot_commit_in_one_step_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    mounted = mount(spark, tmp_path.as_uri())
    assert folder_at(f"{mounted}/orders") is not None
    for location in (
        f"{mounted.removesuffix('/data')}/other",  # not mounted
        f"{mount(spark, 's3a://lake/x')}/orders",
        "hdfs://no-such-host.invalid/orders",
        "webhdfs://localhost:1/orders",
        "hdfs:///orders",
    ):
        assert folder_at(location) is None, location


def test_without_a_jvm_a_place_of_hadoop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemes, "running_spark", lambda: None)
    with pytest.raises(SourceError, match="NEEDS_SPARK"):
        warehouse_places("hdfs://host/shop")


def opened(spark: SparkSession, place: str, **limits: int) -> Folder:
    """A folder in a storage of its own, with other limits."""
    found = folder_at(place)
    assert found is not None
    known: Any = found.storage
    return Folder(HadoopStorage(spark.sparkContext, known.root, known._fs, known._mounts, **limits), found.address)


def test_files_too_large_to_copy_are_searched_by_spark(spark: SparkSession, place: str) -> None:
    folder = opened(spark, place, copied=100)
    folder.storage.put(folder / "a.parquet", bytes(60))
    folder.storage.put(folder / "b.parquet", bytes(60))

    both = [folder / "a.parquet", folder / "b.parquet"]
    for files in (both[:1], both):  # of both, one is there already
        with folder.storage.scannable(files) as copies:
            assert [Path(path).stat().st_size for path in copies.files] == [60 for _ in files]
    with pytest.raises(TooLargeError), opened(spark, place, copied=100).storage.scannable(both):
        pass


def test_copies_are_given_up_for_newer_ones(spark: SparkSession, place: str) -> None:
    folder = opened(spark, place, copies=100)
    paths = []
    for name in ("a.parquet", "b.parquet", "_delta_log/1.checkpoint.parquet"):
        folder.storage.put(folder / name, name.encode() * 5)
        folder.storage.fetch([folder / name])
        with folder.storage.readable(folder / name) as file:
            assert file.read() == name.encode() * 5
        with folder.storage.scannable([folder / "a.parquet"]) as copies:
            paths += copies.files
    assert sum(Path(path).exists() for path in set(paths)) == 1


def test_old_unfinished_files_are_swept(spark: SparkSession, place: str) -> None:
    folder = opened(spark, place)
    storage: Any = folder.storage
    for name in (".trickle-old.tmp", ".trickle-new.tmp", "other.tmp"):
        storage.put(folder / name, b"")
    for name in (".trickle-old.tmp", "other.tmp"):
        storage._fs.setTimes(storage._path(folder / name), 1000, 1000)

    storage.sweep(folder.address)

    assert sorted(storage.names(folder.address)) == [".trickle-new.tmp", "other.tmp"]


def test_a_file_that_cannot_be_named_so_is_not_there_and_others_are(spark: SparkSession, place: str) -> None:
    folder = opened(spark, place)
    for name in ("a b", "100%25", "x, y", "ü#?&[*]{1}", "(a)"):
        folder.storage.put_if_absent(folder / name, name.encode())
        assert folder.storage.get(folder / name) == name.encode()
    assert sorted(folder.storage.names(folder.address)) == sorted(["a b", "100%25", "x, y", "ü#?&[*]{1}", "(a)"])


@pytest.mark.slow
def test_a_lost_answer_of_hdfs_is_told_from_a_lost_race(spark: SparkSession, hdfs: str) -> None:
    """A rename that was done, and failed to say so, is found by what is left."""
    folder = opened(spark, f"{hdfs}/lost/{uuid.uuid4()}")
    storage: Any = folder.storage
    rename = storage._rename

    def lost(*given: Any) -> None:
        rename(*given)
        rename(*given)  # as a client does that heard nothing

    storage._rename = lost
    storage.put_if_absent(folder / "a", b"ours")
    with pytest.raises(FileExistsError):
        storage.put_if_absent(folder / "a", b"theirs")

    assert storage.get(folder / "a") == b"ours"
    assert storage.names(folder.address) == ["a"]
