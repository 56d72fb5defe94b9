"""What the numbers are measured against: each goal, and what was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.cost import IDLE, ONE_ORDER, ONE_ROW, SWEEP
from bench.graph import CHAIN, DIAMOND, IDLE_TICK, LAYERS, PIPELINE, PIPELINE_MANY
from bench.kinds import KINDS, QUERIES, case_name
from bench.results import DIFFERENTIAL, FULL, Part
from bench.storage import COUNTED, DIRECT, FAR_NOTHING, FAR_ROW, LOCAL, SOURCES
from bench.storage import QUERIES as STORED
from bench.summary import (
    auto_ratio,
    beside_plain,
    create_ratio,
    full_seconds,
    geometric_mean,
    line_of,
    lines_of,
    median,
    median_seconds,
    quantile,
    ratio,
    spent_seconds,
    worst,
)
from bench.tables import (
    NOT_MEASURED,
    Table,
    big_result_seconds,
    median_requests,
    memory_table,
    milliseconds,
    run_label,
    seconds,
    storage_case,
    times,
)

if TYPE_CHECKING:
    from bench.results import Case, Results, Run

Measured = Callable[["Results"], "str | None"]

_MAX_ABOVE: Final = 1.15
"""How many times longer than the better mode ``auto`` may take."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Something to reach: what must be, what would be good, and how what is follows from the numbers."""

    text: str
    must: str
    aim: str
    measured: Measured


def goals_table(results: Results) -> Table:
    """One row per goal."""
    rows = [(goal.text, goal.must, goal.aim, goal.measured(results) or NOT_MEASURED) for goal in GOALS]
    return Table("Goals", ("", "must", "aim", "measured"), rows)


def _runs(results: Results, part: str) -> list[Run]:
    return [run for run in results.parts[part].runs if run.is_complete] if part in results.parts else []


def _tpch(results: Results, *, scale: float, rate: float, pattern: str | None = None) -> list[Run]:
    """Return the runs with every optimisation on."""
    wanted = {"scale": scale, "rate": rate, **({"pattern": pattern} if pattern else {})}
    runs = _runs(results, "tpch")
    return [run for run in runs if wanted.items() <= run.facts.items() and not run.facts.get("disable")]


def _mean(scale: float, rate: float, pattern: str) -> Measured:
    def measured(results: Results) -> str | None:
        runs = _tpch(results, scale=scale, rate=rate, pattern=pattern)
        return times(geometric_mean(line.ratio for line in lines_of(runs[0]))) if runs else None

    return measured


def _worst(results: Results) -> str | None:
    found = [(run, line) for run in _tpch(results, scale=1, rate=0.001) if (line := worst(lines_of(run)))]
    return "; ".join(f"{line.name} {times(line.ratio)}, {run_label(run)}" for run, line in found) or None


def _additive(results: Results) -> str | None:
    cases = [(run, run.case(name)) for name in ("q06", "q01") for run in _tpch(results, scale=1, rate=0.001)]
    shown = (f"{case.name} {times(line_of(case).ratio)} {run.facts['pattern']}" for run, case in cases if case)
    return "; ".join(shown) or None


def _cost_cases(results: Results, *names: str) -> Iterable[Case]:
    return (case for run in _runs(results, "cost") for name in names if (case := run.case(name)))


def _idle(results: Results) -> str | None:
    shown = []
    for case in _cost_cases(results, IDLE, SWEEP):
        spent = [sum(r.seconds for r in cycle.refreshes.values()) for cycle in case.cycles if not cycle.warm_up]
        shown.append(f"{case.name}: {milliseconds(median(spent))}")
    return "; ".join(shown) or None


def _smallest(results: Results) -> str | None:
    cases = _cost_cases(results, ONE_ROW, ONE_ORDER)
    return "; ".join(f"{case.name} {seconds(median_seconds(case, DIFFERENTIAL))}" for case in cases) or None


def _create(results: Results) -> str | None:
    found = [(run, geometric_mean(map(create_ratio, run.cases))) for run in _tpch(results, scale=1, rate=0.001)]
    return "; ".join(f"{times(mean)}, {run_label(run)}" for run, mean in found if mean) or None


