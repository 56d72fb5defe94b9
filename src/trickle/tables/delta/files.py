"""Which files a Delta table consists of, kept up to date from its commits, and what statistics tell of them.

Delta answers this with a Spark job over its state. A stream table's own log is short and mostly ours, so replaying
it in Python is quicker; where a log is long or no longer whole, Delta is asked once and its commits followed from there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import HISTORY_EXPIRED
from trickle.tables.arrow.types import arrow_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.log import DeltaLogFiles


class FileList:
    """The files of a table at a version.

    Law    files(v) = files(v - 1) - removed(v) + added(v), a file being a path with its deletion vector

    Thread-safe: it changes under the log's lock.
    """

    def __init__(self, log: DeltaLogFiles, options: Options = DEFAULT) -> None:
        """Follow a log from its beginning; read nothing yet."""
        self._log = log
        self._options = options
        self._generation = -1
        self._version = -1
        self._files: dict[tuple[str, str], FileAction] = {}

    def at(self, version: int) -> list[FileAction] | None:
        """Return the files at a version that is not older than the last one asked for; None if the log cannot say."""
        with self._log.lock:
            if self._generation != self._log.generation or version < self._version:
                self._generation, self._version, self._files = self._log.generation, -1, {}
            if version - self._version > self._options.log_replay:
                return None
            try:
                commits = self._log.commits(self._version, version)
            except SourceError as error:
                if error.code != HISTORY_EXPIRED:
                    raise
                return None
            for commit in commits:
                for file in commit.removes:
                    self._files.pop(file.key, None)
                for file in commit.adds:
                    self._files[file.key] = file
            self._version = version
            return list(self._files.values())

    def learn(self, version: int, files: Sequence[FileAction]) -> None:
        """Take the files at a version from Delta, if the log alone does not determine them."""
        with self._log.lock:
            self._generation, self._version = self._log.generation, version
            self._files = {file.key: file for file in files}


def may_hold(file: FileAction, column: str, values: pa.Array) -> bool:
    """Determine by the statistics in the log whether a file may have one of some whole numbers in a column."""
    low, high = _bounds(file, column)
    if low is None or high is None or not arrow_facts(values.type).is_bounded:
        return True
    return bool(pc.any(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))).as_py())


def _bounds(file: FileAction, column: str) -> tuple[int, int] | tuple[None, None]:
    text = file.body.get("stats")
    stats = json.loads(text) if isinstance(text, str) and text else {}
    low, high = (stats.get(side, {}).get(column) for side in ("minValues", "maxValues"))
    return (low, high) if isinstance(low, int) and isinstance(high, int) else (None, None)


def domain_of(files: Iterable[FileAction], column: str) -> int | None:
    """Return how many whole numbers lie between the minimum and the maximum of a column; None if it is not known."""
    bounds = [_bounds(file, column) for file in files]
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    return max(highs) - min(lows) + 1 if bounds and len(lows) == len(bounds) else None
