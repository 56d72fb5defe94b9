"""The commands about projects: ``init``, ``plan``, ``apply``, ``validate``; and ``demo`` and ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trickle.cli.app import command
from trickle.cli.settings import Settings  # noqa: TC001

Prune = Annotated[bool, typer.Option("--prune", help="Drop stream tables of its schemas that the project has not.")]


@command
def init(
    settings: Settings,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False)],
    empty: Annotated[bool, typer.Option("--empty", help="Without the example's tables and data.")] = False,
) -> int:
    """Make a project: an example that works, with data.

    The folder must not be there yet, or be empty. Starts no Spark.

    Example:
      trickle init shop
      cd shop && trickle apply && trickle status
    """
    from trickle.cli import projects

    return projects.init(settings, folder, empty=empty)


@command
def plan(
    settings: Settings,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if there is something to apply.")] = False,
    prune: Prune = False,
) -> int:
    """Show what apply would do.

    Reads all files of the project and checks all queries; changes no table.

    Example:
      trickle plan
      trickle plan --check --env prod
    """
    from trickle.cli import projects

    return projects.plan(settings, check=check, prune=prune)


@command
def apply(settings: Settings, prune: Prune = False) -> int:
    """Bring the stream tables to what the project says.

    With the least work: a table that is as it should be costs nothing, options change in place, another query is swapped in
    by one commit. If something is wrong in the project, nothing is changed.

    Example:
      trickle apply
      trickle apply --env prod --prune
    """
    from trickle.cli import projects

    return projects.apply(settings, prune=prune)


@command
def validate(settings: Settings) -> int:
    """Check the project: whether each query can be maintained, and why not.

    The exit code is 1 if something is wrong. Changes no table.

    Example:
      trickle validate
      trickle validate --format json
    """
    from trickle.cli import projects

    return projects.validate(settings)


@command
def demo(
    settings: Settings,
    orders: Annotated[int, typer.Option("--orders", min=100, help="How many orders to begin with.")] = 100_000,
) -> int:
    """Show it: an example project in a temporary folder, changed and refreshed.

    Each refresh is timed against a full one, and the tables are compared with their queries.

    Example:
      trickle demo
    """
    from trickle.cli import demo as shown

    return shown.demo(settings, orders)


@command
def doctor(
    settings: Settings,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark.")] = False,
) -> int:
    """Look at what Trickle needs, and say what is wrong and how to mend it.

    Python, Java, Spark, Delta Lake, its jars, memory, the warehouse and your rights there; then Spark is started.

    Example:
      trickle doctor
      trickle doctor --quick --format json
    """
    from trickle.cli import doctor as looking

    return looking.doctor(settings, quick=quick)
