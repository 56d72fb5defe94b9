"""The page and the picture, from stored numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table as RichTable

from bench.chart import bar_chart
from bench.goals import goals_table
from bench.results import read
from bench.summary import WEAK_RATIO, geometric_mean, lines_of, weak
from bench.tables import (
    Table,
    ablation_table,
    big_result_table,
    choice_table,
    cost_table,
    freshness_table,
    graph_table,
    growth_table,
    kinds_table,
    memory_table,
    query_tables,
    run_label,
    step_table,
    storage_table,
    summary_table,
    times,
)

if TYPE_CHECKING:
    from bench.results import Part, Results, Run

INTRODUCTION = """# Benchmarks

Each query has two stream tables in the same process and session: one is refreshed in full, the other differentially. A cycle
changes the sources, which is not timed, and then refreshes both, in an order that alternates from cycle to cycle. The time is
what a user waits for: the wall clock around `refresh`. After each cycle the benchmark compares the two tables row for row, with
multiplicities. The first cycle is a warm-up; a cycle without a change for a query does not count. *Ratio* is the median full
refresh divided by the median differential one; means of ratios are geometric.

`python -m bench report docs/benchmarks.json` generates this page from [benchmarks.json](benchmarks.json), which has every
measurement.
"""

EXPLANATIONS: Mapping[str, str] = {
    "tpch": "All 22 TPC-H queries, or those named in the command, over shared sources. The rate is the share of orders that a "
    "cycle inserts and deletes, and of lines, parts, suppliers and offers that it updates. The keys are spread over the tables "
    "(random) or lie in their last few per cent (recent).\n\n"
    "The fixed part of a refresh limits the ratio: checking for new versions, reading the change files and committing. It is "
    "most of q06. Small ratios have two causes. A full refresh of small tables takes less than a second anyway (q02, q11, q16, "
    "q20). And the change of a join of many changed tables has a term for each of them; every term is a few key look-ups and "
    "small joins in the driver, some milliseconds each (*compute*). The driver decodes and sorts a column when look-ups first "
    "return to it. A refresh that does so is slower than the later ones, and some of these count (q08, q09, q19). At scale 10, "
    "most of the time goes into searching the keys of sixty million lines for each changed part and supplier, and into "
    "decoding those columns, which one warm-up cycle does not complete (q05, q08, q09, q21).",
    "cost": "A warm refresh after the insert of one row into the source of an aggregate over a million rows, and of one order "
    "into a join of customers, orders and order lines at scale 1; and refreshes without new versions.",
    "micro": "One operator per stream table. One row in a hundred changed: half were updated, the others inserted or deleted.",
    "growth": "The same 1,000 changed order lines in ever larger sources.",
    "graph": "One row is inserted at the base, and one `refresh_all` brings all tables to the new cut; the ratio is to the "
    "same run with every table recomputed. The pipeline has some fifty small tables in three layers, in the manner of "
    "TPC-DI (`bench/pipeline.py`): few rows are seven in four tables, many a fifth of the trades and more. "
    "The idle tick is what the loop does when no table is due.",
    "big result": "Rows of the source are updated at random. The seconds are the mean over all refreshes, the first included, "
    "each with what housekeeping had to do after it; the full refresh is that of plain sources.",
    "freshness": "Another process commits single rows to a source while the loop runs; two stream tables follow it on commit. "
    "The time is that from the commit of the source to the commit of the stream table that has its row, by the logs of both.",
    "tables": "The same five queries over sources with the same rows, each of another kind; 0.1 % of the rows updated, as many "
    "inserted and deleted. Each has a plain twin, made, changed and refreshed in turn with it. The first row has the seconds "
    "of the twins; the others say how many times longer a differential refresh takes than that of its twin.",
    "cold": "TPC-H queries at scale 1, 0.1 % random, each refreshed by a new process, once its session has started: nothing is "
    "compiled, cached or warm.",
    "storage": "Five queries over 600,000 order lines, 150,000 orders and 15,000 customers, 0.1 % of lines and orders changed, "
    "and TPC-H at scale 1, 0.1 % random, on this machine's disk and on S3. A proxy counts the requests, in cycles of their "
    "own. Then a refresh after one row, and one with nothing new, with 20 ms added to each request.",
    "ablation": "How many times slower differential refreshes are with one optimisation switched off at a time.",
}


def write_report(file: Path) -> None:
    """Write ``<name>.md`` and ``<name>.svg`` beside the results."""
    results = read(file)
    picture = file.with_suffix(".svg")
    if "tpch" in results.parts:
        picture.write_text(chart(results.parts["tpch"]), "utf-8")
    file.with_suffix(".md").write_text(markdown(results, picture.name), "utf-8")


def tables_of(name: str, part: Part) -> Sequence[Table]:
    """Return the tables that show a part."""
    match name:
        case "tpch":
            choice = choice_table(part)
            return summary_table(part), *query_tables(part), *([choice] if choice else []), step_table(part)
        case "cost":
            return (cost_table(part),)
        case "micro":
            return *query_tables(part), step_table(part)
        case "growth":
            return (growth_table(part),)
        case "graph":
            return (graph_table(part),)
        case "big result":
            return (big_result_table(part),)
        case "freshness":
            memory = memory_table(part)
            return freshness_table(part), *([memory] if memory else [])
        case "cold":
            return query_tables(part)
        case "tables":
            return (kinds_table(part),)
        case "storage":
            return (storage_table(part),)
        case _:
            return (ablation_table(part),)


TITLES: Mapping[str, str] = {
    "tpch": "TPC-H",
    "cost": "Fixed costs",
    "micro": "Operators",
    "growth": "Growth",
    "graph": "Graphs",
    "big result": "Big results",
    "freshness": "Freshness",
    "tables": "Kinds of tables",
    "cold": "New processes",
    "storage": "Object storage",
    "ablation": "The effect of each optimisation",
}


def markdown(results: Results, picture: str) -> str:
    """Write the page."""
    parts = [INTRODUCTION, "## Goals\n", _grid(goals_table(results))]
    for name, title in TITLES.items():
        if part := results.parts.get(name):
            parts += [f"## {title}\n", EXPLANATIONS[name] + "\n", _made_by(part)]
            if name == "tpch":
                parts.append(f"![Ratio of full to differential refresh per query]({picture})\n")
            for table in tables_of(name, part):
                parts += [f"### {table.title}\n" if table.title != title else "", _grid(table)]
            if name in ("tpch", "micro"):
                parts += ["### Worst cases\n", worst_cases(part)]
    return "\n".join(part for part in parts if part)


def chart(part: Part) -> str:
    """Draw the ratios of TPC-H, of the runs that have the scale and the rate of the first."""
    first = {fact: part.runs[0].facts[fact] for fact in ("scale", "rate")}
    drawn = [run for run in part.runs if first.items() <= run.facts.items()]
    series = {run_label(run): {line.name: line.ratio for line in lines_of(run)} for run in drawn}
    means = {f"{label} (mean {times(geometric_mean(ratios.values()))})": ratios for label, ratios in series.items()}
    return bar_chart(f"TPC-H scale {first['scale']:g}: times faster than a full refresh", means)


def worst_cases(part: Part) -> str:
    """List what is hardly faster than a full refresh, and what failed, with what is to blame."""
    items = []
    for run in part.runs:
        for line in weak(lines_of(run)):
            blame = (
                f"{line.worst_step[1]:.0%} of it in *{line.worst_step[0]}*" if line.worst_step else "no steps reported"
            )
            how = "" if line.mode == "differential" else f"; refreshed {line.mode}"
            items.append(
                f"- {line.name}, {run_label(run)}: {times(line.ratio)}, {line.differential:.2f} s, {blame}{how}"
            )
        items += [f"- {case.name}, {run_label(run)}: stopped by {case.error}" for case in run.cases if case.error]
        items += [
            f"- {line.name}, {run_label(run)}: **{line.differences} rows differ**"
            for line in lines_of(run)
            if line.differences
        ]
    head = f"Less than {WEAK_RATIO} times faster than a full refresh, and where their time goes:\n\n"
    return (
        head + "\n".join(items) if items else f"None is less than {WEAK_RATIO} times faster than a full refresh."
    ) + "\n"


def console_tables(results: Results, names: Sequence[str]) -> Sequence[RichTable]:
    """Return the tables of some parts for the console."""
    shown = []
    for name in names:
        if part := results.parts.get(name):
            for table in tables_of(name, part):
                title = table.title if table.title == TITLES[name] else f"{TITLES[name]}: {table.title.lower()}"
                rich = RichTable(title=title, title_justify="left", title_style="bold")
                for place, heading in enumerate(table.headings):
                    rich.add_column(heading, justify="right" if place else "left")
                for row in table.rows:
                    rich.add_row(*row)
                shown.append(rich)
    return shown


def _made_by(part: Part) -> str:
    """Say where the runs come from: runs of the same code on the same machine together."""
    groups: list[list[Run]] = []
    for run in part.runs:
        group = next((g for g in groups if g[0].origin.is_like(run.origin)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return "\n".join(_origin(group, has_others=len(groups) > 1) for group in groups)


def _origin(runs: Sequence[Run], *, has_others: bool) -> str:
    first, m = runs[0].origin, runs[0].origin.machine
    commands = "\n".join(dict.fromkeys(run.origin.command for run in runs))
    unfinished = "" if all(run.is_complete for run in runs) else " **Interrupted: some of it is missing.**"
    which = f"{', '.join(map(run_label, runs))}: made" if has_others else "Made"
    return (
        f"{which} on {first.date[:10]} with Trickle {m['trickle']} ({m['revision']}), Spark {m['spark']}, "
        f"Delta Lake {m['delta']}, Java {m['java']}, Python {m['python']}; {m['cores']} cores "
        f"({m['cpu']}), {m['memory_gb']} GB, {m['heap']} heap, load average at the start "
        f"{m['load_average']}.{unfinished} To repeat it:\n\n```console\n{commands}\n```\n"
    )


def _grid(table: Table) -> str:
    rule = "|".join(["---", *("---:" for _ in table.headings[1:])])
    lines = ["| " + " | ".join(cells) + " |" for cells in (table.headings, *table.rows)]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:], ""])
