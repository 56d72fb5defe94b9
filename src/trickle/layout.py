"""How a warehouse folder is laid out; read without Spark.

<warehouse>/<table>/_delta_log             table of the database `default`
<warehouse>/<db>.db/<table>/_delta_log     table of the database `<db>`
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT: Final = "default"

#: The names Spark's session catalog admits.
_NAME: Final = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a folder holds: for each database the folder of each table."""

    databases: dict[str, Path]
    tables: dict[tuple[str, str], Path]


def read_layout(folder: Path) -> Layout:
    """List the databases and Delta tables of a warehouse folder."""
    databases: dict[str, Path] = {DEFAULT: folder}
    for entry in _folders(folder):
        if entry.name.endswith(".db") and _NAME.fullmatch(entry.name[:-3]):
            databases.setdefault(entry.name[:-3].lower(), Path(entry.path))
    tables: dict[tuple[str, str], Path] = {}
    for database, place in databases.items():
        for entry in _folders(place):
            # Spark writes names in lower case; a folder of another tool may not. Lower case comes last, so it wins.
            if _NAME.fullmatch(entry.name) and os.path.isdir(f"{entry.path}/_delta_log"):  # noqa: PTH112 (5 µs, not 15)
                tables[database, entry.name.lower()] = Path(entry.path)
    return Layout(databases, tables)


def _folders(place: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            yield from sorted((entry for entry in entries if entry.is_dir()), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
