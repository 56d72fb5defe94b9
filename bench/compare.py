"""Two checkouts of Trickle in one sitting: differential refreshes of TPC-H, cycle by cycle in turn, by the same changes.

``python -m bench compare OTHER`` starts a process for each, which loads Trickle from its checkout, and prints the geometric
mean of this one's seconds divided by the other's. What else the machine does meanwhile slows both alike.

Run as a script, this file is such a process: it reads the numbers of cycles, and answers with seconds. It uses only what all
versions have.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

WARM_UP: Final = 2


def run_compare(other: Path, folder: Path, scale: float, rate: float, pattern: str, repeats: int) -> float:
    """Print and return how many times longer differential refreshes take here than in another checkout."""
    from bench.show import console
    from bench.sources import pristine

    data, checkouts = (
        pristine(folder, scale),
        {"other": other.resolve(), "this": Path(__file__).resolve().parent.parent},
    )
    found: dict[str, dict[str, list[float]]] = {name: {} for name in checkouts}
    with ExitStack() as stack:
        workers = {}
        for name, checkout in checkouts.items():
            place = folder.resolve() / "compare" / name
            words = [sys.executable, __file__, str(data), str(place), str(scale), str(rate), pattern]
            environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
            workers[name] = stack.enter_context(
                subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            _answer(workers[name])
        for number in range(1, WARM_UP + repeats + 1):
            for name in checkouts if number % 2 else reversed(checkouts):
                for query, (seconds, mode) in _ask(workers[name], str(number)).items():
                    if mode != "differential":
                        console.print(f"  {name}, cycle {number}: {query} was refreshed in mode {mode}")
                    elif number > WARM_UP:
                        found[name].setdefault(query, []).append(seconds)
        for worker in workers.values():
            _ask(worker, "end")
    ratios = {}
    for query in sorted(found["this"].keys() & found["other"].keys()):
        own, others = (statistics.median(found[name][query]) for name in ("this", "other"))
        ratios[query] = own / others
        console.print(f"  {query}: {1000 * own:.0f} ms, other {1000 * others:.0f} ms, {ratios[query]:.2f} ×")
    mean = statistics.geometric_mean(ratios.values())
    console.print(
        f"{rate:.2%} {pattern}: {mean:.3f} × the seconds of the other checkout (geometric mean of {len(ratios)})"
    )
    return mean


def _ask(worker: subprocess.Popen[str], line: str) -> dict[str, Any]:
    assert worker.stdin is not None
    worker.stdin.write(line + "\n")
    worker.stdin.flush()
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    for line in worker.stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
    message = f"a process ended early with {worker.wait()}"
    raise RuntimeError(message)


def work(data: str, place: str, scale: str, rate: str, pattern: str) -> None:
    """Create a stream table for each query; then change the sources and refresh, as often as asked."""
    import trickle
    from trickle.testing import tpch

    folder = Path(place)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(data, folder / "sources")
    spark = trickle.local_session(folder / "tables", memory="3g")
    for table in tpch.TABLES:
        spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{folder / 'sources' / table}'")
    stream_tables = trickle.Trickle(spark)
    tpch.declare(stream_tables, check=False)
    for name, query in tpch.QUERIES.items():
        stream_tables.create(name, query, mode="differential")
    _tell({})
    sources = tpch.Sources(folder / "sources", float(scale))
    kind: Any = pattern
    mutation = tpch.Mutation(rate=float(rate), pattern=kind, renamed_nations=0)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        tpch.mutate(sources, mutation, int(line))
        found = {}
        for name in tpch.QUERIES:
            began = time.perf_counter()
            report = stream_tables.refresh(name)
            found[name] = time.perf_counter() - began, report.mode
        _tell(found)
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    _tell({})


def _tell(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(*sys.argv[1:])
