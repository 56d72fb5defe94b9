"""Trickle in notebooks: magics, and the progress of refreshes.

``%load_ext trickle`` gives ``%%stream_table name`` for a cell with a query, and ``%%trickle`` for a cell with SQL.
"""

from __future__ import annotations

import shlex
import sys
import threading
import time
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any, Final, NoReturn

from trickle.errors import DefinitionError
from trickle.model.events import RefreshEnded, RefreshFailed, RefreshStarted
from trickle.show.html import card, count, counted, duration, grid, tag
from trickle.sql.split import split_script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from trickle.api import Trickle
    from trickle.engine.events import Events
    from trickle.handle import StreamTable

_PATIENCE: Final = 1.0
"""A refresh that ends sooner shows no progress."""
_PAUSE: Final = 0.5
_ROWS: Final = 50


class Rows:
    """The rows of a query as a cell shows them.

    Attributes:
        frame: The DataFrame.
    """

    def __init__(self, frame: DataFrame) -> None:
        """Keep the DataFrame; nothing is computed yet."""
        self.frame = frame

    def _repr_html_(self) -> str:
        found = self.frame.limit(_ROWS + 1).collect()
        rows = [["NULL" if value is None else value for value in row] for row in found[:_ROWS]]
        more = f"the first {count(_ROWS)} rows" if len(found) > _ROWS else counted(len(rows), "row")
        return card(more, grid(self.frame.columns, rows))

    def __repr__(self) -> str:
        """Show the columns."""
        return f"Rows({', '.join(self.frame.columns)})"


# -- progress


def shell() -> Any:
    """Return the shell of the notebook that this process is the kernel of; None elsewhere."""
    ipython = sys.modules.get("IPython")
    found = None if ipython is None else ipython.get_ipython()
    return found if hasattr(found, "kernel") else None


class Progress:
    """A line below the cell while refreshes run: which, how long, and how many tasks of Spark are done."""

    def __init__(self, tasks: Callable[[], tuple[int, int]]) -> None:
        """Show nothing yet.

        Args:
            tasks: Counts the tasks of the running Spark stages: those that are done, and all.
        """
        self._tasks = tasks
        self._running: dict[str, float] = {}
        self._lock = threading.Lock()
        self._shown: Any = None

    def listen(self, events: Events) -> None:
        """Follow the refreshes of a ``Trickle``."""
        events.on(RefreshStarted, lambda event: self.start(event.table))
        events.on(RefreshEnded, lambda event: self.end(event.table))
        events.on(RefreshFailed, lambda event: self.end(event.table))

    def start(self, table: str) -> None:
        """Take note of a refresh; the line appears below the cell that is running."""
        with self._lock:
            is_first = not self._running
            self._running[table] = time.monotonic()
            if is_first:
                threading.Thread(target=self._tick, name="trickle-progress", daemon=True).start()

    def end(self, table: str) -> None:
        """Forget a refresh; after the last one the line goes away."""
        with self._lock:
            self._running.pop(table, None)
            if not self._running and self._shown is not None:
                self._shown.update(_html(""))
                self._shown = None

    def _tick(self) -> None:
        time.sleep(_PATIENCE)
        while True:
            with self._lock:
                if not self._running:
                    return
                self._show(_html(self.line()))
            time.sleep(_PAUSE)

    def _show(self, html: Any) -> None:
        import IPython.display as ipython

        display: Any = ipython.display
        if self._shown is None:
            self._shown = display(html, display_id=True)
        else:
            self._shown.update(html)

    def line(self) -> str:
        """Return what is being done, as HTML."""
        now = time.monotonic()
        tables = ", ".join(f"{table} ({duration(now - since)})" for table, since in self._running.items())
        done, every = self._tasks()
        tasks = f"; Spark: {count(done)} of {count(every)} tasks" if every else ""
        return tag("div", f"Refreshing {tables}{tasks} …", style="opacity: 0.8; font-size: 13px;")


def _html(text: str) -> Any:
    import IPython.display as ipython

    html: Any = ipython.HTML
    return html(text)


def watch(trickle: Trickle) -> None:
    """Show the progress of refreshes below the cell that runs them; does nothing outside notebooks."""
    if shell() is None:
        return
    tracker = trickle.spark.sparkContext.statusTracker()

    def tasks() -> tuple[int, int]:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    Progress(tasks).listen(trickle.events)


# -- magics


class _Words(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise DefinitionError("BAD_OPTION", f"%%{self.prog}: {message}.", hint=self.format_usage().strip())


def _stream_table_words() -> _Words:
    words = _Words(
        prog="stream_table", add_help=False, usage="%%stream_table name [--schedule …] [--mode …] [--replace]"
    )
    words.add_argument("name")
    words.add_argument("--schedule", help="when it is refreshed, as 5m or 'on commit'")
    words.add_argument("--mode", default="auto", help="auto, differential or full")
    words.add_argument("--comment")
    words.add_argument("--replace", action="store_true", help="give a stream table of this name this query")
    return words


def stream_table(trickle: Trickle, line: str, cell: str) -> StreamTable:
    """Create a stream table from the query in a cell."""
    words = _stream_table_words()
    try:
        given = words.parse_args(shlex.split(line))
    except ValueError as error:  # a quotation without an end
        words.error(str(error).lower().rstrip("."))
    comment = {} if given.comment is None else {"comment": given.comment}
    query = cell.strip().rstrip(";")
    return trickle.create(given.name, query, mode=given.mode, schedule=given.schedule, replace=given.replace, **comment)


def run_sql(trickle: Trickle, text: str) -> Any:
    """Carry out the statements of a cell; return the answer of the last one."""
    from pyspark.sql import DataFrame

    answer: Any = None
    for part in split_script(text):
        answer = trickle.sql(part.placed)
    return Rows(answer) if isinstance(answer, DataFrame) else answer


def find_trickle(names: Mapping[str, Any]) -> Trickle:
    """Return the ``Trickle`` of a notebook: the variable ``t``, or the only other one.

    Raises:
        DefinitionError: ``NO_TRICKLE``, there are several, or none.
    """
    found = {name: value for name, value in names.items() if _is_trickle(value) and not name.startswith("_")}
    if "t" in found or len({id(value) for value in found.values()}) == 1:
        one: Trickle = found.get("t") or next(iter(found.values()))
        return one
    if found:
        text, hint = f"several variables are a Trickle: {', '.join(found)}.", "Call the one to use t."
    else:
        text, hint = "no variable is a Trickle.", "Start with: t = trickle.Trickle(trickle.local_session())."
    raise DefinitionError("NO_TRICKLE", text, hint=hint)


def _is_trickle(value: object) -> bool:
    return type(value).__module__ == "trickle.api" and type(value).__name__ == "Trickle"


def register(ip: Any) -> None:
    """Register the magics with a shell of IPython."""

    def stream_table_magic(line: str, cell: str) -> Any:
        return stream_table(find_trickle(ip.user_ns), line, cell)

    def trickle_magic(line: str, cell: str | None = None) -> Any:
        return run_sql(find_trickle(ip.user_ns), line if cell is None else f"{line}\n{cell}")

    ip.register_magic_function(stream_table_magic, "cell", "stream_table")
    ip.register_magic_function(trickle_magic, "line_cell", "trickle")
