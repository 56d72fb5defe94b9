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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trickle
from bench.results import Origin, Part, Results, Run, read, write
from bench.show import console, doing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Session:
    """One invocation of the benchmark.

    Attributes:
        folder: Where the data is kept between invocations.
        file: Where the results are stored.
        resume: Keep the runs that earlier invocations completed, and of the same settings those of the same code.
    """

    spark: SparkSession
    folder: Path
    file: Path
    resume: bool
    memory: str
    results: Results = field(default_factory=Results)

    def part(self, name: str) -> Part:
        """Begin a part; the other parts of the file stay, and with ``resume`` its own completed runs."""
        before = self.results.parts.get(name, Part())
        kept = [run for run in before.runs if run.is_complete] if self.resume else []
        self.results.parts[name] = part = Part(runs=kept)
        return part

    def begin(self, part: Part, facts: dict[str, str | int | float]) -> Run | None:
        """Begin a run of a part; None if the same code completed it before on this machine and it is kept."""
        origin = Origin(
            command=f"python -m bench {' '.join(sys.argv[1:])}",
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine(self.spark, self.memory),
        )
        run = part.begin(facts, origin, resume=self.resume)
        if run is None:
            console.print(f"  kept from before: {facts}", soft_wrap=True)
        return run

    def end(self, run: Run) -> None:
        """Mark a run as complete."""
        run.peak_memory = {name: _peak_memory(process) for name, process in self.processes.items()}
        run.is_complete = True
        self.save()

    @property
    def processes(self) -> dict[str, int]:
        """The processes of the driver."""
        jvm: Any = self.spark._jvm
        return {"python": os.getpid(), "java": int(jvm.ProcessHandle.current().pid())}

    def save(self) -> None:
        """Store all results so far."""
        write(self.file, self.results)


@contextmanager
def session(
    folder: Path, file: Path, *, memory: str, resume: bool, config: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """Start Spark over an emptied warehouse inside the folder; other data in it is kept."""
    # A refresh in full is warned of in the log; here it stands in the results.
    logging.getLogger("trickle").addHandler(logging.NullHandler())
    tables = folder / "tables"
    shutil.rmtree(tables, ignore_errors=True)
    with doing("Starting Spark"):
        spark = trickle.local_session(tables, memory=memory, config=config)
    try:
        yield Session(spark, folder, file, resume, memory, read(file))
    finally:
        spark.stop()
        shutil.rmtree(tables, ignore_errors=True)


def machine(spark: SparkSession, memory: str) -> dict[str, str | int | float]:
    """Return the facts about this machine that the numbers depend on."""
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


def _peak_memory(process: int) -> float:
    """Return the most memory that a process ever had resident, in GiB; 0 where the system does not tell."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text("utf-8"))
    except OSError:
        found = None
    return round(int(found.group(1)) / 2**20, 2) if found else 0.0


def _revision() -> str:
    """Return the commit that last changed what is measured: other ones, of documentation say, change no number."""
    commit = _git("log", "-1", "--format=%h", "--", "src", "bench")
    changed = _git("status", "--porcelain", "--", "src", "bench")
    return (f"{commit}-dirty" if changed else commit) or "unknown"


def _git(*words: str) -> str:
    root = Path(__file__).parent.parent
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
