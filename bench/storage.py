"""The same five queries, and TPC-H, over tables on this machine's disk and on S3: seconds, requests, what slow answers cost.

Seconds are measured with clients that speak to the server itself; requests are counted by a proxy between them.

``python -m bench.storage [http://host:port/bucket]`` measures the first refresh of new processes, with and without a cache on
this machine's disk, where each request takes 20 ms longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bench.measure import count_differences, refresh, schema
from bench.results import DIFFERENTIAL, FULL, Case, Cycle, Part, Refreshed, Run
from bench.show import console, doing
from bench.sources import tpch_sources
from bench.tpch import mutation
from trickle import Options, Trickle, local_session
from trickle.tables.storage.disk_cache import PLACE
from trickle.testing import tpch
from trickle.testing.s3 import KEYS, S3Server, s3_server
from trickle.testing.s3_proxy import Proxy, s3_proxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.session import Session

LINES: Final = 600_000
ORDERS: Final = 150_000
CUSTOMERS: Final = 15_000
CHANGED: Final = 1000
"""One line in so many changes in a cycle."""

TPCH_RATE: Final = 0.001

LATENCY: Final = 0.02
"""Seconds added to each request, as a store far away takes."""

FAR_ROW: Final = "one row, 20 ms more for each request"
FAR_NOTHING: Final = "nothing new, 20 ms more for each request"

QUERIES: Final = {
    "join and aggregate": "SELECT city, count(*) AS n, sum(price) AS total FROM lines JOIN orders USING (o) JOIN customers "
    "USING (c) GROUP BY city",
    "aggregate": "SELECT kind, count(*) AS n, sum(price) AS total FROM lines GROUP BY kind",
    "semi join": "SELECT o, c FROM orders WHERE o IN (SELECT o FROM lines WHERE price > 990)",
    "window, top 3": "SELECT kind, l, price FROM (SELECT kind, l, price, row_number() OVER (PARTITION BY kind ORDER BY price "
    "DESC, l) AS place FROM lines) WHERE place <= 3",
    "filter": "SELECT l, o, price FROM lines WHERE price > 900",
}
SOURCES: Final = {"join and aggregate": 3, "semi join": 2}


LOCAL: Final = "local"
DIRECT: Final = "s3"
COUNTED: Final = "s3, counted"
"""The places of the runs; on the last one requests are counted."""


@dataclass(frozen=True, slots=True)
class Store:
    """A server of S3, a proxy before it, and two buckets: one that is reached by the proxy, one that is not.

    Attributes:
        endpoint: Of the server itself.
    """

    endpoint: str
    proxy: Proxy
    bucket: str

    @property
    def direct(self) -> str:
        """The bucket that is reached without the proxy."""
        return f"{self.bucket}-direct"

    @property
    def keys(self) -> tuple[str, str]:
        """The key and its secret."""
        return os.environ.get("AWS_ACCESS_KEY_ID", KEYS[0]), os.environ.get("AWS_SECRET_ACCESS_KEY", KEYS[1])

    @property
    def config(self) -> dict[str, str]:
        """The settings of Spark by which both are found."""
        own = dict(zip(("access.key", "secret.key"), self.keys, strict=True))
        own[f"bucket.{self.direct}.endpoint"] = self.endpoint
        return {**S3Server(self.proxy.endpoint).settings, **{f"spark.hadoop.fs.s3a.{k}": v for k, v in own.items()}}

    def make_buckets(self) -> None:
        """Make both if they are not there."""
        import boto3

        key, secret = self.keys
        names = {"aws_access_key_id": key, "aws_secret_access_key": secret, "region_name": "us-east-1"}
        client: Any = boto3.client("s3", endpoint_url=self.endpoint, **names)
        there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
        for name in {self.bucket, self.direct} - there:
            client.create_bucket(Bucket=name)

    def upload(self, folder: Path, prefix: str, done: set[Path]) -> None:
        """Copy what is new of the tables in a folder to the direct bucket, their commits last and in order."""
        from obstore.store import S3Store

        key, secret = self.keys
        store = S3Store(
            self.direct,
            endpoint=self.endpoint,
            access_key_id=key,
            secret_access_key=secret,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )
        new = sorted((path for path in folder.rglob("*") if path.is_file() and path not in done), key=_upload_order)
        for path in new:
            store.put(f"{prefix}/{path.relative_to(folder)}", path)
        done.update(new)


def _upload_order(path: Path) -> tuple[bool, str]:
    return path.parent.name == "_delta_log", str(path)


@contextmanager
def store(endpoint: str) -> Iterator[Store]:
    """Open the store to measure: ``http://host:port/bucket``; moto in this process if none is given."""
    with ExitStack() as stack:
        url = urlsplit(endpoint)
        address = f"{url.scheme}://{url.netloc}" if endpoint else stack.enter_context(s3_server()).endpoint
        opened = Store(address, stack.enter_context(s3_proxy(address)), url.path.strip("/") or "bench")
        opened.make_buckets()
        yield opened


