"""The state tables of a stream table: Delta tables in a hidden folder inside its own.

Spark and VACUUM pass over folders whose names begin with ``_``; dropping the stream table drops them with it. Their versions
are of use to nobody but the next refresh, so files of older ones are deleted as soon as it has gone by. Whoever still computes
from one of those has been overtaken twice and could not commit: that its files are gone is a conflict like any other.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from deltalake import DeltaTable as DeltaRsTable
from deltalake import Schema
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.tables.delta import LOG_FOLDER, STATE_FOLDER
from trickle.tables.delta.changes import paths_with_vectors
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.tables.delta.create import table_properties
from trickle.tables.delta.driver.housekeeping import commit_first
from trickle.tables.delta.driver.write import now_ms
from trickle.tables.delta.jvm import DeltaHandle
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.table import DeltaTable, forget_table
from trickle.tables.delta.target import DeltaTarget
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.cache.columns import ColumnCache

_GENERATION: Final = re.compile(r"g\d+")


class DeltaStateTables:
    """The state tables of the stream table at a location."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        path: str,
        *,
        generation: int = 0,
        driver_io: bool = True,
        columns: ColumnCache | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Bind to the stream table ``name`` at ``path``; touches nothing yet."""
        self.spark = spark
        self.name = name
        self.path = path
        self._generation = generation
        self._driver_io = driver_io
        self._columns = columns
        self.options = options
        self._known: dict[str, tuple[DeltaTarget, DeltaSource]] = {}
        self._cleaned: dict[str, int] = {}

    def get(self, name: str) -> tuple[DeltaTarget, DeltaSource] | None:
        """Return a state table, to write and to read; None if there is none."""
        if (known := self._known.get(name)) is not None and known[1].log.is_there():
            return known
        return self._handles(name) if self._exists(self._place(name)) else None

    def location(self, name: str) -> str | None:
        """Return the place of a state table, None if there is none."""
        place = self._place(name)
        return place if self._exists(place) else None

    def _handles(self, name: str) -> tuple[DeltaTarget, DeltaSource]:
        known = self._known.get(name)
        if known is None:
            place = self._place(name)
            target = DeltaTarget(
                self.spark,
                self.name,
                place,
                driver_io=self._driver_io,
                columns=self._columns,
                options=self.options,
            )
            made = target, DeltaSource(self.spark, name, place, driver_io=self._driver_io, options=self.options)
            known = self._known.setdefault(name, made)
        return known

    def open(self, name: str, like: Callable[[], DataFrame]) -> tuple[DeltaTarget, DeltaSource]:
        """Return a state table, to write and to read; made empty with the columns of ``like()`` if there is none."""
        found = self.get(name)
        if found is not None:
            return found
        place = self._place(name)
        self._delete(place)  # Delta may have cached one that was deleted
        self._make(place, like())
        self._known.pop(name, None)
        return self._handles(name)

    def forget(self, name: str) -> None:
        """Delete a state table."""
        self._known.pop(name, None)
        self._cleaned.pop(name, None)
        self._delete(self._place(name))

    def damage(self, name: str, like: Callable[[], DataFrame]) -> str | None:
        """Say in words why a state table cannot be used: its log, its columns, its files."""
        # Do not trust caches: its files may have changed since.
        table = DeltaTable(DeltaHandle(self.spark, self._place(name)), self.options, self.name)
        try:
            version = table.log.head()
            schema = StructType.fromJson(json.loads(table.log.metadata(version)["schemaString"]))
            paths = self._listed(table, version)
            gone = table.log.missing(paths_with_vectors(table.files(version) or ()) - set(paths))
        except SourceError as error:
            return error.message
        wanted = _nullable(like().schema)
        if schema.simpleString() != wanted.simpleString():
            return f"it has the columns {schema.simpleString()}, not {wanted.simpleString()}"
        if gone:
            return f"{gone[0]} is gone"
        for path in paths:
            address = table.log.address_of(path)
            if table.folder is None or address is None:
                return None
            try:
                pq.read_metadata(table.folder.storage.readable(address))
            except (OSError, ValueError) as error:  # pyarrow's own errors are such
                return f"{path} cannot be read: {error}"
        return None

    def _listed(self, table: DeltaTable, version: int) -> list[str]:
        """Name the files of a state table at a version; a log that is long, or no longer has its beginning, Delta reads."""
        files = table.files(version)
        if files is not None:
            return [file.path for file in files]
        with table.log.errors_named():
            table.handle.forget()
            found = table.handle.frame(table.handle.snapshot_at(version).allFiles().toDF())
            return [str(row[0]) for row in found.select("path").collect()]

    def _delete(self, place: str) -> None:
        """Delete a state table's folder, and anything that blocks a new one."""
        folder = folder_at(place)
        if folder is not None:
            for address in (folder.parent, folder.address):
                folder.storage.clear(address)
        CHECKPOINTS.finish(place)
        DeltaHandle(self.spark, place).delete_folder()
        forget_table(self.spark, place, self.options)

    def clean(self, name: str, version: int) -> None:
        """Delete the files that only versions before this one need; on a storage that the driver does not know they stay."""
        if name not in self._known or (folder := folder_at(self._place(name))) is None:
            return
        table = self._known[name][1].table
        try:
            since = self._cleaned.get(name, max(version - self.options.state_look_back, -1))
            commits, files = table.log.commits(since, version), table.files(version)
        except SourceError:
            return
        if files is None:
            return
        # A file that got another deletion vector was removed and added again; files share the files of their vectors.
        paths = paths_with_vectors(file for commit in commits for file in (*commit.removes, *commit.feed))
        gone = [folder / path for path in paths - paths_with_vectors(files)]
        folder.storage.later(lambda: folder.storage.delete(*gone))
        self._cleaned[name] = version

    def forget_other_generations(self) -> None:
        """Delete the state tables of queries that this one replaced; on a storage that the driver does not know they stay."""
        folder = folder_at(f"{self.path}/{STATE_FOLDER}")
        if folder is None or not folder.storage.is_folder(folder.address):
            return
        own = _subfolder(self._generation).rstrip("/")
        for entry in folder.storage.names(folder.address):
            is_own = entry == own if own else not _GENERATION.fullmatch(entry)
            if not is_own:
                DeltaHandle(self.spark, f"{self.path}/{STATE_FOLDER}/{entry}").delete_folder()

    def _exists(self, place: str) -> bool:
        folder = folder_at(place)
        if folder is not None:
            return folder.storage.is_folder(folder / LOG_FOLDER)
        return DeltaHandle(self.spark, place).head()[0] >= 0

    def _properties(self) -> Mapping[str, str]:
        # Delta's writer refuses a log that does not reach back as far as deleted files do.
        short = dict.fromkeys(("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"), "interval 1 days")
        return {**table_properties(self.options), **short}

    def _place(self, name: str) -> str:
        return f"{self.path}/{STATE_FOLDER}/{_subfolder(self._generation)}{name.strip('@')}"

    def _make(self, place: str, like: DataFrame) -> None:
        schema = _nullable(like.schema)
        try:
            if not (_make_in_driver(place, schema, self._properties()) or self._put_first(place, schema)):
                writer = self.spark.createDataFrame([], schema).write.format("delta")
                for key, value in self._properties().items():
                    writer = writer.option(key, value)
                writer.save(place)
        except PySparkException:
            if not self._exists(place):  # else another refresh made it first
                raise

    def _put_first(self, place: str, schema: StructType) -> bool:
        """Make an empty table by a commit with a condition; False where Delta's own has one, or only Delta can."""
        folder = folder_at(place)
        if folder is None or not folder.storage.overwrites_late or not self._driver_io:
            return False
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.json(),
            "partitionColumns": [],
            "configuration": dict(self._properties()),
            "createdTime": now_ms(),
        }
        return commit_first(folder, DeltaHandle(self.spark, place).protocol_for(metadata), metadata)


def _subfolder(generation: int) -> str:
    """Return the folder of one query's state tables: a query that replaces another builds its own beside them."""
    return f"g{generation}/" if generation else ""


def _make_in_driver(place: str, schema: StructType, properties: Mapping[str, str]) -> bool:
    """Make an empty table, False if delta-rs cannot: it does not know a type, or the bytes are not on this machine."""
    folder = folder_at(place)
    if folder is None or folder.storage.path(folder.address) is None:
        return False
    try:
        DeltaRsTable.create(place, Schema.from_json(schema.json()), mode="error", configuration=dict(properties))
    except (DeltaError, ValueError):
        return False
    return True


def _nullable(schema: StructType) -> StructType:
    """Return the columns as nullable: a state over other sources may have NULLs where this one has none."""
    return StructType([StructField(f.name, f.dataType) for f in schema.fields])
