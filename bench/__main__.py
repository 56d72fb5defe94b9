"""The command line: ``python -m bench run | ablation | compare | report``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from bench.ablation import run_ablation
from bench.big_result import run_big_result
from bench.cold import run_cold
from bench.compare import run_compare
from bench.cost import run_cost
from bench.freshness import run_freshness
from bench.graph import run_graph
from bench.growth import run_growth
from bench.kinds import run_kinds
from bench.micro import run_micro
from bench.report import console_tables, write_report
from bench.session import Session, session
from bench.show import console
from bench.storage import run_storage, store
from bench.tpch import Choice, Pattern, TwinMode, run_tpch
from trickle.model.options import OPTIMISATIONS
from trickle.testing import tpch

PARTS = ("tpch", "cost", "micro", "growth", "graph", "freshness", "big result", "tables", "cold", "storage")
#: One query of each kind: sums, joins with top-k, many joins, outer join, views over views, semi joins.
TYPICAL = "q01,q03,q05,q06,q10,q13,q15,q18"

Queries = Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")]
Scale = Annotated[float, typer.Option(help="TPC-H scale factor.")]
Rate = Annotated[str, typer.Option(help="Shares of rows changed per cycle, separated by commas.")]
Patterns = Annotated[str, typer.Option(help="Where changed keys lie: random, recent or both.")]
Repeats = Annotated[int, typer.Option(min=1, help="Cycles that count, after one to warm up.")]
Output = Annotated[Path, typer.Option(help="Folder of benchmarks.json, .md and .svg.")]
Warehouse = Annotated[Path, typer.Option(help="Folder of the data; loaded sources are kept in it.")]
Memory = Annotated[str, typer.Option(help="Heap of the JVM.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Keep completed runs of other settings, and those that the same code made here."),
]

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True, pretty_exceptions_show_locals=False)


@app.command()
def run(
    queries: Queries = "all",
    scale: Scale = 1.0,
    rate: Rate = "0.001",
    pattern: Patterns = "random,recent",
    repeats: Repeats = 3,
    disable: Annotated[str, typer.Option(help="Optimisations the differential twins go without.")] = "",
    mode: Annotated[str, typer.Option(help="Of the differential twins: auto, differential or both.")] = "auto",
    keys: Annotated[bool, typer.Option(help="Declare the keys of TPC-H's tables.")] = True,
    plain: Annotated[bool, typer.Option(help="Time a plain CREATE TABLE AS of each query too.")] = True,
    parts: Annotated[str, typer.Option(help=f"Some of {', '.join(PARTS)}.")] = ",".join(PARTS),
    big: Annotated[
        bool, typer.Option("--big", help="Also 10 M rows, scale 10 in growth, TPC-H on object storage.")
    ] = False,
    idle: Annotated[
        bool, typer.Option("--idle", help="Also time a hundred idle stream tables, and five hundred in a graph.")
    ] = False,
    minutes: Annotated[float, typer.Option(min=0.5, help="How long the writer of the freshness part writes.")] = 5.0,
    endpoint: Annotated[
        str, typer.Option(help="S3 of the storage part, http://host:port/bucket [moto in this process].")
    ] = "",
    output: Output = Path("docs"),
    warehouse: Warehouse = Path("bench-data"),
    memory: Memory = "4g",
    resume: Resume = False,
) -> None:
    """Time full against differential refreshes."""
    choice = Choice(
        queries=chosen(queries, tpch.QUERIES, "--queries"),
        scale=scale,
        rates=chosen_rates(rate),
        patterns=chosen_patterns(pattern),
        repeats=repeats,
        disable=chosen(disable, sorted(OPTIMISATIONS), "--disable") if disable else (),
        mode=chosen_mode(mode),
        keys=keys,
        plain=plain,
    )
    asked = chosen(parts, PARTS, "--parts")
    with ExitStack() as stack:
        s3 = stack.enter_context(store(endpoint)) if "storage" in asked else None
        file, config = output / "benchmarks.json", None if s3 is None else s3.config
        opened = stack.enter_context(session(warehouse, file, memory=memory, resume=resume, config=config))
        if "tpch" in asked:
            run_tpch(opened, choice)
        if "cost" in asked:
            run_cost(opened, max(5, repeats), has_sweep=idle)
        if "micro" in asked:
            run_micro(opened, [100_000, *([10_000_000] if big else [])], repeats)
        if "growth" in asked:
            run_growth(opened, [0.1, 1, *([10] if big else [])], repeats)
        if "graph" in asked:
            run_graph(opened, max(5, repeats), has_idle=idle)
        if "big result" in asked:
            run_big_result(opened, 10_000_000 if big else 2_000_000, 50 if big else max(5, repeats))
        if "tables" in asked:
            run_kinds(opened, 600_000, max(5, repeats))
        if "cold" in asked:
            run_cold(opened, repeats)
        if "freshness" in asked:
            run_freshness(opened, minutes)
        if s3 is not None:
            run_storage(opened, s3, repeats, endpoint, has_tpch=big)
    finish(opened, asked)


@app.command()
def ablation(
    queries: Queries = TYPICAL,
    scale: Scale = 1.0,
    rate: Annotated[float, typer.Option(help="Share of rows changed per cycle.")] = 0.001,
    pattern: Annotated[str, typer.Option(help="Where changed keys lie: random or recent.")] = "random",
    repeats: Repeats = 3,
    output: Output = Path("docs"),
    warehouse: Warehouse = Path("bench-data"),
    memory: Memory = "4g",
    resume: Resume = False,
) -> None:
    """Time differential refreshes with each optimisation switched off in turn."""
    names, (first, *_) = chosen(queries, tpch.QUERIES, "--queries"), chosen_patterns(pattern)
    with session(warehouse, output / "benchmarks.json", memory=memory, resume=resume) as opened:
        run_ablation(opened, names, scale, rate, first, repeats)
    finish(opened, ["ablation"])


@app.command()
def compare(
    other: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of another revision.")],
    scale: Scale = 1.0,
    rate: Annotated[float, typer.Option(help="Share of rows changed per cycle.")] = 0.001,
    pattern: Patterns = "random,recent",
    repeats: Repeats = 5,
    warehouse: Warehouse = Path("bench-data"),
) -> None:
    """Compare differential refreshes of TPC-H with those of another checkout, cycle by cycle in turn."""
    for one in chosen_patterns(pattern):
        run_compare(other, warehouse, scale, rate, one, repeats)


@app.command()
def report(file: Annotated[Path, typer.Argument(exists=True, help="The stored numbers.")]) -> None:
    """Write the page and the picture beside stored numbers."""
    write_report(file)
    console.print(f"{file.with_suffix('.md')} and {file.with_suffix('.svg').name} are written.")


def finish(opened: Session, parts: list[str]) -> None:
    """Show the tables, write page and picture; fail if twins were ever different."""
    for table in console_tables(opened.results, parts):
        console.print(table)
    write_report(opened.file)
    console.print(f"All numbers are in {opened.file}, the page is {opened.file.with_suffix('.md')}.")
    wrong = [
        f"{part}: {case.name}"
        for part in parts
        for run in opened.results.parts[part].runs
        for case in run.cases
        if case.differences
    ]
    if wrong:
        console.print(f"[red]Stream tables differed: {', '.join(wrong)}[/]")
        raise typer.Exit(1)


def chosen(text: str, known: Iterable[str], option: str) -> list[str]:
    """Read names separated by commas; ``all`` means all of them."""
    known = list(known)
    names = known if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise typer.BadParameter(f"{unknown or 'nothing'}: choose from {', '.join(known)}.", param_hint=option)
    return names


def chosen_patterns(text: str) -> list[Pattern]:
    """Read names of patterns."""
    known: dict[str, Pattern] = {"random": "random", "recent": "recent"}
    return [known[name] for name in chosen(text, known, "--pattern")]


def chosen_mode(text: str) -> TwinMode:
    """Read the mode of the differential twins."""
    known: dict[str, TwinMode] = {"auto": "auto", "differential": "differential", "both": "both"}
    (name, *_) = chosen(text, known, "--mode")
    return known[name]


def chosen_rates(text: str) -> list[float]:
    """Read shares separated by commas."""
    try:
        rates = [float(share) for share in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} has something that is no number.", param_hint="--rate") from error
    if not all(0 < share < 1 for share in rates):
        raise typer.BadParameter("a rate is a share of the rows, between 0 and 1.", param_hint="--rate")
    return rates


if __name__ == "__main__":
    app()
