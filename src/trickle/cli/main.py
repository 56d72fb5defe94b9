"""The command line. Nothing here imports Spark, nor pydantic or rich: ``--help`` answers at once."""

from __future__ import annotations

import os
import select
import sys
from typing import Annotated, NoReturn

import typer

from trickle.cli import project_verbs, sql  # noqa: F401 - their commands register themselves
from trickle.cli.app import app, command
from trickle.cli.settings import Settings, read_versions


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    """Name the stream tables that begin so, for a shell; without Spark, and without a word if there are none."""
    from trickle.cli import commands

    given = {name: context.params.get(name) for name in ("warehouse", "project", "env")}
    return commands.names(
        Settings(given["warehouse"], project_path=given["project"], environment=given["env"]), incomplete
    )


Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", show_default=False, autocompletion=_complete)]
Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=_complete)]
MaybeName = Annotated[str | None, typer.Argument(metavar="NAME", show_default=False, autocompletion=_complete)]


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="trickle")
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


# -- looking: only the logs are read, and no JVM is started


@command
def status(
    settings: Settings,
    names: Names = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if one is late, failed or broken.")] = False,
) -> int:
    """Show how stream tables are: freshness, lag, next due, health.

    Reads only the logs of a warehouse folder, without Spark.

    Example:
      trickle status --warehouse /data/shop
      trickle status daily_revenue --format json
    """
    from trickle.cli import commands

    return commands.status(settings, names or (), check=check)


@command
def history(
    settings: Settings,
    name: Name,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many refreshes.")] = 20,
) -> int:
    """Show the refreshes of a stream table, the newest first.

    Reads only the logs of a warehouse folder, without Spark.

    Example:
      trickle history daily_revenue --limit 5
    """
    from trickle.cli import commands

    return commands.history(settings, name, limit)


@command
def tables(settings: Settings) -> int:
    """List the stream tables.

    Reads only the logs of a warehouse folder, without Spark.

    Example:
      trickle tables --format json
    """
    from trickle.cli import commands

    return commands.tables(settings)


@command
def lineage(
    settings: Settings,
    name: MaybeName = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Write a Mermaid diagram.")] = False,
) -> int:
    """Show who reads whom, and which columns.

    Of one table: what it reads and who reads it. Reads only the logs of a warehouse folder, without Spark.

    Example:
      trickle lineage
      trickle lineage daily_revenue --mermaid > lineage.mmd
    """
    from trickle.cli import commands

    return commands.lineage(settings, name, mermaid=mermaid)


# -- working: Spark is started


@command
def refresh(
    settings: Settings,
    names: Names = None,
    selected: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", metavar="PATTERN", help="shop.*, +daily, daily+, tag:nightly; repeatable."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute all rows.")] = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", metavar="TABLE=VERSION", help="Version of a base table; repeatable.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="How many tables at once.")] = 1,
) -> int:
    """Bring stream tables to one cut of their base tables.

    All of them, or those that are named or selected and what they read. Streaming tables of the project come first.

    Example:
      trickle refresh
      trickle refresh daily_revenue --at orders=43
      trickle refresh --select daily_revenue+
    """
    from trickle.cli import commands

    try:
        versions = read_versions(at or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return commands.refresh(settings, names or (), selected or (), versions, full=full, workers=workers)


@command
def run(
    settings: Settings,
    workers: Annotated[int, typer.Option("--workers", min=1, help="How many tables at once.")] = 2,
    lasting: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long, as 30s or 8h [until Ctrl-C].")
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="FOLDER", help="By which of several processes one leads [in the warehouse]."),
    ] = None,
) -> int:
    """Refresh stream tables by their schedules.

    Goes on until Ctrl-C or SIGTERM; the refresh at work ends first. Shows a live table on a terminal, and a line for each
    event elsewhere.

    Example:
      trickle run --warehouse /data/shop
      trickle run --for 8h --format json >> trickle.log
    """
    from trickle.cli.run import run as run_loop
    from trickle.model.schedule import read_duration

    return run_loop(settings, workers, None if lasting is None else read_duration(lasting), lease)


@command
def verify(settings: Settings, names: Names = None) -> int:
    """Compare stream tables with their queries, row for row.

    All of them, or those that are named. The exit code is 1 if one differs.

    Example:
      trickle verify daily_revenue
    """
    from trickle.cli import commands

    return commands.verify(settings, names or ())


@command
def explain(settings: Settings, name: Name) -> int:
    """Show how a stream table is maintained.

    Also what its next refresh would do now. Changes nothing.

    Example:
      trickle explain daily_revenue
    """
    from trickle.cli import commands

    return commands.explain(settings, name)


@command
def drop(
    settings: Settings,
    name: Name,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop the stream tables that read it, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Drop a stream table and its data.

    Example:
      trickle drop daily_revenue --yes
    """
    from trickle.cli import commands

    if not yes:
        if not sys.stdin.isatty():
            _refuse("drop asks first; in a script say --yes")
        _confirm(f"Drop {name} and its data?")
    return commands.change(settings, name, "dropped", lambda trickle, found: trickle.drop(found, cascade=cascade))


@command
def suspend(
    settings: Settings,
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; status shows it.")] = None,
) -> int:
    """Leave a stream table where it is, until it is resumed.

    Runs pass over it, and refresh refuses it. Tables that read it go on from its stored rows.

    Example:
      trickle suspend daily_revenue --reason "orders are being restored"
    """
    from trickle.cli import commands

    return commands.change(settings, name, "suspended", lambda trickle, found: trickle.suspend(found, reason=reason))


@command
def resume(
    settings: Settings,
    name: Name,
    apply: Annotated[bool, typer.Option("--apply", help="First apply the change that its fuse holds back.")] = False,
    full: Annotated[bool, typer.Option("--full", help="First recompute all rows.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="First pass over the change that its fuse holds back.")] = False,
) -> int:
    """Let a suspended stream table go on.

    The error that it was suspended for is forgotten.

    Example:
      trickle resume daily_revenue
      trickle resume daily_revenue --apply
    """
    from trickle.cli import commands

    return commands.resume(settings, name, apply=apply, full=full, skip=skip)


def _confirm(question: str) -> None:
    """Ask beside the answer; typer's own question writes to both streams, and takes Ctrl-C for a no."""
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        pass  # a Ctrl-C that comes right before a read does not end it
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort


def _refuse(why: str) -> NoReturn:
    raise typer.BadParameter(why)
