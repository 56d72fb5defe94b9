"""What test_cluster.py runs in a driver of its own: refreshes in the ways that are asked for, told as a line of JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import trickle
from trickle.jars import s3_jars
from trickle.model.options import Options
from trickle.testing.cluster import Cluster
from trickle.testing.regimes import regime

QUERIES = {
    "totals": "SELECT c.city, count(*) AS n, sum(o.price) AS total FROM orders o JOIN customers c ON o.c = c.c GROUP BY c.city",
    "ranked": "SELECT id, price, rank() OVER (PARTITION BY c ORDER BY price DESC, id) AS place FROM orders",
    "without": "SELECT c, city FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE orders.c = customers.c)",
    "top": "SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 5",
}
# Each row takes some milliseconds, so that an executor is sure to die while it works.
SLOW = {
    "slow": "SELECT id, aggregate(sequence(1, 60000 + price), 0L, (a, x) -> (a * 31 + x) % 1000003) AS h FROM orders",
    "totals": QUERIES["totals"],
}
WAYS = {
    "driver": (Options(), QUERIES),
    "spark": (regime("big changes"), QUERIES),
    "full": (Options(), QUERIES),
    "killed executor": (regime("big changes"), SLOW),
    "small driver": (Options().within(2 * 1024**3), {"totals": QUERIES["totals"], "ranked": QUERIES["ranked"]}),
}
MEMORY = {"small driver": "640m"}
ROWS = {"small driver": 2_000_000}


def _change(spark, number, rows):
    spark.sql(f"INSERT INTO orders SELECT id + {number} * 10000000, id % 90, id % 17 FROM range({rows // 50})")
    spark.sql(f"UPDATE orders SET price = price + 1 WHERE id % 50 < {max(number, rows // 100_000)}")
    spark.sql(f"DELETE FROM orders WHERE c = {number}")


class Executors:
    """What Spark tells of the executors."""

    def __init__(self, spark):
        self._store = spark.sparkContext._jsc.sc().statusStore()
        self._scheduler = spark.sparkContext._jsc.sc().taskScheduler()

    def all(self):
        found = self._store.executorList(False)
        return {e.id(): e for e in (found.apply(at) for at in range(found.size())) if e.id() != "driver"}

    def busy(self):
        """Return those that compute a task now; what the store tells of it is late."""
        running = re.findall(r"(\d+) -> (\d+)", str(self._scheduler.runningTasksByExecutors()))
        return [name for name, tasks in running if int(tasks)]

    def completed(self):
        return {name: int(e.completedTasks()) for name, e in self.all().items()}


def _kill_a_busy_one(cluster, executors, killed, ended):
    """Kill an executor while it computes a task."""
    while not killed and not ended.is_set():
        for name in executors.busy():
            os.kill(cluster.executors()[name], signal.SIGKILL)
            killed.append(name)
            return
        time.sleep(0.005)


def _peak_bytes(spark):
    """Return the most memory that Python and its JVM ever had."""
    pids = ["self", str(spark._jvm.java.lang.ProcessHandle.current().pid())]
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return sum(int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024 for text in texts)


def _refresh(spark, cluster, way, t, names):
    executors, killed, ended = Executors(spark), [], threading.Event()
    before = executors.completed()
    killer = threading.Thread(target=_kill_a_busy_one, args=(cluster, executors, killed, ended))
    if way == "killed executor":
        killer.start()
    modes = {t.refresh(name, full=way == "full").mode for name in names}
    ended.set()
    if killer.ident is not None:
        killer.join()
    after = executors.completed()
    until = time.monotonic() + 30
    while any(executors.all()[name].isActive() for name in killed) and time.monotonic() < until:
        time.sleep(0.1)  # the master tells
    return {
        "modes": sorted(modes),
        "verified": all(t.verify(name).ok for name in names),
        "killed": killed,
        "lost": [name for name in killed if not executors.all()[name].isActive()],
        "tasks elsewhere": sum(after[name] - before.get(name, 0) for name in after if name not in killed),
    }


def main(given, warehouse, *ways):
    cluster = Cluster(given["master"], Path(given["log"]))
    config = {**cluster.settings, **given["settings"]}
    if given["settings"]:
        config["spark.executor.extraClassPath"] += "".join(os.pathsep + str(jar) for jar in s3_jars())
    spark = trickle.local_session(warehouse, memory=MEMORY.get(ways[0], "1g"), config=config)
    rows = ROWS.get(ways[0], 2000)
    spark.sql(f"CREATE TABLE orders USING delta AS SELECT id, id % 100 AS c, id % 37 AS price FROM range({rows})")
    spark.sql("CREATE TABLE customers USING delta AS SELECT id AS c, concat('city ', id % 7) AS city FROM range(120)")
    found = {}
    for number, way in enumerate(ways, 1):
        options, queries = WAYS[way]
        t = trickle.Trickle(spark, options=options)
        names = {f"{name}_{number}": query for name, query in queries.items()}
        for name, query in names.items():
            t.create(name, query, mode="differential")
        _change(spark, number, rows)
        found[way] = _refresh(spark, cluster, way, t, names)
    found["peak"] = _peak_bytes(spark)
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *sys.argv[2:])
