"""A Delta table as this process knows it: its log, files, metadata and statistics, shared by all who read and write it.

Whoever opens the same location with the same session and options gets the same object, so that a commit is parsed once. It
lives as long as one of them does.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from pyspark.sql.types import StructType

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.delta.driver.fit import is_mapped, is_readable, is_widened
from trickle.tables.delta.driver.masking import read_masks
from trickle.tables.delta.files import FileList, domain_of
from trickle.tables.delta.jvm import DeltaHandle
from trickle.tables.delta.layout import Layout, layout_of
from trickle.tables.delta.log import DeltaLogFiles
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.storage.schemes import Folder

    Key = tuple[int, str, Options]

_SHARED: Final[WeakValueDictionary[Key, DeltaTable]] = WeakValueDictionary()
_SHARED_LOCK: Final = Lock()


def open_table(spark: SparkSession, location: str, options: Options = DEFAULT, name: str = "") -> DeltaTable:
    """Return the table at a location, which messages call ``name`` unless it has a name already; touches nothing yet."""
    with _SHARED_LOCK:
        key = _key(spark, location, options)
        table = _SHARED.get(key)
        if table is None:
            table = _SHARED[key] = DeltaTable(DeltaHandle(spark, location), options)
        table.log.take_name(name)
        return table


def forget_table(spark: SparkSession, location: str, options: Options = DEFAULT) -> None:
    """Make the next ``open_table`` of a location start fresh: its table was deleted."""
    with _SHARED_LOCK:
        _SHARED.pop(_key(spark, location, options), None)


def _key(spark: SparkSession, location: str, options: Options) -> Key:
    folder = folder_at(location)
    return id(spark), location if folder is None else folder.address, options  # a table holds its session: the id stays


class DeltaTable:
    """A table by its location. Thread-safe: what changes does so under the log's lock.

    What is remembered carries the log's generation as it was when the question came, so that an answer about a table that was
    created again meanwhile is never given again.
    """

    def __init__(self, handle: DeltaHandle, options: Options = DEFAULT, name: str = "") -> None:
        """Bind to a table; reads nothing yet. For a table that others share, see ``open_table``."""
        self.handle = handle
        self.location = handle.location
        self.options = options
        self.log = DeltaLogFiles(handle, options, name)
        self._newest_files = FileList(self.log, options)
        self._newest = -1
        self._files: Cache[tuple[int, int], list[FileAction] | None] = Cache("file lists", options.snapshots_kept)
        self._domains: Cache[tuple[int, int, str], int | None] = Cache("statistics", options.statistics_kept)
        self._layouts: Cache[tuple[int, int], Layout] = Cache("layouts", options.snapshots_kept)
        self._masks: Cache[tuple[str, str], Places] = Cache(
            "deletion vectors",
            options.file_facts_kept,
            max_bytes=options.lookup_cache_bytes,
            bytes_of=lambda places: int(places.nbytes),
        )

    @property
    def folder(self) -> Folder | None:
        """The table's folder, None while only Spark can reach it."""
        return self.log.folder

    # -- files

    def files(self, version: int) -> list[FileAction] | None:
        """List the files at a version, None if the log cannot say."""
        return self._files.get((self.log.generation, version), lambda: self._replay(version))

    def _replay(self, version: int) -> list[FileAction] | None:
        with self.log.lock:
            files = FileList(self.log, self.options) if version < self._newest else self._newest_files
            self._newest = max(version, self._newest)
            return files.at(version)

    def learn_files(self, version: int, files: Sequence[FileAction]) -> None:
        """Take the files at the newest version from Delta, if the log alone does not determine them."""
        with self.log.lock:
            self._newest_files.learn(version, files)
            self._newest = version
            self._files.put((self.log.generation, version), list(files))

    def plain_files(self, version: int) -> list[FileAction]:
        """List the files at a version; none if they alone do not tell its rows, or if they are many.

        Deletion vectors, mapped and partition columns are told by the log.
        """
        metadata = self.log.metadata(version)
        if metadata.get("partitionColumns") or is_mapped(metadata) or is_widened(self.log.protocol(version)):
            return []
        files = self.known_files(version)
        # Spark looks at each file it is told; of many, Delta knows more without looking.
        is_plain = len(files) <= self.options.scanned_files and not any(file.vector for file in files)
        return files if is_plain else []

    def known_files(self, version: int) -> list[FileAction]:
        """List the files at a version that with the log tell its rows; none if only Delta knows them or can read them."""
        if not self.log.is_plain or not is_readable(self.log.protocol(version)):
            return []
        files = self.files(version) or []
        return files if len(self.addresses(files)) == len(files) else []

    def masks(self, files: Sequence[FileAction]) -> dict[tuple[str, str], Places]:
        """Return the places of the rows that deletion vectors mask, by the keys of the files that have one.

        Raises:
            NeedsSparkError: Only Delta can read one.
        """
        masked = [file for file in files if file.vector]
        if not masked or self.folder is None:
            return {}
        known = {file.key: places for file in masked if (places := self._masks.known(file.key)) is not None}
        found = read_masks(masked, known, self.folder, self.log.address_of)
        for key, places in found.items():
            if key not in known:
                self._masks.put(key, places)
        return found

    def addresses(self, files: Iterable[FileAction]) -> list[str]:
        """Return the addresses of files, of those that are on the table's storage."""
        return [address for file in files if (address := self.log.address_of(file.path)) is not None]

    # -- rows

    def frame(self, version: int) -> DataFrame | None:
        """Return the rows at a version as a plain scan of its files, None if only Delta can.

        Delta finds a version's files by Spark jobs over its log, for each scan of each query. Here Spark is told their names:
        the same rows, and no job before the first task that reads them.
        """
        addresses = self.addresses(self.plain_files(version))
        if not addresses or self.folder is None:
            return None
        schema = StructType.fromJson(json.loads(self.log.metadata(version)["schemaString"]))
        return self.handle.spark.read.schema(schema).parquet(*map(self.folder.storage.uri, addresses))

    def layout(self, version: int) -> Layout:
        """Return how files hold the columns at a version."""
        return self._layouts.get((self.log.generation, version), lambda: layout_of(self.log.metadata(version)))

    def count(self, version: int) -> int | None:
        """Count the rows at a version, None if the log does not say."""
        files = self.files(version)
        if files is None or any(file.records is None for file in files):
            return None
        return sum((file.records or 0) - file.masked for file in files)

    def domain(self, version: int, column: str) -> int | None:
        """Return how many whole numbers lie between a column's minimum and maximum; None if the log does not say."""
        key = self.log.generation, version, column
        name = self.layout(version).names.get(column, column)
        return self._domains.get(key, lambda: domain_of(self.files(version) or (), name))
