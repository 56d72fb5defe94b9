"""What test_two_processes.py and test_azure_and_google.py run, each in a process of its own: refreshers, writers, checks."""

from __future__ import annotations

import json
import sys
import time

import trickle
from trickle.errors import ConflictError
from trickle.tables.storage.schemes import folder_at

TOTALS = "SELECT k, count(*) AS n, sum(id) AS s FROM orders GROUP BY k"
COPY = "SELECT id, k FROM orders WHERE id % 2 = 0"


def make(spark):
    spark.sql(
        "CREATE TABLE orders USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) "
        "AS SELECT id, id % 7 AS k FROM range(100)"
    )
    t = trickle.Trickle(spark)
    t.create("totals", TOTALS, mode="differential")
    t.create("copy", COPY, mode="differential")
    return {}


def refresh(spark, most):
    """Refresh as long as there is something to do, and count what was done; a refresh that comes second is none."""
    t = trickle.Trickle(spark)
    found = {"differential": 0, "no_data": 0, "conflicts": 0, "others": []}
    until = time.monotonic() + 1500
    while found["differential"] < int(most) and time.monotonic() < until:
        for name in ("totals", "copy"):
            try:
                report = t.refresh(name)
            except ConflictError:
                found["conflicts"] += 1
                continue
            if report.mode in ("differential", "no_data"):
                found[report.mode] += 1
            else:
                found["others"].append(str(report.reason))
    return found


def tour(spark):
    """Refresh once, then let the loop do it, under a lease there."""
    t = trickle.Trickle(spark)
    spark.sql("INSERT INTO orders VALUES (1000, 3), (1001, 8)")
    spark.sql("UPDATE orders SET k = 9 WHERE id = 7")
    spark.sql("DELETE FROM orders WHERE id = 8")
    reports = [t.refresh(name) for name in ("totals", "copy")]
    t.alter("totals", schedule="1s")
    with t.start():
        spark.sql("INSERT INTO orders VALUES (2000, 77)")
        until = time.monotonic() + 120
        while not spark.sql("SELECT * FROM totals WHERE k = 77").count() and time.monotonic() < until:
            time.sleep(0.5)
    root = folder_at(spark.conf.get("spark.sql.warehouse.dir"))
    return {
        "modes": [report.mode for report in reports],
        "warnings": [str(warning) for report in reports for warning in report.warnings],
        "followed": spark.sql("SELECT n FROM totals WHERE k = 77").first()[0],
        "terms": root is not None and len(root.storage.names(root / "_trickle_lease")),
        "verified": [t.verify(name).ok for name in ("totals", "copy")],
    }


def write(spark, times):
    """Append rows, change some and delete some."""
    for number in range(int(times)):
        first = 3000 + 10 * number
        spark.sql(f"INSERT INTO orders SELECT id, id % 7 FROM range({first}, {first + 10})")
        if number % 3 == 2:
            spark.sql(f"UPDATE orders SET k = k + 1 WHERE id = {first - 5}")
            spark.sql(f"DELETE FROM orders WHERE id = {first - 6}")
    return {}


def check(spark):
    """Bring both up to date, verify, and count every row."""
    t = trickle.Trickle(spark)
    for name in ("totals", "copy"):
        t.refresh(name)
    log = {name: t.history(name, limit=None) for name in ("totals", "copy")}
    return {
        "verified": [t.verify(name).ok for name in ("totals", "copy")],
        "rows": [spark.table("copy").count(), spark.sql("SELECT id FROM orders WHERE id % 2 = 0").count()],
        "distinct": spark.sql("SELECT DISTINCT id FROM copy").count(),
        "counted": [spark.sql("SELECT sum(n) FROM totals").first()[0], spark.table("orders").count()],
        "refreshes": {name: len([one for one in past if one.mode == "differential"]) for name, past in log.items()},
    }


if __name__ == "__main__":
    warehouse, settings, role, *words = sys.argv[1:]
    spark = trickle.local_session(warehouse, cores=1, memory="1g", config=json.loads(settings))
    roles = {"make": make, "refresh": refresh, "tour": tour, "write": write, "check": check}
    print(json.dumps(roles[role](spark, *words)))
    spark.stop()
