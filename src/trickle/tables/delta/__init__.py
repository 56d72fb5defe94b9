"""Delta Lake: its log, sources, targets and state tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.tables.format_facts import FormatFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.model.options import Options
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.delta.format import DeltaFormat
    from trickle.tables.delta.table_log import DeltaTableLog


def _make(spark: SparkSession, options: Options, columns: ColumnCache | None) -> DeltaFormat:
    from trickle.tables.delta.format import DeltaFormat

    return DeltaFormat(spark, options, columns)


def _open_log(location: str) -> DeltaTableLog:
    from trickle.tables.delta.table_log import open_delta_log

    return open_delta_log(location)


def _errors() -> tuple[type[Exception], ...]:
    from deltalake.exceptions import DeltaError

    return (DeltaError,)


FEED_COLUMNS: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that the change feed adds to those of a table."""

LOG_FOLDER: Final = "_delta_log"
"""The folder of a table's log in that of the table."""

STATE_FOLDER: Final = "_trickle"
"""The folder of the state tables in that of a stream table, which Spark and VACUUM ignore."""

DELTA: Final = FormatFacts(
    name="delta",
    make=_make,
    open_log=_open_log,
    errors=_errors,
    reserved_columns=FEED_COLUMNS | {"_metadata"},
    own_properties=frozenset({"delta.enableChangeDataFeed", "delta.isolationLevel", "delta.appendOnly"}),
    keep_longer="raise delta.logRetentionDuration and delta.deletedFileRetentionDuration",
)
"""The row of the registry."""
