"""A version of a Delta table as a plain scan of its files.

Delta finds a version's files by Spark jobs over its log, for each scan of each query. Here they come from the log as Python
has replayed it, and Spark is told their names: the same rows, and no job before the first task that reads them. Tables
whose files alone do not tell their rows (deletion vectors, mapped or partition columns) are left to Delta.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from trickle.model.options import DEFAULT, Options
from trickle.model.recent import Recent
from trickle.tables.arrow.rows import with_keys
from trickle.tables.arrow.types import arrow_fields
from trickle.tables.cache.lookups import LookupCache
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError, is_readable
from trickle.tables.delta.files import FileList
from trickle.tables.delta.roll_forward import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.log import DeltaLogFiles
    from trickle.tables.delta.roll_forward import ChangeOf


class PlainFiles:
    """The files of a table at the versions asked for lately.

    Several threads may ask. What is remembered carries the log's generation as it was when the question came, so that an
    answer about a table that was made anew meanwhile is never given again.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLogFiles,
        columns: ColumnCache | None = None,
        change_of: ChangeOf | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Bind to a table's log; reads nothing yet.

        Columns looked into again and again are kept in ``columns``. With ``change_of`` those of one version serve later
        ones too.
        """
        self._spark = spark
        self._log = log
        self._options = options
        self._files = FileList(log, options)
        self._newest = -1
        self._lists: Recent[tuple[int, int], list[FileAction] | None] = Recent(options.snapshots_kept)
        self._finder = Finder(columns, options)
        self._change_of = None if columns is None else change_of
        self._base: Base | None = None
        self._found, self._looked = LookupCache(options), LookupCache(options)
        self._domains: Recent[tuple[int, int, str], int | None] = Recent(options.statistics_kept)

    def frame(self, version: int) -> DataFrame | None:
        """Give the rows at a version, None if only Delta can."""
        paths = self._paths(self._plain_files(version))
        if not paths:
            return None
        schema = StructType.fromJson(json.loads(self._log.metadata(version)["schemaString"]))
        return self._spark.read.schema(schema).parquet(*(path.as_uri() for path in paths))

    def _paths(self, files: Iterable[FileAction]) -> list[Path]:
        return [path for file in files if (path := self._log.path_of(file.path)) is not None]

    def _plain_files(self, version: int) -> list[FileAction]:
        """Give the files at a version; none if they alone do not tell its rows."""
        metadata = self._log.metadata(version)
        if not self._log.is_plain or metadata.get("partitionColumns"):
            return []
        if not is_readable(self._log.protocol(version), metadata):
            return []
        files = self._at(version)
        # Spark looks at each file it is told; of many, Delta knows more without looking.
        if not files or len(files) > self._options.lookup_files:
            return []
        is_plain = len(self._paths(files)) == len(files) and not any(file.vector for file in files)
        return files if is_plain else []

    def find(self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Give the rows at a version that have some keys, without any all of a small table's.

        None if they may be many, or only Spark can find them. What was found lately is not searched for again: the same
        keys are asked for by several terms of a change, and by other stream tables.
        """
        few = self._options.whole_rows
        if keys and (self.count(version) or few + 1) <= few:
            every = {*columns, *keys}
            whole = self.find(version, sorted(every), {})
            if whole is not None:
                return with_keys(whole, keys).select(list(columns))
        generation = self._log.generation
        place = generation, version, *columns
        return self._found.find(place, keys, partial(self._search, generation, version, columns))

    def _search(
        self, generation: int, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]
    ) -> pa.Table | None:
        files = self._plain_files(version)
        fields = self._fields(version, columns)
        most = self._options.lookup_rows if keys else self._options.whole_rows_asked
        if not files or fields is None or self._foreseen(version, keys) > most:
            return None
        size = sum(file.size for file in files) / (self.count(version) or 1)
        if self._foreseen(version, keys) * size > self._options.lookup_bytes:
            return None
        at = Base(generation, version, files)
        found = self._rolled_forward(at, columns, keys) if keys else None
        return self._rows(at, fields, keys) if found is None else found

    def _rows(self, at: Base, fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Look into the files of a version, but for keys that they were looked into for lately."""
        place = at.generation, at.version, *(field.name for field in fields)
        return self._looked.find(place, keys, partial(self._look_into, at.files, fields))

    def _look_into(
        self, files: Sequence[FileAction], fields: Sequence[pa.Field], keys: Mapping[str, pa.Array]
    ) -> pa.Table | None:
        near = [file for file in files if all(_may_hold(file, name, values) for name, values in keys.items())]
        if sum(file.size for file in near) > self._options.lookup_file_bytes:
            return None
        try:
            return self._finder.find(self._paths(near), fields, keys)
        except NeedsSparkError:
            return None

    def _rolled_forward(self, at: Base, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Find rows in the files of a version looked into before; None if this one's own must be."""
        base, every, version = self._base, tuple(dict.fromkeys((*columns, *keys))), at.version
        if self._change_of is None or (base and base.generation == at.generation and version <= base.version):
            return None
        if base is None or base.generation != at.generation:
            self._base = at
            return None
        if base.is_part_of(at.files):
            return None
        base = base.extended(version, every, self.count(version) or 0, self._change_of, self._options)
        fields = self._fields(version, every)
        found = self._rows(base, fields, keys) if base is not None and fields is not None else None
        found = base.roll_forward(found, version, keys) if base is not None and found is not None else None
        self._base = base if found is not None else at
        return None if found is None else found.select(list(columns))

    def _fields(self, version: int, columns: Sequence[str]) -> list[pa.Field] | None:
        known = arrow_fields(self._log.metadata(version))
        fields = [field for name in columns if (field := known.get(name)) is not None]
        return fields if len(fields) == len(columns) else None

    def _foreseen(self, version: int, keys: Mapping[str, pa.Array]) -> float:
        """Give how many rows some keys may have, as far as the log tells: a value like any other."""
        rows = self.count(version) or 0
        domains = ((len(values), self.domain(version, name)) for name, values in keys.items())
        return rows * min((some / all_ for some, all_ in domains if all_), default=0 if keys else 1)

    def count(self, version: int) -> int | None:
        """Count the rows at a version, None if the log does not tell."""
        counts = [file.records for file in self._at(version) or ()]
        return None if None in counts else sum(c for c in counts if c is not None)

    def domain(self, version: int, column: str) -> int | None:
        """Give how many whole numbers lie between a column's least and greatest value; None if the log does not tell."""
        key = self._log.generation, version, column
        return self._domains.get(key, lambda: _domain(self._at(version) or (), column))

    def _at(self, version: int) -> list[FileAction] | None:
        return self._lists.get((self._log.generation, version), lambda: self._list(version))

    def _list(self, version: int) -> list[FileAction] | None:
        with self._log.lock:
            files = FileList(self._log, self._options) if version < self._newest else self._files
            self._newest = max(version, self._newest)
            return files.at(version)


def _may_hold(file: FileAction, column: str, values: pa.Array) -> bool:
    """Tell by the statistics in the log whether a file may have one of some whole numbers in a column."""
    low, high = _bounds(file, column)
    if low is None or high is None or not pa.types.is_integer(values.type):
        return True
    return bool(pc.any(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))).as_py())


def _bounds(file: FileAction, column: str) -> tuple[int, int] | tuple[None, None]:
    text = file.body.get("stats")
    stats = json.loads(text) if isinstance(text, str) and text else {}
    low, high = (stats.get(side, {}).get(column) for side in ("minValues", "maxValues"))
    return (low, high) if isinstance(low, int) and isinstance(high, int) else (None, None)


def _domain(files: Iterable[FileAction], column: str) -> int | None:
    bounds = [_bounds(file, column) for file in files]
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    return max(highs) - min(lows) + 1 if bounds and len(lows) == len(bounds) else None
