"""Results of millions of rows, changed all over: what a refresh takes, with the compaction that it leaves to housekeeping.

facts     the rows asked for: id, dim (a tenth of the rows), v
dims      a tenth as many: id, name
"""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from bench.measure import count_differences, refresh, schema
from bench.results import DIFFERENTIAL, FULL, Case, Cycle
from bench.show import console, doing
from trickle import Options, Trickle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from bench.session import Session

RATES: Final = (0.0001, 0.001, 0.01)
HOUSEKEEPING: Final = "housekeeping"
"""The step that holds what the loop does for a table between refreshes."""

CASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "projection": "SELECT id, dim, v + 1 AS w FROM facts",
        "join": "SELECT f.id, f.v, d.name FROM facts f JOIN dims d ON f.dim = d.id",
    }
)
_FULLS: Final = 3
"""How often each result is recomputed, to compare."""


def run_big_result(session: Session, rows: int, repeats: int, rates: Sequence[float] = RATES) -> None:
    """Measure each rate: change rows of facts at random and refresh, many times."""
    part = session.part("big result")
    for rate in rates:
        run = session.begin(part, {"rows": rows, "rate": rate, "repeats": repeats})
        if run is None:
            continue
        with schema(session.spark, "big_result"):
            run.cases.extend(_measure(session, rows, rate, repeats))
        session.end(run)


def _measure(session: Session, rows: int, rate: float, repeats: int) -> list[Case]:
    spark, trickle = session.spark, Trickle(session.spark)
    facts = Facts(session, rows)
    cases = {name: Case(name=name) for name in CASES}
    for name, query in CASES.items():
        with doing(f"big result: creating {name} of {rows:,} rows"):
            begun = time.perf_counter()
            trickle.create(name, query, mode=DIFFERENTIAL)
            cases[name].create[DIFFERENTIAL] = time.perf_counter() - begun
            twin = f"{name}_{FULL}"
            trickle.create(twin, query, mode=FULL)
            fulls = [refresh(trickle, twin, full=True) for _ in range(_FULLS)]  # of sources that are as plain as can be
            cases[name].cycles += [Cycle(number=0, warm_up=True, refreshes={FULL: found}) for found in fulls]
            console.print(f"  big result: {name} in full: {', '.join(f'{found.seconds:.2f}' for found in fulls)} s")
    for number in range(1, repeats + 1):
        with doing(f"big result: {rate:.2%}, cycle {number} of {repeats}"):
            facts.change(max(1, int(rows * rate)))
            trickle.settle()  # the checkpoint of the source is not the result's
            for name, case in cases.items():
                found = refresh(trickle, name)
                begun = time.perf_counter()
                _keep_house(trickle, name)
                found.steps[HOUSEKEEPING] = time.perf_counter() - begun
                found.seconds += found.steps[HOUSEKEEPING]
                case.cycles.append(Cycle(number=number, warm_up=False, refreshes={DIFFERENTIAL: found}))
                kept = f", housekeeping {found.steps[HOUSEKEEPING]:.2f} s" if found.steps[HOUSEKEEPING] > 0.1 else ""
                console.print(f"  big result: {rate:.2%} {name}: {found.seconds:.2f} s, {found.mode}{kept}")
    for name, case in cases.items():
        with doing(f"big result: comparing {name}"):
            case.cycles[-1].refreshes[FULL] = refresh(trickle, f"{name}_{FULL}")
            case.cycles[-1].differences = count_differences(spark, f"{name}_{FULL}", name)
    return list(cases.values())


def _keep_house(trickle: Trickle, name: str) -> None:
    """Do what the idle loop does: the checkpoint that is due, and wasteful files."""
    engine = trickle._engine
    upkeep = engine.catalog.results.upkeep(engine.catalog.location(engine.qualify(name)) or "")
    trickle.settle()
    if upkeep.has_wasteful_files():
        upkeep.compact()


class Facts:
    """The table that changes; it is written as quickly as stream tables are, so that most of the time goes into refreshes."""

    def __init__(self, session: Session, rows: int) -> None:
        """Make both tables."""
        import numpy as np

        from trickle.tables.cache.columns import ColumnCache
        from trickle.tables.delta.target import DeltaTarget

        few = max(rows // 10, 1)
        feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        session.spark.sql(
            f"CREATE TABLE facts USING delta {feed} AS SELECT id, id * 7919 % {few} AS dim, id * 31 % 1000 AS v "
            f"FROM range({rows})"
        )
        session.spark.sql(
            f"CREATE TABLE dims USING delta {feed} AS SELECT id, concat('dim ', id) AS name FROM range({few})"
        )
        location = str(session.spark.sql("DESCRIBE DETAIL facts").collect()[0]["location"])
        options = Options(vector_rows=0)
        self._target = DeltaTarget(session.spark, "facts", location, columns=ColumnCache(options), options=options)
        self._few = few
        self._values = np.arange(rows) * 31 % 1000
        self._random = np.random.default_rng(1)

    def change(self, count: int) -> None:
        """Change the value of some rows."""
        import numpy as np
        import pyarrow as pa

        ids = self._random.choice(len(self._values), count, replace=False)
        before = self._change(ids, -1)
        self._values[ids] = (self._values[ids] + 1 + self._random.integers(0, 900, count)) % 1000
        change = pa.concat_tables([before, self._change(ids, 1)])
        self._target.apply_bag(change, "", self._target.state())
        assert np.unique(ids).size == count

    def _change(self, ids: Any, weight: int) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        from trickle.tables.contract import WEIGHT

        columns = {"id": ids, "dim": ids * 7919 % self._few, "v": self._values[ids], WEIGHT: np.full(len(ids), weight)}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
