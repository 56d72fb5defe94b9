"""What every part of the benchmark works with: the Spark session, the folder of the data, the file of the results."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trickle
from bench.results import Part, Results, Run, read, write
from bench.show import console, doing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Session:
    """One invocation of the benchmark.

    Attributes:
        folder: Where the data is kept between invocations.
        file: Where the results are stored.
        resume: Keep the runs that an earlier invocation completed.
        resumed: The part to keep runs of.
    """

    spark: SparkSession
    folder: Path
    file: Path
    resume: bool
    memory: str
    results: Results = field(default_factory=Results)
    resumed: Part | None = None

    def part(self, name: str) -> Part:
        """Begin a part; the other parts of the file stay.

        Runs are resumed only if machine, versions and revision are those of before: the page states them once.
        """
        before = self.results.parts.get(name)
        now = machine(self.spark, self.memory)
        self.resumed = before if before and self.resume and before.is_made_on(now) else None
        if self.resume and before and not self.resumed:
            console.print(f"  {name}: nothing is resumed, the numbers before were made by another version or machine")
        part = Part(
            command=f"python -m bench {' '.join(sys.argv[1:])}",
            date=self.resumed.date if self.resumed else datetime.now(UTC).isoformat(timespec="seconds"),
            machine=self.resumed.machine if self.resumed else now,
        )
        self.results.parts[name] = part
        return part

    def begin(self, part: Part, facts: dict[str, str | int | float]) -> Run | None:
        """Begin a run of a part; None if it was completed before and is kept."""
        kept = self.resumed.finished(facts) if self.resumed else None
        run = kept or Run(facts=facts)
        part.runs.append(run)
        if kept:
            console.print(f"  kept from before: {facts}", soft_wrap=True)
            self.save()
        return None if kept else run

    def save(self) -> None:
        """Store all results so far."""
        write(self.file, self.results)


@contextmanager
def session(folder: Path, file: Path, *, memory: str, resume: bool) -> Iterator[Session]:
    """Start Spark over an emptied warehouse inside the folder; other data in it is kept."""
    # A refresh in full is warned of in the log; here it stands in the results.
    logging.getLogger("trickle").addHandler(logging.NullHandler())
    tables = folder / "tables"
    shutil.rmtree(tables, ignore_errors=True)
    with doing("Starting Spark"):
        spark = trickle.local_session(tables, memory=memory)
    try:
        yield Session(spark, folder, file, resume, memory, read(file))
    finally:
        spark.stop()
        shutil.rmtree(tables, ignore_errors=True)


def machine(spark: SparkSession, memory: str) -> dict[str, str | int | float]:
    """Give the facts about this machine that the numbers depend on."""
    version = importlib.metadata.version
    jvm: Any = spark._jvm
    return {
        "cores": os.cpu_count() or 1,
        "cpu": _cpu(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "heap": memory,
        "load_average": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": str(jvm.System.getProperty("java.version")),
        "spark": spark.version,
        "delta": version("delta-spark"),
        "trickle": version("spark-trickle"),
        "revision": _revision(),
    }


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or "unknown"


def _revision() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "unknown"
