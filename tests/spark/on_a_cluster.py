"""What test_cluster.py runs in a driver of its own: refreshes in the ways that are asked for, told as a line of JSON."""

from __future__ import annotations

import json
import os
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
OPTIONS = {
    "driver": Options(),
    "spark": regime("big changes"),
    "killed executor": regime("big changes"),
    "small driver": Options().within(2 * 1024**3),
}


def _change(spark, number):
    spark.sql(f"INSERT INTO orders SELECT id + {number} * 10000, id % 90, id % 17 FROM range(40)")
    spark.sql(f"UPDATE orders SET price = price + 1 WHERE id % 50 = {number}")
    spark.sql(f"DELETE FROM orders WHERE c = {number}")


def _kill_an_executor(cluster, seconds):
    time.sleep(seconds)
    alive = cluster.executors()
    if alive:
        os.kill(alive[0], signal.SIGKILL)


def _executed(spark):
    """Return whether tasks ran on executors, and none in the driver."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return any("driver" not in str(info.host()) and info.port() for info in tracker.getExecutorInfos())


def main(given, warehouse, *ways):
    cluster = Cluster(given["master"], Path(given["log"]))
    config = {**cluster.settings, **given["settings"]}
    if given["settings"]:
        config["spark.executor.extraClassPath"] += "".join(os.pathsep + str(jar) for jar in s3_jars())
    spark = trickle.local_session(warehouse, memory="1g", config=config)
    spark.sql("CREATE TABLE orders USING delta AS SELECT id, id % 100 AS c, id % 37 AS price FROM range(2000)")
    spark.sql("CREATE TABLE customers USING delta AS SELECT id AS c, concat('city ', id % 7) AS city FROM range(120)")
    found = {}
    for number, way in enumerate(ways, 1):
        t = trickle.Trickle(spark, options=OPTIONS[way])
        names = {f"{name}_{number}": query for name, query in QUERIES.items()}
        for name, query in names.items():
            t.create(name, query, mode="differential")
        _change(spark, number)
        if way == "killed executor":
            threading.Thread(target=_kill_an_executor, args=(cluster, 1.0)).start()
        modes = {t.refresh(name).mode for name in names}
        found[way] = {
            "modes": sorted(modes),
            "verified": all(t.verify(name).ok for name in names),
            "executors_ran": _executed(spark),
        }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *sys.argv[2:])
