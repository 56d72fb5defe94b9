"""The table formats that Trickle knows: one row for each, and the one that results are written in.

A format is a package that passes the contract tests (``tests/contract``), and a row here. Nothing above ``tables`` names one,
and nothing here loads Spark: commands that only look start at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trickle.tables.delta import DELTA

if TYPE_CHECKING:
    from trickle.tables.format_facts import FormatFacts
    from trickle.tables.logs import TableLog

FORMATS: Final[Mapping[str, FormatFacts]] = MappingProxyType({"delta": DELTA})
"""The formats by name, in the order in which a leaf of a query is shown to them."""

RESULT_FORMAT: Final[FormatFacts] = FORMATS["delta"]
"""The format of stream tables and their state tables."""


def format_errors() -> tuple[type[Exception], ...]:
    """Return what the libraries that read and write the formats raise."""
    return tuple(error for facts in FORMATS.values() for error in facts.errors())


def path_in(name: str) -> tuple[FormatFacts, str] | None:
    """Return the format and the path of a table that is named by its path, None for any other name."""
    for facts in FORMATS.values():
        path = facts.path_in(name)
        if path is not None:
            return facts, path
    return None


def open_log(location: str) -> TableLog:
    """Return the log of the stream table at a location (a path or URI); reads nothing yet."""
    return RESULT_FORMAT.open_log(location)
