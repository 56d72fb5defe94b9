"""Stream tables whose sources and results are on S3: as on a disk, with few requests, and safe when two commit at once."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trickle import Options, Trickle
from trickle.errors import StorageError, TrickleError
from trickle.tables.storage import credentials, schemes
from trickle.tables.storage.schemes import folder_at
from trickle.testing.s3 import KEYS
from trickle.testing.s3_proxy import s3_proxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.testing.s3 import S3Server

TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS s FROM {orders} GROUP BY customer"
BIG = "SELECT o.id, c.city FROM {orders} o JOIN {customers} c ON o.customer = c.id WHERE o.amount > 50"


@pytest.fixture
def shop(spark: SparkSession, s3: S3Server) -> Iterator[Shop]:
    made = Shop(spark, uuid.uuid4().hex[:8])
    yield made
    made.drop()


class Shop:
    """Tables of orders and customers on S3, and stream tables over them there."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.spark, self.schema = spark, f"shop_{schema}"
        self.place = f"s3a://lake/{self.schema}"
        self.t = Trickle(spark)
        spark.sql(f"CREATE DATABASE {self.schema} LOCATION '{self.place}'")
        feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        rows = "SELECT id, id % 10 AS customer, CAST(id % 100 AS INT) AS amount FROM range(500)"
        spark.sql(f"CREATE TABLE {self['orders']} {feed} AS {rows}")
        spark.sql(f"CREATE TABLE {self['customers']} {feed} AS SELECT id, 'city ' || id AS city FROM range(10)")

    def __getitem__(self, name: str) -> str:
        return f"{self.schema}.{name}"

    def create(self, name: str, query: str) -> None:
        self.t.create(self[name], query.format(orders=self["orders"], customers=self["customers"]))

    def insert(self, *rows: tuple[int, int, int]) -> None:
        self.spark.sql(f"INSERT INTO {self['orders']} VALUES {', '.join(map(str, rows))}")

    def drop(self) -> None:
        self.spark.sql(f"DROP DATABASE {self.schema} CASCADE")


def test_refreshes_over_s3_are_done_by_the_driver_and_right(shop: Shop) -> None:
    shop.create("totals", TOTALS)
    shop.create("big", BIG)
    shop.insert((1000, 3, 70), (1001, 11, 80))
    shop.spark.sql(f"UPDATE {shop['orders']} SET amount = 99 WHERE id = 7")
    shop.spark.sql(f"DELETE FROM {shop['orders']} WHERE id = 60")

    for name in ("totals", "big"):
        report = shop.t.refresh(shop[name])
        assert report.mode == "differential", report
        assert shop.t.verify(shop[name]).ok

    assert shop.t.refresh(shop["totals"]).mode == "no_data"
    explained = str(shop.t.explain(shop["big"]))
    assert "driver" in explained.lower()
    plan = shop.spark.table(shop["big"])._jdf.queryExecution().toString()
    shown = (explained, str(plan), repr(shop.t.history(shop["big"])), repr(shop.t.tables()))
    assert not [text for text in shown if KEYS[1] in text]


def _overwrite(table: str, version: int) -> None:
    """Put another commit in the place of one: Delta's own on S3 have no condition, and look before they write."""
    folder = folder_at(table)
    assert folder is not None
    info = {"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE", "operationParameters": {}}}
    folder.storage.put(folder / f"_delta_log/{version:020d}.json", json.dumps(info).encode() + b"\n")
    folder.storage.delete(*(folder / f"_delta_log/{at:020d}.crc" for at in (version, version + 1)))


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    ("place", "back", "code", "count"),
    [
        ("totals", 0, None, 53),  # what was lost is computed again
        ("totals", 1, "COMMIT_OVERWRITTEN", 53),
        ("orders", 0, "SOURCE_RESTORED", 52),
        ("orders", 1, "COMMIT_OVERWRITTEN", 52),
    ],
)
def test_a_commit_that_another_writer_overwrote_is_noticed(
    shop: Shop, place: str, back: int, code: str | None, count: int, is_new: bool
) -> None:
    """Of the stream table, and of a source: the newest, and one that the newest was built on."""
    shop.create("totals", TOTALS)
    for number in range(3):
        shop.insert((1000 + number, 3, 70))
        shop.t.refresh(shop["totals"])
    folder = folder_at(f"{shop.place}/{place}")
    assert folder is not None
    newest = max(folder.storage.versions(folder / "_delta_log", -1))
    _overwrite(folder.address, newest - back)
    process = Trickle(shop.spark, options=Options(disk_cache_bytes=10**9)) if is_new else shop.t

    report = process.refresh(shop["totals"])

    assert report.mode == ("differential" if code is None else "full")
    assert (None if report.reason is None else report.reason.code) == code
    assert process.verify(shop["totals"]).ok
    assert shop.spark.table(shop["totals"]).where("customer = 3").first()["n"] == count
    shop.insert((2000, 3, 70))
    assert process.refresh(shop["totals"]).mode == "differential"
    assert process.refresh(shop["totals"]).mode == "no_data"
    assert process.verify(shop["totals"]).ok


