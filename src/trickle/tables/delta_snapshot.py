"""A version of a Delta table as a plain scan of its files.

Delta finds a version's files by Spark jobs over its log, for each scan of each query. Here they come from the log as Python
has replayed it, and Spark is told their names: the same rows, and no job before the first task that reads them. Tables
whose files alone do not tell their rows (deletion vectors, mapped or partition columns) are left to Delta.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from trickle.tables.delta_files import FileList
from trickle.tables.driver_fit import is_readable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta_log import DeltaLogFiles, FileAction

_MOST_FILES: Final = 1000
"""Spark looks at each file it is told; of many, Delta knows more without looking."""


_UNASKED: Final = -1


class PlainFiles:
    """The files of a table at the versions asked for lately."""

    def __init__(self, spark: SparkSession, log: DeltaLogFiles) -> None:
        """Bind to a table's log; reads nothing yet."""
        self._spark = spark
        self._log = log
        self._files = FileList(log)
        self._newest = -1
        self._domains: dict[tuple[int, str], int | None] = {}

    def frame(self, version: int) -> DataFrame | None:
        """Give the rows at a version, None if only Delta can."""
        paths = self._paths(version)
        if not paths:
            return None
        schema = StructType.fromJson(json.loads(self._log.metadata(version)["schemaString"]))
        return self._spark.read.schema(schema).parquet(*(path.as_uri() for path in paths))

    def _paths(self, version: int) -> list[Path]:
        """Give the places of the files at a version; none if they alone do not tell its rows."""
        metadata = self._log.metadata(version)
        if not self._log.is_plain or metadata.get("partitionColumns"):
            return []
        if not is_readable(self._log.protocol(version), metadata):
            return []
        files = self._at(version)
        if not files or len(files) > _MOST_FILES or any(file.vector for file in files):
            return []
        paths = [self._log.path_of(file.path) for file in files]
        return [path for path in paths if path is not None]

    def count(self, version: int) -> int | None:
        """Count the rows at a version, None if the log does not tell."""
        counts = [file.records for file in self._at(version) or ()]
        return None if None in counts else sum(c for c in counts if c is not None)

    def domain(self, version: int, column: str) -> int | None:
        """Give how many whole numbers lie between a column's least and greatest value; None if the log does not tell."""
        known = self._domains.get((version, column), _UNASKED)
        if known is not _UNASKED:
            return known
        self._domains = {k: v for k, v in self._domains.items() if k[0] >= version - 1}
        self._domains[version, column] = found = _domain(self._at(version) or (), column)
        return found

    def _at(self, version: int) -> list[FileAction] | None:
        if version < self._newest:
            return FileList(self._log).at(version)
        self._newest = version
        return self._files.at(version)


def _domain(files: Iterable[FileAction], column: str) -> int | None:
    lows, highs = [], []
    for file in files:
        text = file.body.get("stats")
        stats = json.loads(text) if isinstance(text, str) and text else {}
        low, high = (stats.get(side, {}).get(column) for side in ("minValues", "maxValues"))
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        lows.append(low)
        highs.append(high)
    return max(highs) - min(lows) + 1 if lows else None