def run_storage(session: Session, opened: Store, repeats: int, endpoint: str, *, has_tpch: bool) -> None:
    """Measure on the disk, on S3, and single rows on S3 with slow answers."""
    part = session.part("storage")
    server = urlsplit(endpoint).hostname or "moto"  # a port tells nothing
    for place in (LOCAL, DIRECT, COUNTED):
        run = session.begin(part, {"place": place, "lines": LINES, "server": server})
        if run is None:
            continue
        bucket = opened.direct if place == DIRECT else opened.bucket
        location = None if place == LOCAL else f"s3a://{bucket}/bench-{os.getpid()}"
        with schema(session.spark, f"storage_{len(part.runs)}", location):
            _measure(session, run, opened.proxy, place, repeats)
        session.end(run)
    if has_tpch:
        _measure_tpch(session, part, opened, repeats, server)


def _measure_tpch(session: Session, part: Part, opened: Store, repeats: int, server: str) -> None:
    """Measure TPC-H over the same tables on the disk and on S3: what a cycle writes to the disk is copied to the bucket."""
    runs = {
        place: session.begin(part, {"place": place, "scale": 1, "rate": TPCH_RATE, "server": server})
        for place in (LOCAL, DIRECT)
    }
    if None in runs.values():
        return
    spark, trickle = session.spark, Trickle(session.spark)
    prefix, done = f"tpch-{os.getpid()}", set[Path]()
    place_of = f"s3a://{opened.direct}/{prefix}"
    with (
        tpch_sources(spark, session.folder, scale=1, name="tpch_local") as sources,
        schema(spark, "tpch_s3", f"{place_of}/results"),
    ):
        opened.upload(sources.location, prefix, done)
        for table in tpch.TABLES:
            spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{place_of}/{table}'")
        change = mutation(spark, sources, TPCH_RATE, "random")
        cases = {place: [Case(name=name) for name in tpch.QUERIES] for place in runs}
        for place in runs:
            spark.sql(f"USE tpch_{place}")
            tpch.declare(trickle, check=False)
            for case in cases[place]:
                with doing(f"storage: {place}, creating {case.name}"):
                    trickle.create(f"{case.name}_{FULL}", tpch.QUERIES[case.name], mode="full")
                    trickle.create(f"{case.name}_{DIFFERENTIAL}", tpch.QUERIES[case.name])
        for number in range(1, repeats + 2):
            change(number)
            opened.upload(sources.location, prefix, done)
            for place, some in cases.items():
                for case in some:
                    with doing(f"storage: {place}, {case.name}, cycle {number} of {repeats + 1}"):
                        _cycle(session, trickle, f"tpch_{place}.{case.name}", case, number)
                    shown = {label: round(one.seconds, 2) for label, one in case.cycles[-1].refreshes.items()}
                    console.print(
                        f"  storage: {place}, {case.name}: {shown}, {case.cycles[-1].differences} rows differ"
                    )
        for place, run in runs.items():
            assert run is not None
            run.cases += cases[place]
            session.end(run)


def _cycle(session: Session, trickle: Trickle, table: str, case: Case, number: int) -> None:
    labels = (FULL, DIFFERENTIAL) if number % 2 else (DIFFERENTIAL, FULL)
    refreshes = {label: refresh(trickle, f"{table}_{label}") for label in labels}
    differing = count_differences(session.spark, f"{table}_{FULL}", f"{table}_{DIFFERENTIAL}")
    case.cycles.append(Cycle(number=number, warm_up=number == 1, refreshes=refreshes, differences=differing))


def _measure(session: Session, run: Run, proxy: Proxy, place: str, repeats: int) -> None:
    spark, trickle = session.spark, Trickle(session.spark)
    counter = proxy if place == COUNTED else None
    with doing(f"storage: {place}, making the tables"):
        _make_sources(session.spark, LINES)
        for number, query in enumerate(QUERIES.values()):
            for mode in ("differential", "full"):
                trickle.create(f"q{number}_{mode}", query, mode=mode)
    cases = [Case(name=name) for name in QUERIES]
    for cycle in range(1, repeats + 2):
        spark.sql(f"UPDATE lines SET price = (price + 13) % 1000 WHERE pmod(hash(l), {CHANGED}) = {cycle}")
        spark.sql(f"UPDATE orders SET c = (c + 1) % {CUSTOMERS} WHERE pmod(hash(o), {CHANGED}) = {cycle}")
        for number, case in enumerate(cases):
            refreshes = {}
            with doing(f"storage: {place}, {case.name}, cycle {cycle} of {repeats + 1}"):
                for label, mode in ((DIFFERENTIAL, "differential"), (FULL, "full")):
                    refreshes[label] = _timed(trickle, f"q{number}_{mode}", counter, is_full=label == FULL)
            case.cycles.append(Cycle(number=cycle, warm_up=cycle == 1, refreshes=refreshes))
    for number, case in enumerate(cases):
        verified = trickle.verify(f"q{number}_differential")
        case.cycles[-1].differences = verified.missing + verified.extra
        console.print(f"  storage: {place}, {case.name}: {case.cycles[-1].refreshes}")
    run.cases += cases
    if place == COUNTED:
        run.cases += _slow(trickle, proxy, lambda n: spark.sql(f"INSERT INTO lines VALUES ({LINES + n}, {n}, 'k1', 5)"))


