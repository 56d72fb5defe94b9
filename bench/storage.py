"""The same five queries over tables on this machine's disk and on S3: seconds, requests, and what slow answers cost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from bench.measure import schema
from bench.results import DIFFERENTIAL, FULL, Case, Cycle, Refreshed, Run
from bench.show import console, doing
from trickle import Trickle
from trickle.testing.s3 import KEYS, S3Server, s3_server
from trickle.testing.s3_proxy import Proxy, s3_proxy

if TYPE_CHECKING:
    from bench.session import Session

LINES: Final = 600_000
ORDERS: Final = 150_000
CUSTOMERS: Final = 15_000
CHANGED: Final = 1000
"""One line in so many changes in a cycle."""

LATENCY: Final = 0.02
"""Seconds added to each request, as a store far away takes."""

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


@dataclass(frozen=True, slots=True)
class Store:
    """A server of S3 behind a proxy, and a bucket of it that is there."""

    proxy: Proxy
    bucket: str

    @property
    def config(self) -> dict[str, str]:
        """The settings of Spark by which it is found."""
        keys = os.environ.get("AWS_ACCESS_KEY_ID", KEYS[0]), os.environ.get("AWS_SECRET_ACCESS_KEY", KEYS[1])
        own = dict(zip(("access.key", "secret.key"), keys, strict=True))
        return {**S3Server(self.proxy.endpoint).settings, **{f"spark.hadoop.fs.s3a.{k}": v for k, v in own.items()}}


@contextmanager
def store(endpoint: str) -> Iterator[Store]:
    """Open the store to measure: ``http://host:port/bucket``; moto in this process if none is given."""
    if endpoint:
        url = urlsplit(endpoint)
        with s3_proxy(f"{url.scheme}://{url.netloc}") as proxy:
            yield Store(proxy, url.path.strip("/"))
        return
    with s3_server() as server, s3_proxy(server.endpoint) as proxy:
        server.make_bucket("bench")
        yield Store(proxy, "bench")


def run_storage(session: Session, opened: Store, repeats: int, endpoint: str) -> None:
    """Measure on the disk, on S3, and single rows on S3 with slow answers."""
    part = session.part("storage")
    for place in ("local", "s3"):
        run = session.begin(part, {"place": place, "lines": LINES, "server": urlsplit(endpoint).netloc or "moto"})
        if run is None:
            continue
        location = None if place == "local" else f"s3a://{opened.bucket}/bench-{os.getpid()}"
        with schema(session.spark, f"storage_{place}", location):
            _measure(session, run, opened.proxy, place, repeats)
        session.end(run)


def _measure(session: Session, run: Run, proxy: Proxy, place: str, repeats: int) -> None:
    spark, trickle = session.spark, Trickle(session.spark)
    with doing(f"storage: {place}, making the tables"):
        _make_sources(session)
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
                    refreshes[label] = _timed(trickle, f"q{number}_{mode}", proxy, is_full=label == FULL)
            case.cycles.append(Cycle(number=cycle, warm_up=cycle == 1, refreshes=refreshes))
    for number, case in enumerate(cases):
        verified = trickle.verify(f"q{number}_differential")
        case.cycles[-1].differences = verified.missing + verified.extra
        console.print(f"  storage: {place}, {case.name}: {case.cycles[-1].refreshes}")
    run.cases += cases
    if place == "s3":
        run.cases += _slow(trickle, proxy, lambda n: spark.sql(f"INSERT INTO lines VALUES ({LINES + n}, {n}, 'k1', 5)"))


def _slow(trickle: Trickle, proxy: Proxy, insert: Callable[[int], object]) -> Iterator[Case]:
    """Refresh one row, then nothing, while each request takes longer."""
    row, nothing = Case(name="one row, 20 ms more for each request"), Case(name="nothing new, 20 ms more")
    for number in range(1, 5):
        insert(number)
        proxy.seconds = LATENCY
        for case in (row, nothing):
            found = _timed(trickle, "q1_differential", proxy)
            case.cycles.append(Cycle(number=number, warm_up=number == 1, refreshes={DIFFERENTIAL: found}))
        proxy.seconds = 0.0
    yield from (row, nothing)


def _timed(trickle: Trickle, name: str, proxy: Proxy, *, is_full: bool = False) -> Refreshed:
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
        requests=sum(proxy.count().values()),
    )


def _make_sources(session: Session) -> None:
    feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    session.spark.sql(
        f"CREATE TABLE lines {feed} AS SELECT id AS l, pmod(hash(id), {ORDERS}) AS o, concat('k', pmod(hash(id, 1), 50)) AS "
        f"kind, pmod(hash(id, 2), 1000) AS price FROM range({LINES})"
    )
    session.spark.sql(
        f"CREATE TABLE orders {feed} AS SELECT CAST(id AS INT) AS o, pmod(hash(id), {CUSTOMERS}) AS c FROM range({ORDERS})"
    )
    session.spark.sql(
        f"CREATE TABLE customers {feed} AS SELECT CAST(id AS INT) AS c, concat('city ', id % 100) AS city "
        f"FROM range({CUSTOMERS})"
    )
