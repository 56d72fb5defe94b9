"""The tables of a stream table's stages: Delta tables in a hidden folder inside its own.

Spark and VACUUM pass over folders whose names begin with ``_``; dropping the stream table drops them with it. Their versions
are of use to nobody but the next refresh, so files of older ones are deleted as soon as it has gone by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.tables.delta_create import table_properties
from trickle.tables.delta_jvm import DeltaHandle
from trickle.tables.delta_lake import DeltaSource
from trickle.tables.delta_log import local_path
from trickle.tables.delta_target import DeltaTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.contract import Lane

FOLDER: Final = "_trickle"


class DeltaStages:
    """The stages of the stream table at a location."""

    def __init__(
        self, spark: SparkSession, name: str, path: str, lane: Lane = "auto", options: Options = DEFAULT
    ) -> None:
        """Bind to the stream table ``name`` at ``path``; touches nothing yet."""
        self.spark = spark
        self.name = name
        self.path = path
        self.lane = lane
        self.options = options
        self._known: dict[str, tuple[DeltaTarget, DeltaSource]] = {}
        self._cleaned: dict[str, int] = {}

    def open(self, name: str, like: Callable[[], DataFrame]) -> tuple[DeltaTarget, DeltaSource]:
        """Give a stage's table, to write and to read; made empty with the columns of ``like()`` if there is none."""
        known = self._known.get(name)
        place = self._place(name)
        is_there = self._exists(place)
        if known is None or not is_there:
            if not is_there:
                DeltaHandle(self.spark, place).delete_folder()  # Delta may remember one that was deleted
                _make(place, like(), self._properties())
            known = (
                DeltaTarget(self.spark, self.name, place, lane=self.lane, options=self.options),
                DeltaSource(self.spark, name, place, lane=self.lane, options=self.options),
            )
            self._known[name] = known
        return known

    def forget(self, name: str) -> None:
        """Delete a stage's table."""
        self._known.pop(name, None)
        DeltaHandle(self.spark, self._place(name)).delete_folder()

    def clean(self, name: str, version: int) -> None:
        """Delete the files that only versions before this one need; on storage that is not local they stay."""
        folder = local_path(self._place(name))
        if folder is None or name not in self._known:
            return
        log = self._known[name][1].log
        try:
            commits = log.commits(self._cleaned.get(name, max(version - self.options.state_look_back, -1)), version)
        except SourceError:
            return
        for commit in commits:
            for file in (*commit.removes, *commit.feed):
                (folder / file.path).unlink(missing_ok=True)
        self._cleaned[name] = version

    def _exists(self, place: str) -> bool:
        folder = local_path(place)
        if folder is not None:
            return (folder / "_delta_log").is_dir()
        return DeltaHandle(self.spark, place).head()[0] >= 0

    def _properties(self) -> Mapping[str, str]:
        return {**table_properties(self.options), "delta.logRetentionDuration": "interval 1 days"}

    def _place(self, name: str) -> str:
        return f"{self.path}/{FOLDER}/{name.strip('@')}"


def _make(place: str, like: DataFrame, properties: Mapping[str, str]) -> None:
    if local_path(place) is not None:
        try:
            schema = Schema.from_json(_nullable(like).schema.json())
            DeltaTable.create(place, schema, mode="error", configuration=dict(properties))
        except DeltaError:
            pass  # a type that delta-rs does not know
        else:
            return
    writer = _nullable(like).limit(0).write.format("delta")
    for key, value in properties.items():
        writer = writer.option(key, value)
    writer.save(place)


def _nullable(frame: DataFrame) -> DataFrame:
    """Give the columns as nullable: a state over other sources may have NULLs where this one has none."""
    from pyspark.sql.types import StructField, StructType

    fields = [StructField(f.name, f.dataType) for f in frame.schema.fields]
    return frame.sparkSession.createDataFrame([], StructType(fields))
