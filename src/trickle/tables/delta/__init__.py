"""Delta Lake: its log, sources, targets and state tables."""

from __future__ import annotations

from types import MappingProxyType
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


DELTA: Final = FormatFacts(
    name="delta",
    make=_make,
    open_log=_open_log,
    errors=_errors,
    reserved_columns=frozenset({"_change_type", "_commit_version", "_commit_timestamp", "_metadata"}),
    not_stored=MappingProxyType(
        {
            "interval": ("Delta tables hold no intervals", "Store it as a number or a string."),
            "time": ("Delta tables hold no times of day", "Store it as a string: CAST(… AS STRING)."),
            "collation": ("Delta tables hold no texts with a collation", "Show it with COLLATE UTF8_BINARY."),
        }
    ),
    keep_longer="raise delta.logRetentionDuration and delta.deletedFileRetentionDuration",
)
"""The row of the registry."""
