"""Fills streaming tables: their flows take what is new since the last time, and end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from trickle.errors import SparkError
from trickle.model.names import quote, shown_part, sql_name
from trickle.project.resolve import read_schema
from trickle.sql.tokens import quote_string

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from trickle.project.elements import Dataset, Flow, Key
    from trickle.project.specs import Specs

_POLL_SECONDS: Final = 1
_DELTA: Final = "delta"


@dataclass(frozen=True, slots=True)
class Streams:
    """The streaming tables and sinks of a resolved project.

    Attributes:
        storage: Where checkpoints are kept.
    """

    specs: Specs
    storage: str

    def fill(self, show: Callable[[str], None] = lambda _: None) -> tuple[str, ...]:
        """Run all flows once, each after those that it reads; return the names of what was filled.

        Raises:
            DefinitionError: What is wrong with a flow.
            SparkError: A flow failed; what it committed before stays, and is not read again.
        """
        resolver = self.specs.resolver
        filled = []
        for key, found in resolver.done.items():
            if found.dataset.kind in ("streaming table", "sink"):
                name = ".".join(map(shown_part, key))
                show(f"Filling {name}")
                for flow in resolver.elements.flows_into(key):
                    self._run(key, name, found.dataset, flow)
                filled.append(name)
        return tuple(filled)

    def _run(self, key: Key, name: str, dataset: Dataset, flow: Flow) -> None:
        resolver = self.specs.resolver
        views = self.specs.views_of(resolver.done[key].reads)
        source = replace(dataset, place=flow.place, conf={**dataset.conf, **flow.conf})
        frame = self.specs.frame(source, flow.query, views)
        table_id = ""
        if dataset.kind == "streaming table":
            self._make(name, dataset, frame)
            table_id = self._table_id(name, dataset)
        # A table that was dropped and made again has another id, and is filled from the beginning.
        checkpoint = f"{self.storage}/checkpoints/{name}{table_id}/{flow.name}"
        writer: Any = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        try:
            if dataset.kind == "sink":
                query = writer.format(dataset.format).options(**dataset.sink_options).start()
            else:
                query = writer.format(dataset.format or _DELTA).toTable(sql_name(name))
            while not query.awaitTermination(_POLL_SECONDS):
                pass
        except PySparkException as error:
            said = next(iter(str(error).splitlines()), "")
            text = f"{flow.place}: the flow {flow.name!r} failed: {said}"
            hint = "What it committed before stays; mend the cause and refresh again."
            raise SparkError(error.getCondition() or "STREAM_FAILED", text, hint=hint) from error

    def _make(self, name: str, dataset: Dataset, frame: DataFrame) -> None:
        """Make a streaming table if it is not there."""
        spark = self.specs.resolver.spark
        if spark.catalog.tableExists(sql_name(name)):
            return
        schema = StructType([StructField(field.name, field.dataType) for field in frame.schema.fields])
        if dataset.schema is not None:
            schema = read_schema(dataset)
        columns = spark.createDataFrame([], schema)._jdf.schema().toDDL()
        words = dataset.words
        text = f"CREATE TABLE {sql_name(name)} ({columns}) USING {dataset.format or _DELTA}"
        if words.partition_by:
            text += f" PARTITIONED BY ({', '.join(map(quote, words.partition_by))})"
        if words.cluster_by:
            text += f" CLUSTER BY ({', '.join(map(quote, words.cluster_by))})"
        if words.comment is not None:
            text += f" COMMENT {quote_string(words.comment)}"
        if words.properties:
            pairs = (f"{quote_string(key)} = {quote_string(value)}" for key, value in words.properties.items())
            text += f" TBLPROPERTIES ({', '.join(pairs)})"
        spark.sql(text)

    def _table_id(self, name: str, dataset: Dataset) -> str:
        if (dataset.format or _DELTA) != _DELTA:
            return ""
        row = self.specs.resolver.spark.sql(f"DESCRIBE DETAIL {sql_name(name)}").select("id").first()
        return f"-{row[0]}" if row else ""
