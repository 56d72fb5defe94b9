"""What a server of S3 is asked for, by the driver and by Spark's JVM: how often, and commits only under a condition."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from trickle import Options, Trickle
from trickle.engine.upkeep import Housekeeping
from trickle.errors import StorageError
from trickle.model.events import utc_now
from trickle.tables.storage import client, schemes
from trickle.testing.s3_proxy import Proxy, Request, s3_proxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.testing.s3 import S3Server

BUCKET = "counted"
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS s FROM {orders} GROUP BY customer"
NAMED = (
    "SELECT o.id, o.amount, c.city, p.label FROM {orders} o JOIN {customers} c ON o.customer = c.id "
    "JOIN {products} p ON o.product = p.id"
)
COMMIT = re.compile(r".*/_delta_log/(\d{20})\.json")


@pytest.fixture(scope="module")
def proxy(spark: SparkSession, s3: S3Server) -> Iterator[Proxy]:
    """A proxy that driver and JVM reach a bucket by."""
    s3.make_bucket(BUCKET)
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    with s3_proxy(s3.endpoint) as running:
        conf.set(f"fs.s3a.bucket.{BUCKET}.endpoint", running.endpoint)
        yield running
        conf.set(f"fs.s3a.bucket.{BUCKET}.endpoint", s3.endpoint)
        schemes._opened.pop(f"s3a://{BUCKET}", None)


@dataclass
class Shop:
    """Three tables in the bucket, and stream tables over them."""

    spark: SparkSession
    t: Trickle
    schema: str

    def __getitem__(self, name: str) -> str:
        return f"{self.schema}.{name}"

    def query(self, text: str) -> str:
        return text.format(**{name: self[name] for name in ("orders", "customers", "products")})

    def insert(self, *ids: int) -> None:
        rows = ", ".join(f"({id_}, {id_ % 10}, {id_ % 5}, {id_ % 100})" for id_ in ids)
        self.spark.sql(f"INSERT INTO {self['orders']} VALUES {rows}")


@pytest.fixture
def shop(spark: SparkSession, proxy: Proxy) -> Iterator[Shop]:
    made = Shop(spark, Trickle(spark), f"counted_{uuid.uuid4().hex[:8]}")
    spark.sql(f"CREATE DATABASE {made.schema} LOCATION 's3a://{BUCKET}/{made.schema}'")
    feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    orders = "SELECT id, id % 10 AS customer, id % 5 AS product, CAST(id % 100 AS INT) AS amount FROM range(500)"
    for name, rows in (
        ("orders", orders),
        ("customers", "SELECT id, 'city ' || id AS city FROM range(10)"),
        ("products", "SELECT id, 'product ' || id AS label FROM range(5)"),
    ):
        spark.sql(f"CREATE TABLE {made[name]} {feed} AS {rows}")
    proxy.fault = lambda _: None
    yield made
    proxy.fault = lambda _: None
    spark.sql(f"DROP DATABASE {made.schema} CASCADE")


@pytest.mark.parametrize(("query", "sources", "most"), [(TOTALS, 1, 20), (NAMED, 3, 40)])
def test_a_warm_refresh_takes_few_requests(shop: Shop, proxy: Proxy, query: str, sources: int, most: int) -> None:
    shop.t.create(shop["result"], shop.query(query))
    for number in range(3):
        shop.insert(1000 + number)
        if sources > 1:
            shop.spark.sql(f"INSERT INTO {shop['customers']} VALUES ({100 + number}, 'new')")
            shop.spark.sql(f"UPDATE {shop['products']} SET label = 'p {number}' WHERE id = {number}")
        shop.t.settle()
        proxy.clear()
        report = shop.t.refresh(shop["result"])
        assert report.mode == "differential"
    asked = list(proxy.requests)
    proxy.clear()
    assert shop.t.refresh(shop["result"]).mode == "no_data"
    looks = list(proxy.requests)
    assert shop.t.verify(shop["result"]).ok

    assert not [r.path for r in asked if r.method == "HEAD" and "object_store" in r.client and "_change_data" in r.path]
    assert len(asked) <= most, "\n".join(f"{r.method} {r.path} {r.client[:20]}" for r in asked)
    assert len(looks) <= 2 * (sources + 2), "\n".join(f"{r.method} {r.path}" for r in looks)


def _unconditional(proxy: Proxy, *tables: str) -> list[str]:
    """Return the commits that Spark's JVM made to tables and their state tables, without those that made the former."""
    found = []
    for request in proxy.requests:
        path = request.path.partition("?")[0]
        commit = COMMIT.fullmatch(path)
        is_later = commit and (int(commit[1]) or "/_trickle/" in path)
        if request.method == "PUT" and is_later and any(f"/{name}/" in path for name in tables):
            found.append((path, request.client))
    return [path for path, client in found if "Hadoop" in client]


