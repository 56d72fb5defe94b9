"""Graphs of stream tables: one row changes at the base, and one run brings every table to the new cut."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from bench import pipeline
from bench.measure import schema
from bench.results import DIFFERENTIAL, FULL, Case, Cycle, Refreshed
from bench.show import console, doing
from trickle import Trickle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.session import Session
    from trickle.model.report import RunReport

ROWS: Final = 100_000
WORKERS: Final = 2
LENGTH, WIDTH, IDLE_TABLES = 10, 20, 500

CHAIN: Final = f"chain of {LENGTH}"
DIAMOND: Final = "diamond of 4"
LAYERS: Final = f"3 levels of {WIDTH}"
PIPELINE: Final = "pipeline, few rows"
PIPELINE_MANY: Final = "pipeline, many rows"
IDLE_TICK: Final = f"tick over {IDLE_TABLES} idle tables"

Queries = Mapping[str, str]


def chain() -> Queries:
    """Sums and projections of one another."""
    queries = {"chain_1": "SELECT k, sum(v) AS v FROM base GROUP BY k"}
    for level in range(2, LENGTH + 1):
        last = f"chain_{level - 1}"
        queries[f"chain_{level}"] = (
            f"SELECT k, v + 1 AS v FROM {last}" if level % 2 else f"SELECT k, sum(v) AS v FROM {last} GROUP BY k"
        )
    return queries


def diamond() -> Queries:
    """One table, two that read it, and their join."""
    return {
        "top": "SELECT id, k, v FROM base WHERE v >= 0",
        "sums": "SELECT k, sum(v) AS total FROM top GROUP BY k",
        "counts": "SELECT k, count(*) AS n FROM top GROUP BY k",
        "bottom": "SELECT k, total, n FROM sums JOIN counts USING (k)",
    }


def layers() -> Queries:
    """Sums of the base, sums of these, projections of these."""
    queries = {}
    for place in range(WIDTH):
        queries[f"one_{place}"] = f"SELECT k, sum(v) + {place} AS v FROM base GROUP BY k"
        queries[f"two_{place}"] = f"SELECT k % 10 AS g, sum(v) AS v, count(*) AS n FROM one_{place} GROUP BY k % 10"
        queries[f"three_{place}"] = f"SELECT g, v, n, v + n AS both FROM two_{place} WHERE n > 0"
    return queries


def run_graph(session: Session, repeats: int, *, has_idle: bool) -> None:
    """Measure each graph: insert one row and run, several times; then recompute all once; then verify."""
    part = session.part("graph")
    facts: dict[str, str | int | float] = {
        "rows": ROWS,
        "workers": WORKERS,
        "repeats": repeats,
        "tables": IDLE_TABLES if has_idle else 0,
    }
    run = session.begin(part, facts)
    if run is None:
        return
    for name, queries in ((CHAIN, chain()), (DIAMOND, diamond()), (LAYERS, layers())):
        with schema(session.spark, "graph"):
            _make_base(session)
            run.cases.append(_passes(session, name, queries, repeats, partial(_insert_row, session.spark)))
        session.save()
    for name, change in ((PIPELINE, pipeline.change_few), (PIPELINE_MANY, pipeline.change_many)):
        with schema(session.spark, "graph"):
            pipeline.make_bases(session.spark)
            run.cases.append(
                _passes(session, name, pipeline.queries(), min(repeats, 5), partial(change, session.spark))
            )
        session.save()
    if has_idle:
        with schema(session.spark, "graph"):
            run.cases.append(_idle_tick(session, repeats))
    session.end(run)


def _passes(session: Session, name: str, queries: Queries, repeats: int, change: Callable[[int], object]) -> Case:
    trickle = Trickle(session.spark)
    case = Case(name=name)
    for table, query in queries.items():
        with doing(f"graph: creating {table} of {name}"):
            case.create[table] = _timed(partial(trickle.create, table, query))
    # The first refreshes compile what the others reuse, and each table has its own.
    for number in range(1, repeats + 4):
        change(number)
        with doing(f"graph: {name}, run {number} of {repeats + 3}"):
            found = _pass(trickle, full=False)
        case.cycles.append(Cycle(number=number, warm_up=number <= 3, refreshes={DIFFERENTIAL: found}))
        console.print(f"  graph: {name}: {found.seconds:.2f} s, {found.mode}")
    with doing(f"graph: {name}, in full and verified"):
        for cycle in case.cycles[-2:]:
            cycle.refreshes[FULL] = _pass(trickle, full=True)
        verified = [trickle.verify(table) for table in queries]
    case.cycles[-1].differences = sum(report.missing + report.extra for report in verified)
    return case


def _insert_row(spark: SparkSession, number: int) -> None:
    spark.sql(f"INSERT INTO base VALUES ({ROWS + number}, {number % 7}, 1)")


def _make_base(session: Session) -> None:
    session.spark.sql(
        f"CREATE TABLE base USING delta AS SELECT id, pmod(hash(id), 1000) AS k, id % 100 AS v FROM range({ROWS})"
    )


def _pass(trickle: Trickle, *, full: bool) -> Refreshed:
    begun = time.perf_counter()
    report = trickle.refresh_all(full=full, workers=WORKERS)
    seconds = time.perf_counter() - begun
    if report.errors:
        raise next(iter(report.errors.values()))
    return _as_one(report, seconds)


def _as_one(report: RunReport, seconds: float) -> Refreshed:
    """Show a run as one refresh, in the mode of the table that did most."""
    modes = {table.mode for table in report.tables.values()}
    return Refreshed(
        seconds=seconds,
        mode=next(mode for mode in ("full", "differential", "no_data") if mode in modes),
        rows_inserted=sum(table.rows_inserted for table in report.tables.values()),
        rows_deleted=sum(table.rows_deleted for table in report.tables.values()),
        changed=sum(sum(table.changed.values()) for table in report.tables.values()),
        steps={name: table.seconds for name, table in report.tables.items()},
    )


def _idle_tick(session: Session, repeats: int) -> Case:
    """What the loop does for tables of which none is due."""
    from trickle.schedule.loop import Loop

    trickle = Trickle(session.spark)
    _make_base(session)
    for number in range(1, IDLE_TABLES + 1):
        with doing(f"graph: creating table {number} of {IDLE_TABLES}"):
            query = f"SELECT k, sum(v) + {number} AS v FROM base GROUP BY k"
            trickle.create(f"idle_{number}", query, schedule="on commit")
    loop, case = Loop(trickle._engine), Case(name=IDLE_TICK)
    for number in range(1, repeats + 4):
        with doing(f"graph: {IDLE_TICK}"):
            found = Refreshed(seconds=_timed(loop.tick), mode="no_data")
        case.cycles.append(Cycle(number=number, warm_up=number <= 3, refreshes={DIFFERENTIAL: found}))
        console.print(f"  graph: {IDLE_TICK}: {found.seconds:.3f} s")
    loop.stop()
    return case


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
