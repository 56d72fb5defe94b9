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
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta_log import DeltaLogFiles, FileAction

_MOST_FILES: Final = 1000
"""Spark looks at each file it is told; of many, Delta knows more without looking."""


class PlainFiles:
    """The files of a table at the versions asked for lately."""

    def __init__(self, spark: SparkSession, log: DeltaLogFiles) -> None:
        """Bind to a table's log; reads nothing yet."""
        self._spark = spark
        self._log = log
        self._files = FileList(log)
        self._newest = -1

    def frame(self, version: int) -> DataFrame | None:
        """Give the rows at a version, None if only Delta can."""
        metadata = self._log.metadata(version)
        if not self._log.is_plain or metadata.get("partitionColumns"):
            return None
        if not is_readable(self._log.protocol(version), metadata):
            return None
        files = self._at(version)
        if not files or len(files) > _MOST_FILES or any(file.vector for file in files):
            return None
        paths = [self._log.path_of(file.path) for file in files]
        schema = StructType.fromJson(json.loads(metadata["schemaString"]))
        return self._spark.read.schema(schema).parquet(*(path.as_uri() for path in paths if path is not None))

    def _at(self, version: int) -> list[FileAction] | None:
        if version < self._newest:
            return FileList(self._log).at(version)
        self._newest = version
        return self._files.at(version)