def test_keys_that_the_session_gets_anew_are_used(shop: Shop, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_RENEWED_EVERY", timedelta(0))
    conf: Any = shop.spark.sparkContext._jsc.hadoopConfiguration()
    s3.make_bucket("renewed")
    with s3_proxy(s3.endpoint) as proxy:
        conf.set("fs.s3a.bucket.renewed.endpoint", proxy.endpoint)
        try:
            for key in ("one", "two"):
                conf.set("fs.s3a.bucket.renewed.access.key", key)
                folder = folder_at("s3a://renewed/x")
                assert folder is not None
                folder.storage.put(folder / "y", b"z")
        finally:
            for key in ("endpoint", "access.key"):
                conf.unset(f"fs.s3a.bucket.renewed.{key}")
        assert [request.key for request in proxy.requests] == ["one", "two"]


def test_a_store_of_secrets_that_cannot_be_read_is_one_error(spark: SparkSession, s3: S3Server, tmp_path: Path) -> None:
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    (tmp_path / "keys.jceks").write_text("no store of keys")
    conf.set("hadoop.security.credential.provider.path", f"jceks://file{tmp_path}/keys.jceks")
    try:
        with pytest.raises(StorageError, match="STORAGE_SETTINGS"):
            folder_at("s3a://secret/x")
    finally:
        conf.unset("hadoop.security.credential.provider.path")


def test_a_storage_that_only_spark_reaches_is_told_once(shop: Shop, s3: S3Server) -> None:
    conf: Any = shop.spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.bucket.odd.custom.signers", "AWSS3V4SignerType")
    s3.make_bucket("odd")
    place = f"s3a://odd/{shop.schema}"
    try:
        shop.spark.sql(
            f"CREATE TABLE {shop['far']} USING delta LOCATION '{place}' AS SELECT id, 1 AS amount FROM range(5)"
        )
        shop.t.create(shop["copy"], f"SELECT id FROM {shop['far']}")
        told = []
        for number in range(2):
            shop.spark.sql(f"INSERT INTO {shop['far']} VALUES ({10 + number}, 1)")
            report = shop.t.refresh(shop["copy"])
            assert report.mode == "differential"
            told += report.warnings
        (warning,) = told
        assert warning.code == "SPARK_STORAGE"
        assert "custom.signers" in warning.text
        assert shop.t.verify(shop["copy"]).ok
    finally:
        conf.unset("fs.s3a.bucket.odd.custom.signers")


def test_two_refreshers_at_once_lose_and_double_nothing(shop: Shop) -> None:
    shop.create("totals", TOTALS)
    others = [Trickle(shop.spark), Trickle(shop.spark)]

    def refresh(process: Trickle) -> int:
        done = 0
        for _ in range(6):
            try:
                done += process.refresh(shop["totals"]).mode == "differential"
            except TrickleError as error:
                assert error.code == "CONCURRENT_REFRESH"  # noqa: PT017 - that, or no error
        return done

    with ThreadPoolExecutor(2) as pool:
        refreshing = [pool.submit(refresh, process) for process in others]
        for number in range(4):
            shop.insert((2000 + number, number, 1))
        assert sum(one.result() for one in refreshing) >= 1

    shop.t.refresh(shop["totals"])
    assert shop.t.verify(shop["totals"]).ok


def test_a_bucket_that_is_not_there_is_one_error(shop: Shop) -> None:
    shop.create("totals", TOTALS)
    source = folder_at("s3a://nowhere/orders")
    assert source is not None

    with pytest.raises(StorageError, match="STORAGE_MISSING"):
        source.storage.versions(source / "_delta_log", -1)


def test_credentials_that_only_hadoop_knows_how_to_get_are_asked_of_it(spark: SparkSession, s3: S3Server) -> None:
    s3.make_bucket("asked")
    jvm: Any = spark._jvm
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    provider = "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
    conf.set("fs.s3a.bucket.asked.aws.credentials.provider", provider)
    for key, value in (
        ("aws.accessKeyId", "of-the-jvm"),
        ("aws.secretAccessKey", "secret"),
        ("aws.sessionToken", "token"),
    ):
        jvm.System.setProperty(key, value)
    try:
        folder = folder_at("s3a://asked/x")
        assert folder is not None
        storage: Any = folder.storage
        credential = storage._client._renewed()
        assert (credential["access_key_id"], credential["token"]) == ("of-the-jvm", "token")
        storage.put_if_absent(folder / "y", b"z")
        assert storage.get(folder / "y") == b"z"
    finally:
        for key in ("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken"):
            jvm.System.clearProperty(key)


def test_the_loop_outlives_a_storage_that_refuses_for_a_while(
    shop: Shop, s3: S3Server, caplog: Any, tmp_path: Path
) -> None:
    conf: Any = shop.spark.sparkContext._jsc.hadoopConfiguration()
    with s3_proxy(s3.endpoint) as proxy:
        conf.set("fs.s3a.bucket.lake.endpoint", proxy.endpoint)  # Spark's own client is there already
        schemes._opened.pop("s3a://lake", None)
        try:
            t = Trickle(shop.spark)
            for name, query in (("totals", TOTALS), ("big", BIG)):
                text = query.format(orders=shop["orders"], customers=shop["customers"])
                t.create(shop[name], text, schedule="on commit")
            with t.start(
                lease=str(tmp_path / "lease")
            ) as running:  # elsewhere, or the loop would not get to the tables
                proxy.fault = lambda _: "refused"  # what is not available is asked for again, for a minute
                shop.insert((4000, 3, 70))
                wait_for(lambda: "[STORAGE_REFUSED]" in caplog.text)
                assert running.is_running
                proxy.fault = lambda _: None
                wait_for(lambda: shop.spark.table(shop["big"]).where("id = 4000").count() == 1)
            assert t.verify(shop["totals"]).ok
        finally:
            proxy.fault = lambda _: None
            conf.unset("fs.s3a.bucket.lake.endpoint")
            schemes._opened.pop("s3a://lake", None)
            Trickle(shop.spark)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)


