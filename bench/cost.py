"""What a refresh costs when there is next to nothing to do, and when there is nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.measure import refresh, schema
from bench.results import DIFFERENTIAL, Case, Cycle
from bench.show import console, doing
from bench.sources import tpch_sources
from trickle import Trickle
from trickle.testing import tpch

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.session import Session

ROWS: Final = 1_000_000
IDLE_REFRESHES: Final = 20
IDLE_TABLES: Final = 100

ONE_ROW: Final = "one row"
ONE_ORDER: Final = "one order"
IDLE: Final = "nothing new"
SWEEP: Final = f"{IDLE_TABLES} idle tables"

QUERY: Final = "SELECT grp, count(*) AS n, sum(v) AS total FROM numbers GROUP BY grp"
JOIN: Final = """
    SELECT c_name, o_orderkey, o_orderdate, l_linenumber, l_quantity, l_extendedprice
    FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey"""


def run_cost(session: Session, repeats: int, *, has_sweep: bool) -> None:
    """Insert one row under an aggregate, and one order under a join, and refresh; then refresh with nothing new."""
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
    run.cases.append(_one_order(session, trickle, repeats))
    session.end(run)


def _one_row(session: Session, trickle: Trickle, repeats: int) -> Case:
    def insert(number: int) -> None:
        session.spark.sql(f"INSERT INTO numbers VALUES ({ROWS + number}L, {number}, 1L)")

    return _small(trickle, ONE_ROW, "totals", insert, repeats)


def _one_order(session: Session, trickle: Trickle, repeats: int) -> Case:
    """At scale 1 with declared keys, into a join of customers, orders and lines."""

    def insert(number: int) -> None:
        for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            session.spark.sql(
                f"INSERT INTO {table} SELECT {10_000_000 + number}L, * EXCEPT ({key}) FROM {table} WHERE {key} = 7"
            )

    with tpch_sources(session.spark, session.folder, scale=1, name="cost_order") as sources:
        with doing(f"cost: joining orders of scale {sources.scale:g}"):
            tpch.declare(trickle, check=False)
            trickle.create("order_lines", JOIN)
        return _small(trickle, ONE_ORDER, "order_lines", insert, repeats)


def _small(trickle: Trickle, name: str, table: str, insert: Callable[[int], None], repeats: int) -> Case:
    """Two refreshes to warm up: the first by changes compiles what the others reuse."""
    case = Case(name=name)
    for number in range(1, repeats + 3):
        with doing(f"cost: {name} inserted, refresh {number} of {repeats + 2}"):
            insert(number)
            refreshed = refresh(trickle, table)
        case.cycles.append(Cycle(number=number, warm_up=number <= 2, refreshes={DIFFERENTIAL: refreshed}))
        console.print(f"  cost: {name} inserted: {refreshed.seconds:.2f} s, {refreshed.mode}")
    verified = trickle.verify(table)
    case.cycles[-1].differences = verified.missing + verified.extra
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
