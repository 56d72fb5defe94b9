"""What a refresh costs when there is next to nothing to do, and when there is nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.measure import refresh, schema
from bench.results import DIFFERENTIAL, Case, Cycle
from bench.show import console, doing
from trickle import Trickle

if TYPE_CHECKING:
    from bench.session import Session

ROWS: Final = 1_000_000
IDLE_REFRESHES: Final = 20
IDLE_TABLES: Final = 100

ONE_ROW: Final = "one row"
IDLE: Final = "nothing new"
SWEEP: Final = f"{IDLE_TABLES} idle tables"

QUERY: Final = "SELECT grp, count(*) AS n, sum(v) AS total FROM numbers GROUP BY grp"


def run_cost(session: Session, repeats: int, *, has_sweep: bool) -> None:
    """Insert one row into a table of a million under an aggregate and refresh; then refresh with nothing new."""
    part = session.part("cost")
    run = session.begin(part, {"rows": ROWS, "repeats": repeats, "tables": IDLE_TABLES if has_sweep else 0})
    if run is None:
        return
    spark = session.spark
    trickle = Trickle(spark)
    with schema(spark, "cost"):
        with doing(f"cost: making a table of {ROWS:,} rows"):
            spark.sql(
                "CREATE TABLE numbers USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS "
                f"SELECT id, pmod(hash(id), 1000) AS grp, id % 100 AS v FROM range({ROWS})"
            )
            trickle.create("totals", QUERY)
        run.cases.append(_one_row(session, trickle, repeats))
        session.save()
        run.cases.append(_idle(trickle))
        session.save()
        if has_sweep:
            run.cases.append(_sweep(trickle, repeats))
        run.is_complete = True
        session.save()


def _one_row(session: Session, trickle: Trickle, repeats: int) -> Case:
    """Two refreshes to warm up: the first by changes compiles what the others reuse."""
    case = Case(name=ONE_ROW)
    for number in range(1, repeats + 3):
        with doing(f"cost: one row inserted, refresh {number} of {repeats + 2}"):
            session.spark.sql(f"INSERT INTO numbers VALUES ({ROWS + number}L, {number}, 1L)")
            refreshed = refresh(trickle, "totals")
            differing = 0 if (verified := trickle.verify("totals")) else verified.missing + verified.extra
        case.cycles.append(
            Cycle(number=number, warm_up=number <= 2, refreshes={DIFFERENTIAL: refreshed}, differences=differing)
        )
        console.print(f"  cost: one row inserted: {refreshed.seconds:.2f} s, {refreshed.mode}")
    return case


def _idle(trickle: Trickle) -> Case:
    with doing("cost: refreshing with nothing new"):
        cycles = [
            Cycle(number=number, warm_up=number == 1, refreshes={DIFFERENTIAL: refresh(trickle, "totals")})
            for number in range(1, IDLE_REFRESHES + 2)
        ]
    return Case(name=IDLE, cycles=cycles)


def _sweep(trickle: Trickle, repeats: int) -> Case:
    """Refresh a hundred stream tables one after the other, none with anything new."""
    names = [f"idle_{number}" for number in range(1, IDLE_TABLES + 1)]
    for name in names:
        with doing(f"cost: creating {name} of {IDLE_TABLES}"):
            trickle.create(name, QUERY)
    case = Case(name=SWEEP)
    for number in range(1, repeats + 2):
        with doing(f"cost: refreshing {IDLE_TABLES} idle tables"):
            found = {name: refresh(trickle, name) for name in names}
        case.cycles.append(Cycle(number=number, warm_up=number == 1, refreshes=found))
    return case