def _slow(trickle: Trickle, proxy: Proxy, insert: Callable[[int], object]) -> Iterator[Case]:
    """Refresh one row, then nothing, while each request takes longer."""
    row, nothing = Case(name=FAR_ROW), Case(name=FAR_NOTHING)
    for number in range(1, 5):
        insert(number)
        proxy.seconds = LATENCY
        for case in (row, nothing):
            found = _timed(trickle, "q1_differential", proxy)
            case.cycles.append(Cycle(number=number, warm_up=number == 1, refreshes={DIFFERENTIAL: found}))
        proxy.seconds = 0.0
    yield from (row, nothing)


def _timed(trickle: Trickle, name: str, proxy: Proxy | None, *, is_full: bool = False) -> Refreshed:
    if proxy is not None:
        proxy.clear()
    began = time.perf_counter()
    report = trickle.refresh(name, full=is_full)
    return Refreshed(
        seconds=time.perf_counter() - began,
        mode=report.mode,
        reason=None if report.reason is None else report.reason.code,
        rows_inserted=report.rows_inserted,
        rows_deleted=report.rows_deleted,
        changed=sum(report.changed.values()),
        steps=dict(report.steps),
        requests=None if proxy is None else sum(proxy.count().values()),
    )


def _make_sources(spark: SparkSession, lines: int) -> None:
    feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(
        f"CREATE TABLE lines {feed} AS SELECT id AS l, pmod(hash(id), {ORDERS}) AS o, concat('k', pmod(hash(id, 1), 50)) AS "
        f"kind, pmod(hash(id, 2), 1000) AS price FROM range({lines})"
    )
    spark.sql(
        f"CREATE TABLE orders {feed} AS SELECT CAST(id AS INT) AS o, pmod(hash(id), {CUSTOMERS}) AS c FROM range({ORDERS})"
    )
    spark.sql(
        f"CREATE TABLE customers {feed} AS SELECT CAST(id AS INT) AS c, concat('city ', id % 100) AS city "
        f"FROM range({CUSTOMERS})"
    )


# -- new processes

COLD_LINES: Final = 200_000
COLD_ROUNDS: Final = 5


def measure_new_processes(opened: Store) -> None:
    """Refresh the join in new processes: one table always without the cache, another with it from its second time on."""
    warehouse = f"s3a://{opened.bucket}/cold-{os.getpid()}"
    spark: Any = local_session(warehouse, memory="2g", config=opened.config)
    _make_sources(spark, COLD_LINES)
    trickle = Trickle(spark, options=Options(disk_cache_bytes=0))
    for how in ("off", "on"):
        trickle.create(how, QUERIES["join and aggregate"], mode="differential")
    found: dict[str, list[tuple[int, float]]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(COLD_ROUNDS + 1):
            spark.sql(f"UPDATE lines SET price = (price + 13) % 1000 WHERE pmod(hash(l), {CHANGED}) = {number}")
            for how in found:
                found[how].append(_in_new_process(opened, warehouse, how, folder))
                console.print(f"  {how}, round {number}: {found[how][-1][0]} requests, {found[how][-1][1]:.2f} s")
        console.print(f"  on the disk: {sum(file.stat().st_blocks for file in os.scandir(folder)) * 512:,} bytes")
    for how, rounds in found.items():
        requests, seconds = (median(values) for values in zip(*rounds[1:], strict=True))
        console.print(f"  cache {how}: {requests:.0f} requests, {seconds:.2f} s; equal: {trickle.verify(how).ok}")


def _in_new_process(opened: Store, warehouse: str, how: str, folder: str) -> tuple[int, float]:
    """Return the requests and the seconds of one refresh, once the session is there."""
    command = [sys.executable, "-m", "bench.storage", "refresh", warehouse, how, json.dumps(opened.config)]
    with subprocess.Popen(
        command, env={**os.environ, PLACE: folder}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None or process.stdout.readline() != "ready\n":
            message = "the process did not start"
            raise RuntimeError(message)
        opened.proxy.clear()
        opened.proxy.seconds = LATENCY
        process.stdin.write("go\n")
        process.stdin.flush()
        seconds = float(process.stdout.readline())
        opened.proxy.seconds = 0.0
        return sum(opened.proxy.count().values()), seconds


def refresh_once(warehouse: str, how: str, config: str) -> None:
    """Refresh one table when told to, and print the seconds."""
    spark: Any = local_session(warehouse, memory="2g", config=json.loads(config))
    trickle = Trickle(spark, options=Options() if how == "on" else Options(disk_cache_bytes=0))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.perf_counter()
    trickle.refresh(how)
    sys.stdout.write(f"{time.perf_counter() - began}\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["refresh"]:
        refresh_once(*sys.argv[2:])
    else:
        with store(sys.argv[1] if sys.argv[1:] else "") as measured:
            measure_new_processes(measured)
