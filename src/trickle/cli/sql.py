"""The command ``sql``: statements about stream tables, and Spark's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trickle.cli.app import command, fail
from trickle.cli.interrupt import was_interrupted
from trickle.cli.settings import Settings  # noqa: TC001 - typer reads the annotations
from trickle.errors import TrickleError

if TYPE_CHECKING:
    from trickle.api import Trickle
    from trickle.sql.split import Part


@command
def sql(
    settings: Settings,
    statements: Annotated[str | None, typer.Argument(metavar="STATEMENTS", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Read the statements from a file; - is standard input."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many rows of a result to show.")] = 1000,
) -> int:
    """Carry out SQL statements, one after the other.

    Those about stream tables, and all that Spark knows. The first that fails ends it.

    Example:
      trickle sql "CREATE STREAM TABLE daily AS SELECT day, sum(amount) AS total FROM orders GROUP BY day"
      trickle sql "SHOW STREAM TABLES" --format json
      trickle sql --file tables.sql
    """
    if (statements is None) == (file is None):
        raise typer.BadParameter("give statements, or a file with --file")
    text = statements if statements is not None else _read(file or Path("-"))
    from trickle.cli.spark import open_trickle, waiting
    from trickle.sql.parse import parse
    from trickle.sql.split import split_script

    parts = split_script(text)
    for part in parts:
        parse(part.placed)  # what cannot be read is told before anything is done
    answers: list[dict[str, Any]] = []
    try:
        with open_trickle(settings) as trickle:
            for part in parts:
                with waiting(" ".join(part.text.split())[:60], trickle.spark):
                    answer = _carry_out(trickle, part, limit)
                if settings.is_json:
                    answers.append({"statement": part.text, **answer})
                else:
                    _show(answer)
    except TrickleError as error:
        if not settings.is_json or not answers or was_interrupted():
            raise
        return fail(error, settings, {"answers": answers})
    if settings.is_json:
        from trickle.cli.output import print_json

        print_json({"answers": answers})
    return 0


def _read(file: Path) -> str:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return text.removeprefix("\ufeff")  # the mark that Windows puts before a text
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from error


def _carry_out(trickle: Trickle, part: Part, limit: int) -> dict[str, Any]:
    """Carry out a statement; what Spark raises becomes an error of Trickle, with the line."""
    from trickle.engine.verbs import translate

    try:
        return _tell(trickle, trickle.sql(part.placed), limit)
    except TrickleError:
        raise
    except Exception as error:
        translated = translate(error, f"line {part.line}")
        if translated is None:
            raise
        raise translated from error


def _tell(trickle: Trickle, answer: Any, limit: int) -> dict[str, Any]:
    """Return an answer as rows, or as a text."""
    from trickle.answers import as_frame
    from trickle.model.explanation import Explanation

    if answer is None or isinstance(answer, Explanation):
        return {"text": answer}
    frame = as_frame(trickle.spark, answer)
    columns = _apart(frame.columns)
    rows = [row.asDict(recursive=True) for row in frame.toDF(*columns).limit(limit + 1).collect()] if columns else []
    return {"columns": columns, "rows": rows[:limit], "more": len(rows) > limit}


def _apart(columns: Sequence[str]) -> list[str]:
    """Make the names of columns different, so that no value is lost.

    >>> _apart(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    return [
        name if (place := columns[:at].count(name)) == 0 else f"{name} ({place + 1})" for at, name in enumerate(columns)
    ]


def _show(answer: dict[str, Any]) -> None:
    if answer.get("text") is not None:
        sys.stdout.write(f"{answer['text']}\n")
    if not answer.get("columns"):
        return
    from rich.table import Table
    from rich.text import Text

    from trickle.cli.output import console, tell

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in answer["columns"]:
        table.add_column(column, overflow="fold")
    for row in answer["rows"]:
        table.add_row(*(Text("" if row[column] is None else str(row[column])) for column in answer["columns"]))
    console().print(table)
    if answer["more"]:
        tell("There are more rows; --limit shows them.")