def test_commits_to_stream_tables_have_a_condition(shop: Shop, proxy: Proxy) -> None:
    """Those of Delta itself have none on S3, so the driver makes them."""
    shop.t = Trickle(shop.spark, options=Options(commit_actions=1, small_files=1), history=shop["history"])
    totals, parted, ordered = tables = [shop[name] for name in ("totals", "parted", "ordered")]
    shop.t.create(totals, shop.query(TOTALS), comment="first")
    shop.t.create(parted, shop.query(NAMED), partition_by=["label"])
    shop.t.create(ordered, shop.query(NAMED), cluster_by=["city"])
    for number in range(3):
        shop.insert(*range(1000 + 10 * number, 1005 + 10 * number))
        for name in tables:
            assert shop.t.refresh(name).mode == "differential"
    before = {name: shop.spark.sql(f"DESCRIBE DETAIL {name}").first()["numFiles"] for name in tables}
    for name in (parted, ordered):
        done = Housekeeping(shop.t._engine).tidy(name, shop.t._engine.members(), utc_now())
        assert [what for what in done if what.endswith(name.rpartition(".")[2])], done
        assert shop.spark.sql(f"DESCRIBE DETAIL {name}").first()["numFiles"] < before[name]
    shop.t.refresh(parted, full=True)
    shop.t.alter(totals, comment="second", column_comments={"n": "how many"})
    shop.t.alter(totals, schedule="1h")
    shop.t.alter(totals, shop.query(TOTALS).replace("AS n,", "AS n, min(amount) AS least,"))
    shop.t.suspend(parted)
    shop.t.resume(parted)
    shop.t.settle()

    assert _unconditional(proxy, "totals", "parted", "ordered", "history") == []
    described = {row[0]: row[2] for row in shop.spark.sql(f"DESCRIBE {totals}").collect()}
    assert described["n"] == "how many"
    assert shop.spark.sql(f"DESCRIBE DETAIL {totals}").first()["description"] == "second"
    assert shop.spark.table(shop["history"]).count() >= 9
    shop.insert(5000)
    for name in tables:
        assert shop.t.refresh(name).mode == "differential"
        assert shop.t.verify(name).ok


# -- faults while a whole refresh runs


class Faulty:
    """Requests of the driver go wrong, some of them or until it is told to stop."""

    def __init__(self, fault: str, times: int, method: str = "") -> None:
        self.fault, self.left, self.method = fault, times, method

    def __call__(self, request: Request) -> Any:
        method, _, ending = self.method.partition(" ")
        if self.left == 0 or "object_store" not in request.client or method not in request.method:
            return None
        if not request.path.partition("?")[0].endswith(ending):
            return None
        self.left -= 1
        return self.fault


@pytest.mark.parametrize(
    ("fault", "method", "times"), [("unavailable", "", 12), ("cut body", "GET", 3), ("lost answer", "PUT", 2)]
)
def test_what_passes_is_waited_for(shop: Shop, proxy: Proxy, fault: str, method: str, times: int) -> None:
    shop.t.create(shop["totals"], shop.query(TOTALS))
    shop.insert(1000)
    proxy.fault = faulty = Faulty(fault, times, method)

    report = shop.t.refresh(shop["totals"])

    assert faulty.left == 0
    assert report.mode == "differential"
    assert shop.t.verify(shop["totals"]).ok


@pytest.mark.parametrize(
    ("fault", "code"),
    [("unavailable", "STORAGE_FAILED"), ("refused", "STORAGE_REFUSED"), ("skewed", "STORAGE_REFUSED")],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "PUT .json"])
def test_what_stays_is_one_error_and_the_next_refresh_is_right(
    shop: Shop, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, fault: str, code: str, method: str
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.0)
    monkeypatch.setattr(client, "RETRY", {"max_retries": 1})
    schemes._opened.pop(f"s3a://{BUCKET}", None)
    shop.t = Trickle(shop.spark, options=Options(disk_cache_bytes=10**8 + len(fault + method)))
    shop.t.create(shop["totals"], shop.query(TOTALS))
    shop.insert(1000)
    proxy.fault = Faulty(fault, -1, method)

    with pytest.raises(StorageError) as failed:
        shop.t.refresh(shop["totals"])

    assert failed.value.code == code
    assert BUCKET in failed.value.message
    proxy.fault = lambda _: None
    assert shop.t.refresh(shop["totals"]).mode in ("differential", "no_data")
    assert shop.t.verify(shop["totals"]).ok
    schemes._opened.pop(f"s3a://{BUCKET}", None)
