"""What test_two_processes.py runs, each in a process of its own: a refresher, or what comes before and after."""

from __future__ import annotations

import json
import sys
import time

import trickle
from trickle.errors import ConflictError

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
    print(json.dumps({"make": make, "refresh": refresh, "check": check}[role](spark, *words)))
    spark.stop()
