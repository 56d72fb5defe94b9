"""Deletion vectors written by several processes at once, and by processes that are killed: no change is lost or made twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import polars as pl
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from trickle.errors import ConflictError
from trickle.model.options import Options
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.target import DeltaTarget

ROWS = 200
COMMITS = 25
# Without Spark there is nobody to ask about a log that is long.
OPTIONS = Options(
    vector_rows=0,
    inline_vector_rows=3,
    appended_files=4,
    small_file_bytes=1000,
    log_steps_back=10_000,
    log_replay=10_000,
)
SECONDS = 60.0


def count_up(target: Any, rng: random.Random) -> bool:
    """Add one to a number of the table; False if another process came first."""
    state = target.state()
    rows = target.small_rows()
    k, n = rng.choice(list(zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True)))
    change = pa.table({"k": [k, k], "n": [n, n + 1], WEIGHT: [-1, 1]})
    try:
        applied = target.apply_bag(change, f"{k}", state)
    except ConflictError:
        return False
    assert "driver" in applied.steps
    return True


def opened(place: str) -> DeltaTarget:
    return DeltaTarget(MagicMock(), "counters", place, options=OPTIONS)  # the driver writes without Spark


def worker(place: str, seed: int) -> subprocess.Popen[bytes]:
    """A process that counts up until it is ended."""
    code = f"""
import random
from tests.unit.test_masked_commits import count_up, opened
target, rng = opened({place!r}), random.Random({seed})
print("ready", flush=True)
while True:
    count_up(target, rng)
"""
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", process.communicate()
    return process


@pytest.fixture
def place(tmp_path: Path) -> str:
    folder = str(tmp_path / "counters")
    rows = pa.table({"k": pa.array(range(ROWS), pa.int64()), "n": pa.array([0] * ROWS, pa.int64())})
    write_deltalake(folder, rows, configuration={"delta.enableChangeDataFeed": "true"})
    return folder


def commits(place: str) -> int:
    return len(list(Path(place, "_delta_log").glob("*.json"))) - 1


def check(place: str) -> int:
    """Assert that every commit counted once; return how many there are."""
    versions = commits(place)
    rows = pl.scan_delta(place).collect()
    assert sorted(rows["k"]) == list(range(ROWS))
    assert rows["n"].sum() == versions
    return versions


def test_of_several_processes_each_change_counts_once(place: str) -> None:
    workers = [worker(place, seed) for seed in range(2)]
    end = time.monotonic() + SECONDS
    while commits(place) < COMMITS and time.monotonic() < end:
        time.sleep(0.1)
    for process in workers:
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert check(place) >= COMMITS


def test_a_killed_process_leaves_the_last_commit(place: str) -> None:
    rng = random.Random(1)
    for seed in range(4):
        process = worker(place, seed)
        time.sleep(rng.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = check(place)
        assert count_up(opened(place), rng)
        assert check(place) == before + 1
