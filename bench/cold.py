"""The first refresh of a process: each in a new process of its own, after the start of its session.

``python -m bench.cold WAREHOUSE SCHEMA SOURCES TABLE full|differential`` refreshes one table and prints what it took.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measure import refresh
from bench.results import DIFFERENTIAL, FULL, Case, Cycle, Refreshed
from bench.show import console, doing
from bench.sources import tpch_sources
from bench.tpch import mutation
from trickle import Trickle, local_session
from trickle.testing import tpch

if TYPE_CHECKING:
    from bench.session import Session

NAMES: Final = ("q01", "q03", "q05", "q09")
RATE: Final = 0.001
SCHEMA: Final = "cold"


def run_cold(session: Session, repeats: int) -> None:
    """Measure both modes of each query, with no process to warm up: every cycle counts."""
    part = session.part("cold")
    run = session.begin(part, {"rows": 6_000_000, "scale": 1, "rate": RATE, "repeats": repeats})
    if run is None:
        return
    spark = session.spark
    with tpch_sources(spark, session.folder, scale=1, name=SCHEMA) as sources:
        tpch.declare(Trickle(spark), check=False)
        change = mutation(spark, sources, RATE, "random")
        trickle = Trickle(spark)
        run.cases.extend(Case(name=name) for name in NAMES)
        for case in run.cases:
            with doing(f"cold: creating {case.name}"):
                for mode in (FULL, DIFFERENTIAL):
                    trickle.create(f"{case.name}_{mode}", tpch.QUERIES[case.name], mode=mode)
        for number in range(1, repeats + 1):
            change(number)
            for case in run.cases:
                ordered = (FULL, DIFFERENTIAL) if number % 2 else (DIFFERENTIAL, FULL)
                with doing(f"cold: {case.name}, cycle {number} of {repeats}"):
                    in_new_process = partial(_in_new_process, session.folder, sources.location, case.name)
                    refreshes = {mode: in_new_process(mode) for mode in ordered}
                case.cycles.append(Cycle(number=number, warm_up=False, refreshes=refreshes))
                shown = ", ".join(f"{mode} {found.seconds:.2f} s" for mode, found in sorted(refreshes.items()))
                console.print(f"  cold: {case.name}: {shown}")
    session.end(run)


def _in_new_process(folder: Path, sources: Path, name: str, mode: str) -> Refreshed:
    words = [str(folder.resolve() / "tables"), SCHEMA, str(sources), f"{name}_{mode}", mode]
    command = [sys.executable, "-m", "bench.cold", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Refreshed.model_validate_json(done.stdout.splitlines()[-1])


def main(warehouse: str, schema: str, sources: str, table: str, mode: str) -> None:
    """Refresh one table and print what it took."""
    spark: Any = local_session(warehouse, memory="4g")
    spark.sql(f"USE {schema}")
    for name in tpch.TABLES:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{sources}/{name}'")
    found = refresh(Trickle(spark), table, full=mode == FULL)
    sys.stdout.write(json.dumps(found.model_dump()) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
