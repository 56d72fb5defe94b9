"""How long after a commit to a source its rows are in the stream tables that follow it, while another process writes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measure import schema
from bench.results import DIFFERENTIAL, Case, Cycle, Refreshed
from bench.show import console, doing
from trickle import Trickle

if TYPE_CHECKING:
    from bench.session import Session

ROWS: Final = 1_000_000
RATE: Final = 5.0
"""Commits a second."""

WARM_UP: Final = 50
"""Commits that do not count: the first refreshes compile what the others reuse."""

LOOK_SECONDS: Final = 2.0
"""How often it is looked what the processes of the driver have resident."""

COLLECT_SECONDS: Final = 20.0
"""How often the JVM collects garbage, so that what its objects take is known: its process grows with garbage too."""

LIVE: Final = "heap of the JVM that is in use"

QUERIES: Final = {
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k",
    "join": "SELECT id, v, name FROM events JOIN names USING (k)",
}


def run_freshness(session: Session, minutes: float) -> None:
    """Write for some minutes while the loop runs; then read from the logs when each commit came in."""
    part = session.part("freshness")
    run = session.begin(part, {"rows": ROWS, "rate": RATE, "minutes": minutes})
    if run is None:
        return
    spark, trickle = session.spark, Trickle(session.spark)
    with schema(spark, "freshness"):
        with doing("freshness: making the tables"):
            spark.sql(
                f"CREATE TABLE events USING delta AS SELECT id, pmod(hash(id), 1000) AS k, id % 100 AS v FROM range({ROWS})"
            )
            spark.sql("CREATE TABLE names USING delta AS SELECT id AS k, concat('name ', id) AS name FROM range(1000)")
            for name, query in QUERIES.items():
                trickle.create(name, query, schedule="on commit")
        events = _folder(session, "events")
        first = _newest(events)
        memory = Memory(session, after=WARM_UP / RATE)
        with trickle.start(), memory.watched(), doing(f"freshness: {RATE:g} commits a second for {minutes:g} minutes"):
            command = [sys.executable, "-m", "bench.writer", str(events), str(ROWS), str(RATE), str(60 * minutes)]
            written = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            trickle.refresh_all()
        versions = range(first + 1, first + written + 1)
        for name in QUERIES:
            run.cases.append(_case(session, trickle, name, versions))
        run.resident = memory.seen
    session.end(run)


def _case(session: Session, trickle: Trickle, name: str, versions: range) -> Case:
    """One cycle for each commit to the source: the seconds until a commit of the table had it."""
    events, table = _folder(session, "events"), _folder(session, name)
    arrived: dict[int, float] = {}
    reached = versions.start - 1
    for past in sorted(trickle.history(name, limit=None), key=lambda past: past.version):
        version = _source_version(past.frontier)
        for at in range(reached + 1, version + 1):
            arrived[at] = _committed(table, past.version)
        reached = max(reached, version)
    cycles = [
        Cycle(
            number=number,
            warm_up=number <= WARM_UP,
            refreshes={
                DIFFERENTIAL: Refreshed(seconds=max(0.0, arrived[at] - _committed(events, at)), mode="differential")
            },
        )
        for number, at in enumerate(versions, 1)
    ]
    verified = trickle.verify(name)
    cycles[-1].differences = verified.missing + verified.extra
    case = Case(name=name, cycles=cycles)
    console.print(f"  freshness: {name}: {len(versions)} commits came in with {len(set(arrived.values()))} refreshes")
    return case


def _source_version(frontier: Mapping[str, int]) -> int:
    return next(version for source, version in frontier.items() if source.split(".")[-1] == "events")


def _committed(folder: Path, version: int) -> float:
    return (folder / "_delta_log" / f"{version:020}.json").stat().st_mtime


def _newest(folder: Path) -> int:
    return max(int(path.stem) for path in (folder / "_delta_log").glob("*.json") if path.stem.isdigit())


def _folder(session: Session, table: str) -> Path:
    detail = session.spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    return Path(detail["location"].removeprefix("file:"))


class Memory:
    """Looks again and again what the processes of the driver have resident, and what of the JVM's is in use."""

    def __init__(self, session: Session, after: float) -> None:
        """Look at nothing yet, but ``after`` some seconds."""
        self.seen: dict[str, list[int]] = {name: [] for name in (*session.processes, LIVE)}
        self._processes = session.processes
        self._jvm: Any = session.spark._jvm
        self._after = after
        self._ended = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look until this is left."""
        thread = threading.Thread(target=self._watch, name="bench-memory", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        wait, collected = self._after, 0.0
        while not self._ended.wait(wait):
            wait = LOOK_SECONDS
            for name, process in self._processes.items():
                self.seen[name].append(_resident(process))
            if time.monotonic() - collected >= COLLECT_SECONDS:
                collected = time.monotonic()
                self.seen[LIVE].append(self._in_use())

    def _in_use(self) -> int:
        """MiB that objects take which are not garbage."""
        self._jvm.java.lang.System.gc()
        heap = self._jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        return int(heap.getUsed()) // 2**20


def _resident(process: int) -> int:
    """MiB that a process has resident."""
    pages = int(Path(f"/proc/{process}/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
