"""The console: what is being done, and since when."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

# Where there is no terminal to measure (a pipe, a log), wide enough for the tables.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Show what is being done while it lasts."""
    with console.status(what):
        yield