def _growth(results: Results) -> str | None:
    found = {run.facts["scale"]: run for run in _runs(results, "growth")}
    shown = []
    if 1 in found and 10 in found:
        for case in found[10].cases:
            before = found[1].case(case.name)
            small = median_seconds(before, DIFFERENTIAL) if before else None
            large = median_seconds(case, DIFFERENTIAL)
            if small and large:
                shown.append(f"{case.name} {times(large / small)}")
    return "; ".join(shown) or None


def _choice(results: Results) -> str | None:
    runs = [run for run in _tpch(results, scale=1, rate=0.1) if run.facts.get("mode") == "both"]
    ratios = [ratio for run in runs[:1] for case in run.cases if (ratio := auto_ratio(case))]
    return f"{sum(ratio <= _MAX_ABOVE for ratio in ratios)} of {len(ratios)}" if ratios else None


def _graph(name: str) -> Measured:
    def measured(results: Results) -> str | None:
        cases = (run.case(name) for run in _runs(results, "graph"))
        return "; ".join(seconds(median(spent_seconds(case))) for case in cases if case) or None

    return measured


def _pipeline(name: str) -> Measured:
    def measured(results: Results) -> str | None:
        cases = (case for run in _runs(results, "graph") if (case := run.case(name)))
        return "; ".join(times(ratio(full_seconds(case), median(spent_seconds(case)))) for case in cases) or None

    return measured


def _freshness(share: float) -> Measured:
    def measured(results: Results) -> str | None:
        cases = (case for run in _runs(results, "freshness") for case in run.cases)
        return "; ".join(f"{case.name} {seconds(quantile(spent_seconds(case), share))}" for case in cases) or None

    return measured


def _flat(results: Results) -> str | None:
    tables = [memory_table(Part(runs=[run])) for run in _runs(results, "freshness")]
    return "; ".join(f"{row[0]} {row[-1]}" for table in tables if table for row in table.rows) or None


def _memory(results: Results) -> str | None:
    peaks = [run.peak_memory for run in _tpch(results, scale=10, rate=0.001)]
    return " + ".join(f"{name} {most:.1f} GiB" for name, most in peaks[0].items()) if peaks else None


def _kinds(results: Results) -> str | None:
    shown = []
    for run in _runs(results, "tables"):
        for kind in KINDS:
            cases = [run.case(case_name(kind, query)) for query in QUERIES]
            shown.append(f"{kind.name} {times(geometric_mean(beside_plain(case) for case in cases if case))}")
    return "; ".join(shown) or None


def _cold(results: Results) -> str | None:
    cases = (case for run in _runs(results, "cold") for case in run.cases)
    both = ((case, median_seconds(case, DIFFERENTIAL), median_seconds(case, FULL)) for case in cases)
    return "; ".join(f"{case.name} {times(ratio(own, full))}" for case, own, full in both) or None


def _big_result(rate: float) -> Measured:
    def measured(results: Results) -> str | None:
        wanted = {"rows": 10_000_000, "rate": rate}
        runs = [run for run in _runs(results, "big result") if wanted.items() <= run.facts.items()]
        shown = (f"{case.name} {times(ratio(*big_result_seconds(case)))}" for run in runs for case in run.cases)
        return "; ".join(shown) or None

    return measured


def _storage_ratio(results: Results) -> str | None:
    """Compare how much faster changes are on S3 with how much faster they are on the disk."""
    if "storage" not in results.parts:
        return None
    part = results.parts["storage"]
    names = dict.fromkeys(case.name for run in _runs(results, "storage") for case in run.cases)
    both = {name: [storage_case(part, place, name) for place in (DIRECT, LOCAL)] for name in names}
    ratios = {
        name: [line_of(case).ratio for case in cases if case is not None]
        for name, cases in both.items()
        if all(case is not None and median_seconds(case, FULL) for case in cases)
    }
    shares = [ratio(remote, local) for remote, local in ratios.values()]
    least = min((remote for remote, _ in ratios.values() if remote is not None), default=None)
    if least is None:
        return None
    return f"{times(geometric_mean(shares))} of the ratio on the disk; the smallest ratio is {times(least)}"


