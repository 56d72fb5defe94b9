"""A process that refreshes for days: threads, handles, temporary folders and memory stay as they are."""

from __future__ import annotations

import gc
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from trickle import Trickle

#: One is computed in the driver, the other by Spark.
QUERIES = {
    "joined": "SELECT id, city FROM orders JOIN customers ON customer = name",
    "shown": "SELECT customer, collect_set(upper(concat(customer, id % 3))) AS s FROM orders GROUP BY customer",
}

#: Spark's pools whose size a session can bound.
BOUNDED = ("shuffle-exchange", "broadcast-exchange", "ResultQueryStageExecution", "QueryStageCreator", "subquery")


@dataclass(frozen=True)
class Held:
    """What the process and its JVM hold."""

    jvm_threads: Counter[str]
    python_threads: int
    jvm_handles: int
    python_handles: int
    folders: int
    heap: int
    resident: int

    @classmethod
    def now(cls, spark) -> Held:
        gc.collect()
        jvm = spark._jvm
        jvm.java.lang.System.gc()
        bean = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        names = [str(info.getThreadName()) for info in bean.dumpAllThreads(False, False) if info is not None]
        memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        pid = int(jvm.java.lang.ProcessHandle.current().pid())
        tasks = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
        resident = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
        return cls(
            Counter(re.sub(r"-?\d.*", "", name) for name in names),
            # Those of delta-rs write the sources of this test; they end when they are idle for a while.
            sum(not task.startswith("tokio") for task in tasks),
            len(list(Path(f"/proc/{pid}/fd").iterdir())),
            len(list(Path("/proc/self/fd").iterdir())),
            sum(path.name.startswith(("spark", "blockmgr", "tmp")) for path in Path(tempfile.gettempdir()).iterdir()),
            int(memory.getUsed()) // 2**20,
            int(resident.group(1)) // 2**10 if resident else 0,
        )


@pytest.fixture
def shop(spark, warehouse_folder):
    spark.sql("CREATE DATABASE lasting")
    spark.sql("USE lasting")
    spark.sql("CREATE TABLE orders (id BIGINT, customer STRING) USING delta")
    spark.sql("CREATE TABLE customers (name STRING, city STRING) USING delta")
    spark.sql("INSERT INTO customers VALUES ('ann', 'Oslo'), ('bob', 'Rome')")
    trickle = Trickle(spark)
    for name, query in QUERIES.items():
        trickle.create(name, query, mode="differential")
    orders = warehouse_folder / "lasting.db" / "orders"

    def refresh(times: int, first: int) -> None:
        for number in range(first, first + times // 2):
            rows = pa.table({"id": pa.array([number], pa.int64()), "customer": ["ann" if number % 2 else "bob"]})
            write_deltalake(orders, rows, mode="append")
            for name in QUERIES:
                assert trickle.refresh(name).mode == "differential"

    yield refresh
    spark.sql("USE default")
    spark.sql("DROP DATABASE lasting CASCADE")


def check(before: Held, after: Held) -> None:
    for pool in BOUNDED:
        assert after.jvm_threads[pool] <= 16, after.jvm_threads
    grown = after.jvm_threads - before.jvm_threads
    # Spark fills two pools of a hundred threads each, whatever it does.
    others = {name: count for name, count in grown.items() if not name.startswith("block-manager")}
    assert sum(others.values()) <= 12, others
    assert after.python_threads <= before.python_threads + 3
    assert after.jvm_handles <= before.jvm_handles + 20
    assert after.python_handles <= before.python_handles + 5
    assert after.folders <= before.folders + 2  # other tests may run side by side


@pytest.mark.parametrize("times", [50, pytest.param(100, marks=pytest.mark.slow)])
def test_refreshes_leave_threads_and_handles_as_they_were(spark, shop, times):
    shop(times // 2, 0)
    before = Held.now(spark)
    shop(times, 1_000)

    check(before, Held.now(spark))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_thousand_refreshes_leave_everything_as_it_was(spark, shop):
    shop(500, 0)
    before = Held.now(spark)
    shop(1_500, 1_000)
    after = Held.now(spark)

    check(before, after)
    assert after.heap <= before.heap + 40, "MiB of heap in use after a collection"
    assert after.resident <= before.resident + 40, "MiB of this process"
