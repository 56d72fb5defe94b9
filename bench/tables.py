"""The tables of a benchmark, as data: shown on the console and written to the page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.cost import IDLE, ONE_ORDER, ONE_ROW, SWEEP
from bench.kinds import KINDS, QUERIES, case_name
from bench.results import AUTO, DIFFERENTIAL, FULL, PLAIN
from bench.storage import COUNTED, DIRECT, LOCAL
from bench.summary import (
    auto_ratio,
    beside_plain,
    breakdown,
    create_ratio,
    full_seconds,
    geometric_mean,
    line_of,
    lines_of,
    mean_steps,
    median,
    median_seconds,
    quantile,
    ratio,
    refreshes,
    slowdowns,
    spent_seconds,
    worst,
)

if TYPE_CHECKING:
    from bench.results import Case, Part, Run

NOT_MEASURED = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and cells; every column but the first is of numbers."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def run_label(run: Run) -> str:
    """Name a run by what tells it from the others.

    >>> from bench.results import Run
    >>> run_label(Run.model_construct(facts={"scale": 1.0, "rate": 0.001, "pattern": "recent"}))
    '0.1 % recent'
    """
    if "pattern" in run.facts:
        scale = f", scale {run.facts['scale']:g}" if run.facts["scale"] != 1 else ""
        return f"{100 * float(run.facts['rate']):g} % {run.facts['pattern']}{scale}"
    if "place" in run.facts:
        return f"{run.facts['place']}, {'TPC-H' if 'scale' in run.facts else 'five queries'}"
    if "scale" in run.facts:
        return f"scale {float(run.facts['scale']):g}"
    return f"{int(run.facts['rows']):,} rows"


def summary_table(part: Part) -> Table:
    """One row per run: mean ratio, worst query, what did not count."""
    rows = []
    for run in part.runs:
        lines = lines_of(run)
        last = worst(lines)
        rows.append(
            (
                run_label(run),
                f"{sum(line.ratio is not None for line in lines)} of {len(lines)}",
                times(geometric_mean(line.ratio for line in lines)),
                f"{last.name} {times(last.ratio)}" if last else NOT_MEASURED,
                str(sum(line.mode == DIFFERENTIAL for line in lines)),
                ", ".join(line.name for line in lines if line.mode == "no_data") or "none",
                times(geometric_mean(create_ratio(case) for case in run.cases)),
                str(sum(line.differences for line in lines)),
                " + ".join(f"{name} {most:.1f} GiB" for name, most in run.peak_memory.items()) or NOT_MEASURED,
            )
        )
    headings = (
        "",
        "measured",
        "mean ratio",
        "worst",
        "by changes",
        "no data",
        "create / CTAS",
        "rows that differ",
        "peak memory",
    )
    return Table("Summary", headings, rows)


def query_tables(part: Part) -> Sequence[Table]:
    """A table for each run with one row per case: median seconds and their ratio."""
    headings = ("query", "full", "differential", "ratio", "mode", "create / CTAS")
    return [
        Table(run_label(run), headings, [(case.name, *_twins(case), times(create_ratio(case))) for case in run.cases])
        for run in part.runs
    ]


def choice_table(part: Part) -> Table | None:
    """How mode ``auto`` fares against the better of the other two, where all three were run."""
    rows = []
    for run in part.runs:
        for case in run.cases:
            if above := auto_ratio(case):
                spent = (seconds(median_seconds(case, label)) for label in (FULL, DIFFERENTIAL, AUTO))
                modes = ", ".join(sorted({refreshed.mode for refreshed in refreshes(case, AUTO)}))
                rows.append((f"{case.name}, {run_label(run)}", *spent, times(above), modes))
    headings = ("query", "full", "differential", "auto", "auto / better", "auto chose")
    return Table("What auto chooses", headings, rows) if rows else None


def step_table(part: Part) -> Table:
    """Where the time of differential refreshes goes: seconds of each step, summed over queries."""
    found = {run_label(run): breakdown(run.cases) for run in part.runs}
    names = sorted(
        {step for steps in found.values() for step in steps}, key=lambda s: -sum(_of(f, s) for f in found.values())
    )
    rows = [(step, *(_share(steps, step) for steps in found.values())) for step in names]
    total = ("all", *(seconds(sum(steps.values())) for steps in found.values()))
    return Table("Where the time goes", ("step", *found), [*rows, total])


def cost_table(part: Part) -> Table:
    """The smallest refresh, one with nothing new, and many of those."""
    rows = []
    for run in part.runs:
        for name, of_what in ((ONE_ROW, f"{run.facts['rows']:,} rows"), (ONE_ORDER, "a join of three tables")):
            if case := run.case(name):
                steps = sorted(mean_steps(case).items(), key=lambda item: -item[1])[:3]
                note = ", ".join(f"{step} {seconds(value)}" for step, value in steps)
                rows.append((f"{name} into {of_what}", seconds(median_seconds(case, DIFFERENTIAL)), note))
        if case := run.case(IDLE):
            value = median(r.seconds for c in case.cycles if not c.warm_up for r in c.refreshes.values())
            rows.append((IDLE, milliseconds(value), ""))
        if case := run.case(SWEEP):
            sweeps = [sum(r.seconds for r in c.refreshes.values()) for c in case.cycles if not c.warm_up]
            rows.append((SWEEP, seconds(median(sweeps)), "one after the other"))
    return Table("Fixed costs", ("refresh", "median", "most of it"), rows)


def growth_table(part: Part) -> Table:
    """One row per query and scale."""
    rows = [(case.name, f"{float(run.facts['scale']):g}", *_twins(case)) for run in part.runs for case in run.cases]
    headings = ("query", "scale", "full", "differential", "ratio", "mode")
    return Table("Growth", headings, sorted(rows, key=lambda row: row[0]))


def graph_table(part: Part) -> Table:
    """One row per graph."""
    rows = []
    for run in part.runs:
        for case in run.cases:
            spent = spent_seconds(case)
            whole = full_seconds(case)
            shown = seconds(median(spent)), seconds(max(spent)), seconds(whole), times(ratio(whole, median(spent)))
            rows.append((case.name, str(len(case.create) or run.facts["tables"]), *shown))
    return Table("Graphs", ("graph", "tables", "median", "slowest", "in full", "ratio"), rows)


def big_result_table(part: Part) -> Table:
    """One row per result and rate: the mean of all refreshes, each with what housekeeping had to do after it."""
    rows = []
    for run in part.runs:
        for case in run.cases:
            whole, spent = big_result_seconds(case)
            kept = sum(found.steps.get("housekeeping", 0.0) for found in refreshes(case, DIFFERENTIAL))
            count = len(refreshes(case, DIFFERENTIAL))
            shown = (
                seconds(whole),
                seconds(spent),
                seconds(kept / max(count, 1)),
                times(ratio(whole, spent)),
                str(count),
            )
            rows.append((case.name, f"{int(run.facts['rows']):,}", f"{100 * float(run.facts['rate']):g} %", *shown))
    headings = ("result", "rows", "changed", "full", "differential", "of that housekeeping", "ratio", "refreshes")
    return Table("Big results", headings, rows)


def big_result_seconds(case: Case) -> tuple[float | None, float | None]:
    """Return what a full refresh took, the median, and what a differential one took, the mean."""
    spent = [found.seconds for found in refreshes(case, DIFFERENTIAL)]
    whole = median(cycle.refreshes[FULL].seconds for cycle in case.cycles if cycle.warm_up and FULL in cycle.refreshes)
    return whole, sum(spent) / len(spent) if spent else None


def freshness_table(part: Part) -> Table:
    """One row per stream table."""
    rows = []
    for run in part.runs:
        for case in run.cases:
            spent = spent_seconds(case)
            quantiles = (seconds(quantile(spent, share)) for share in (0.5, 0.95, 1.0))
            rows.append((case.name, f"{len(case.cycles):,}", *quantiles))
    return Table("Freshness", ("stream table", "commits", "p50", "p95", "slowest"), rows)


def memory_table(part: Part) -> Table | None:
    """One row per process of the driver, while the loop runs, after the warm-up; None if nobody looked."""
    rows = []
    for run in part.runs:
        for name, seen in run.resident.items():
            if seen:
                third = max(len(seen) // 3, 1)
                first, last = median(seen[:third]) or 0.0, median(seen[-third:]) or 0.0
                rows.append(
                    (name, f"{first:,.0f}", f"{last:,.0f}", f"{max(seen):,}", f"{100 * (last / first - 1):+.1f} %")
                )
    headings = ("process", "MiB in the first third", "in the last third", "at most", "growth")
    return Table("Memory while the loop runs", headings, rows) if rows else None


def storage_table(part: Part) -> Table:
    """One row per query: on the disk and on S3, and the requests of the median differential refresh on S3."""
    rows = []
    names = dict.fromkeys(case.name for run in part.runs for case in run.cases)
    for name in names:
        shown = [name]
        for place in (LOCAL, DIRECT):
            case = storage_case(part, place, name) or (storage_case(part, COUNTED, name) if place == DIRECT else None)
            full = None if case is None else median_seconds(case, FULL)
            own = None if case is None else median(spent_seconds(case))
            shown += [seconds(full), seconds(own), times(ratio(full, own))]
        requests = median_requests(part, name)
        rows.append((*shown, NOT_MEASURED if requests is None else str(round(requests))))
    places = [f"{place}: {what}" for place in ("disk", "S3") for what in ("full", "differential", "ratio")]
    return Table("Object storage", ("query", *places, "requests"), rows)


def storage_case(part: Part, place: str, name: str) -> Case | None:
    """Return what was measured of a query at a place."""
    found = (run.case(name) for run in part.runs if run.facts["place"] == place)
    return next((case for case in found if case is not None), None)


def median_requests(part: Part, name: str) -> float | None:
    """Return how many requests a warm differential refresh makes."""
    case = storage_case(part, COUNTED, name)
    counted = [] if case is None else [cycle.refreshes[DIFFERENTIAL] for cycle in case.cycles if not cycle.warm_up]
    return median(found.requests for found in counted if found.requests is not None)


def kinds_table(part: Part) -> Table:
    """One row per kind of table: how many times longer refreshes take than over a plain one."""
    rows = []
    for run in part.runs:
        cases = {kind.name: [run.case(case_name(kind, query)) for query in QUERIES] for kind in KINDS}
        by_query = zip(*cases.values(), strict=True)
        plain = (median(r.seconds for case in found if case for r in refreshes(case, PLAIN)) for found in by_query)
        rows.append((PLAIN, *map(seconds, plain)))
        rows += [(name, *map(_beside_plain, found)) for name, found in cases.items() if any(found)]
    return Table("Kinds of tables", ("source", *QUERIES), rows)


def _beside_plain(case: Case | None) -> str:
    if case is None:
        return NOT_MEASURED
    wrong = f", {case.differences} rows differ" if case.differences else ""
    return times(beside_plain(case)) + wrong


def ablation_table(part: Part) -> Table:
    """One row per query: how many times slower it is without each optimisation."""
    rows: list[tuple[str, ...]] = []
    labels: list[str] = []
    for run in part.runs:
        found = {case.name: slowdowns(case) for case in run.cases}
        labels = list(dict.fromkeys([*labels, *(label for slow in found.values() for label in slow)]))
        labels.sort()
        base = {case.name: median_seconds(case, DIFFERENTIAL) for case in run.cases}
        rows += [
            (name, seconds(base[name]), *(times(slow.get(label)) for label in labels)) for name, slow in found.items()
        ]
        means = (geometric_mean(slow.get(label) for slow in found.values()) for label in labels)
        rows.append(("mean", "", *map(times, means)))
    return Table("Ablation", ("query", "everything on", *(f"no {label}" for label in labels)), rows)


def seconds(value: float | None) -> str:
    """Write seconds."""
    return NOT_MEASURED if value is None else f"{value:.2f} s"


def milliseconds(value: float | None) -> str:
    """Write seconds as milliseconds."""
    return NOT_MEASURED if value is None else f"{1000 * value:.0f} ms"


def times(value: float | None) -> str:
    """Write a ratio."""
    return NOT_MEASURED if value is None else f"{value:.2f} ×" if value < 10 else f"{value:.1f} ×"


def _twins(case: Case) -> tuple[str, str, str, str]:
    line = line_of(case)
    mode = f"{line.mode}, {line.differences} rows differ" if line.differences else line.mode
    return seconds(line.full), seconds(line.differential), times(line.ratio), mode


def _share(steps: Mapping[str, float], step: str) -> str:
    total = sum(steps.values())
    return f"{_of(steps, step):.2f} s ({100 * _of(steps, step) / total:.0f} %)" if total else NOT_MEASURED


def _of(steps: Mapping[str, float], step: str) -> float:
    return steps.get(step, 0.0)