def test_a_new_process_starts_warm(shop: Shop, s3: S3Server) -> None:
    """It fetches nothing that another process has fetched."""
    conf: Any = shop.spark.sparkContext._jsc.hadoopConfiguration()
    with s3_proxy(s3.endpoint) as proxy:
        conf.set("fs.s3a.bucket.lake.endpoint", proxy.endpoint)  # Spark's own client is there already
        try:
            shop.create("big", BIG)
            fetched = []
            for number, most in enumerate((10**9, 0, 10**9 + 1)):  # a Trickle with other options shares no memory
                shop.insert((3000 + number, 3, 70 + number))
                schemes._opened.pop("s3a://lake", None)
                process = Trickle(shop.spark, options=Options(disk_cache_bytes=most))
                proxy.clear()
                assert process.refresh(shop["big"]).mode == "differential"
                gets = [request.path.partition("?")[0] for request in proxy.requests if request.method == "GET"]
                fetched.append({path for path in gets if path.endswith((".parquet", ".json"))})
                assert process.verify(shop["big"]).ok
            assert fetched[0] & fetched[1]
            assert fetched[2]
            assert not fetched[0] & fetched[2]
        finally:
            conf.unset("fs.s3a.bucket.lake.endpoint")
            schemes._opened.pop("s3a://lake", None)
            Trickle(shop.spark)
