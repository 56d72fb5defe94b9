"""One ``Trickle`` in several threads: every refresh is exact, and two of one table do not disturb each other."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from trickle import Trickle

THREADS = 4
SCHEMAS = {
    "orders": pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.int64())]),
    "customers": pa.schema([("id", pa.int64()), ("city", pa.string())]),
}


def by_city(orders, customers):
    sums: Counter[str] = Counter()
    for _, customer, amount in orders:
        sums.update({city: amount for id_, city in customers if id_ == customer})
    seen = {city for _, c, _ in orders for id_, city in customers if id_ == c}
    return [(city, sums[city]) for city in seen]


def largest(orders, customers):
    ranked = sorted(orders, key=lambda o: (-o[2], -o[0]))
    return [(id_, amount) for id_, _, amount in ranked[:5]]


def totals(orders, customers):
    groups: dict[int, list[int]] = {}
    for _, customer, amount in orders:
        groups.setdefault(customer, []).append(amount)
    return [(c, sum(a), len(a), Decimal(max(a))) for c, a in groups.items()]


#: Each query with what it means.
QUERIES = {
    "copies": ("SELECT id, amount FROM orders WHERE amount > 5", lambda o, _: [(i, a) for i, _, a in o if a > 5]),
    "totals": (
        "SELECT customer, sum(amount) AS s, count(*) AS n, CAST(max(amount) AS DECIMAL(10)) AS m FROM orders GROUP BY customer",
        totals,
    ),
    "joined": (
        "SELECT o.id, c.city FROM orders o JOIN customers c ON c.id = o.customer",
        lambda o, c: [(i, city) for i, k, _ in o for id_, city in c if id_ == k],
    ),
    "by_city": (
        "SELECT city, sum(amount) AS s FROM orders o JOIN customers c ON c.id = customer GROUP BY city",
        by_city,
    ),
    "idle": (
        "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        lambda o, c: [(i,) for i, _ in c if i not in {k for _, k, _ in o}],
    ),
    "largest": ("SELECT id, amount FROM orders ORDER BY amount DESC, id DESC LIMIT 5", largest),
    "cities": ("SELECT DISTINCT city FROM customers", lambda _, c: [(city,) for city in {city for _, city in c}]),
    "both": (
        "SELECT id FROM customers UNION ALL SELECT customer FROM orders",
        lambda o, c: [(i,) for i, _ in c] + [(k,) for _, k, _ in o],
    ),
}


class Sources:
    """The two sources, with the rows of every version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.rows = {
            "orders": [[(i, i % 3, i) for i in range(12)]],
            "customers": [[(i, f"city {i % 2}") for i in range(4)]],
        }
        for name in SCHEMAS:
            write_deltalake(
                folder / name,
                self.table(name, self.rows[name][0]),
                configuration={"delta.enableChangeDataFeed": "true"},
            )

    @staticmethod
    def table(name: str, rows: list[tuple]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(SCHEMAS[name].names, row, strict=True)) for row in rows], SCHEMAS[name])

    def change(self, chance: random.Random) -> None:
        """Commit some new rows, or delete some."""
        name = chance.choice(["orders", "orders", "customers"])
        with self.lock:
            rows = self.rows[name][-1]
            if len(rows) > 20:
                gone = chance.randrange(5)
                DeltaTable(self.folder / name).delete(f"id % 5 = {gone}")
                kept = [row for row in rows if row[0] % 5 != gone]
                if len(kept) < len(rows):
                    self.rows[name].append(kept)
                return
            start = max((row[0] for row in rows), default=0) + 1
            new = [
                (i, chance.randrange(8), chance.randrange(20))
                if name == "orders"
                else (i, f"city {chance.randrange(4)}")
                for i in range(start, start + chance.randint(1, 3))
            ]
            write_deltalake(self.folder / name, self.table(name, new), mode="append")
            self.rows[name].append([*rows, *new])


@pytest.fixture
def sources(spark, warehouse_folder):
    spark.sql("CREATE DATABASE threads")
    spark.sql("USE threads")
    yield Sources(warehouse_folder / "threads.db")
    spark.sql("USE default")
    spark.sql("DROP DATABASE threads CASCADE")


def refresh_in_threads(spark, sources: Sources, refreshes: int) -> None:
    trickle = Trickle(spark)
    for name, (query, _) in QUERIES.items():
        trickle.create(name, query, mode="differential")
    reports = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(refreshes // THREADS):
            if chance.random() < 0.5:
                sources.change(chance)
            name = chance.choice(list(QUERIES))
            reports.append((name, trickle.refresh(name)))

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, seed) for seed in range(THREADS)]:
            done.result()

    assert len(reports) == refreshes
    for name, report in reports:
        assert report.mode in ("differential", "no_data"), (name, report)
        meant = QUERIES[name][1](*(sources.rows[s][report.frontier.get(s, 0)] for s in SCHEMAS))
        stored = DeltaTable(sources.folder / name, version=report.version).to_pyarrow_table().to_pydict()
        assert Counter(zip(*stored.values(), strict=True)) == Counter(meant), (name, report)
    for name in QUERIES:
        assert trickle.verify(name).ok, name


def test_several_threads_refresh_tables_over_shared_sources(spark, sources):
    refresh_in_threads(spark, sources, 100)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_several_threads_refresh_tables_two_thousand_times(spark, sources):
    refresh_in_threads(spark, sources, 2_000)


def test_of_two_threads_that_refresh_one_table_one_finds_nothing_to_do(spark, sources):
    trickle = Trickle(spark)
    trickle.create("copies", QUERIES["copies"][0], mode="differential")
    chance, seen = random.Random(1), set()
    for _ in range(10):
        sources.change(chance)
        ready = threading.Barrier(2)

        def refresh(_number, ready=ready):
            ready.wait()
            return trickle.refresh("copies").mode

        with ThreadPoolExecutor(2) as pool:
            modes = sorted(pool.map(refresh, range(2)))
        assert modes in (["differential", "no_data"], ["no_data", "no_data"])  # the latter: only customers changed
        seen |= {*modes}
    assert "differential" in seen
    assert trickle.verify("copies").ok


def test_a_table_that_is_refreshed_meanwhile_can_be_verified(spark, sources):
    trickle = Trickle(spark)
    trickle.create("totals", QUERIES["totals"][0], mode="differential")
    chance, done, modes = random.Random(2), threading.Event(), []

    def keep_refreshing() -> None:
        while not done.is_set():
            sources.change(chance)
            modes.append(trickle.refresh("totals").mode)

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(keep_refreshing)
        try:
            reports = [trickle.verify("totals") for _ in range(8)]
        finally:
            done.set()
        work.result()
    assert all(report.ok for report in reports), reports
    assert "differential" in modes