def _requests(count: int) -> Measured:
    def measured(results: Results) -> str | None:
        part = results.parts.get("storage")
        if part is None:
            return None
        found = {name: median_requests(part, name) for name in STORED if SOURCES.get(name, 1) == count}
        return "; ".join(f"{name} {round(value)}" for name, value in found.items() if value is not None) or None

    return measured


def _far(name: str) -> Measured:
    def measured(results: Results) -> str | None:
        part = results.parts.get("storage")
        case = None if part is None else storage_case(part, COUNTED, name)
        return None if case is None else seconds(median(spent_seconds(case)))

    return measured


GOALS: Final = (
    Goal("scale 1, 0.1 %, random, mean ratio", "≥ 4 ×", "10 ×", _mean(1, 0.001, "random")),
    Goal("scale 1, 0.1 %, recent, mean ratio", "≥ 8 ×", "20 ×", _mean(1, 0.001, "recent")),
    Goal(f"worst query of both, {FULL} / auto", "≥ 0.9 ×", "1.5 ×", _worst),
    Goal("sums over one table, 0.1 %", "q06 5 ×, q01 15 ×", "10 ×, 30 ×", _additive),
    Goal("scale 1, 1 %, random, mean ratio", "≥ 2.5 ×", "5 ×", _mean(1, 0.01, "random")),
    Goal("scale 10, 0.1 %, recent, mean ratio", "≥ 15 ×", "30 ×", _mean(10, 0.001, "recent")),
    Goal("refresh with nothing new", "15 ms; 100 tables 1 s", "5 ms", _idle),
    Goal("smallest refresh, warm", "≤ 0.5 s", "0.25 s", _smallest),
    Goal("create / plain CREATE TABLE AS", "≤ 1.3 ×", "1.1 ×", _create),
    Goal("1,000 changed rows, scale 10 / scale 1", "≤ 1.5 ×", "1.1 ×", _growth),
    Goal(f"10 % in auto: within {_MAX_ABOVE} of the better mode", "20 of 22", "all", _choice),
    Goal(f"{CHAIN}, one changed row", "≤ 0.6 s", "0.3 s", _graph(CHAIN)),
    Goal(f"{DIAMOND}, one changed row", "≤ 0.25 s", "0.2 s", _graph(DIAMOND)),
    Goal(f"{LAYERS}, one changed row", "≤ 2.5 s", "1.2 s", _graph(LAYERS)),
    Goal(f"{PIPELINE}, full / differential", "> 1 ×", "3 ×", _pipeline(PIPELINE)),
    Goal(f"{PIPELINE_MANY}, full / differential", "≥ 1 ×", "", _pipeline(PIPELINE_MANY)),
    Goal(IDLE_TICK, "≤ 0.5 s", "0.2 s", _graph(IDLE_TICK)),
    Goal("10 M rows, 0.01 % all over, 50 refreshes with housekeeping", "≥ 8 ×", "30 ×", _big_result(0.0001)),
    Goal("10 M rows, 0.1 %", "≥ 4 ×", "12 ×", _big_result(0.001)),
    Goal("10 M rows, 1 %", "≥ 1.5 ×", "3 ×", _big_result(0.01)),
    Goal("other kinds of tables / a plain one, mean of five queries", "≤ 1.5 ×", "1.1 ×", _kinds),
    Goal("on S3, full / differential", "≥ 0.5 of the disk's, ≥ 1 ×", "0.8", _storage_ratio),
    Goal("requests of a warm refresh, one source", "≤ 20", "10", _requests(1)),
    Goal("requests of a warm refresh, three sources", "≤ 40", "20", _requests(3)),
    Goal(FAR_ROW, "≤ 0.6 s", "0.3 s", _far(FAR_ROW)),
    Goal(FAR_NOTHING, "≤ 0.05 s", "", _far(FAR_NOTHING)),
    Goal("in a new process, differential / full", "≤ 0.5 ×", "0.2 ×", _cold),
    Goal("commit to result, on commit, p50", "≤ 0.25 s", "0.1 s", _freshness(0.5)),
    Goal("commit to result, on commit, p95", "≤ 0.75 s", "0.3 s", _freshness(0.95)),
    Goal("memory from the first to the last third of that, after the warm-up", "flat", "", _flat),
    Goal("memory of the driver at scale 10", "≤ 8 GiB", "", _memory),
)
