"""Keeps a Delta table in shape that is committed to for months: files, log, and what nobody needs any more."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.tables.delta.compaction import compact, wasteful_files
from trickle.tables.delta.driver.fit import checkpoint_interval
from trickle.tables.delta.log import last_checkpoint
from trickle.tables.delta.properties import set_properties_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.delta.table import DeltaTable

_HOURS: Final = {"hour": 1.0, "day": 24.0, "week": 168.0, "minute": 1 / 60, "second": 1 / 3600}
_PART: Final = re.compile(r"(\d+)\s+(hour|day|week|minute|second)s?")
_LOG: Final = "delta.logRetentionDuration"
_KEPT: Final = {_LOG: "30 days", "delta.deletedFileRetentionDuration": "1 week"}
"""The properties, and what Delta takes where they are not set."""


class DeltaUpkeep:
    """One table."""

    def __init__(self, spark: SparkSession, table: DeltaTable) -> None:
        """Bind to a table; touches nothing yet."""
        self._spark = spark
        self._table = table

    def committed_at(self, version: int) -> datetime | None:
        """Return when a version was committed."""
        commit = self._table.log.commit(version)
        moment = None if commit is None else commit.info.get("inCommitTimestamp") or commit.info.get("timestamp")
        return None if moment is None else datetime.fromtimestamp(int(moment) / 1000, UTC)

    def kept_for(self) -> timedelta:
        """Return the shorter of both times."""
        return min(self._kept().values())

    def _kept(self) -> dict[str, timedelta]:
        log = self._table.log
        settings = log.metadata(log.head()).get("configuration") or {}
        return {key: read_interval(settings.get(key, default)) for key, default in _KEPT.items()}

    def log_kept_for(self) -> timedelta:
        """Return how long Delta keeps commits once a checkpoint sums them up."""
        return self._kept()[_LOG]

    def keep_log_for(self, time: timedelta) -> None:
        """Raise the property if it is shorter."""
        self._raise([_LOG], time)

    def keep_for(self, time: timedelta) -> None:
        """Raise the properties that are shorter; Delta wants the log to be kept for no less time than the files."""
        self._raise(_KEPT, time)

    def _raise(self, keys: Collection[str], time: timedelta) -> None:
        wanted = f"interval {math.ceil(time / timedelta(seconds=1))} seconds"
        shorter = {key: wanted for key, kept in self._kept().items() if key in keys and kept < time}
        if shorter:
            set_properties_at(self._spark, self._table.location, shorter)

    def has_wasteful_files(self) -> bool:
        """Count the small files and the masked rows."""
        options, log = self._table.options, self._table.log
        return bool(wasteful_files(self._table.files(log.head()) or (), options))

    def compact(self) -> None:
        """Write them anew, or let Delta do it.

        Raises:
            ConflictError: Another commit came first.
        """
        if not compact(self._table):
            self._spark.sql(f"OPTIMIZE delta.`{self._table.location}`")

    def checkpoint(self) -> bool:
        """Let Delta write a checkpoint half-way to the next one that it would owe: then no refresh has to."""
        log = self._table.log
        head = log.head()
        if head - last_checkpoint(self._table.folder) < max(checkpoint_interval(log.metadata(head)) // 2, 1):
            return False
        self._table.handle.update()
        self._table.handle.checkpoint()
        return True

    def vacuum(self, keep: timedelta) -> None:
        """Let Delta delete files; never before the time that the table asks for."""
        hours = max(keep, self.kept_for()) / timedelta(hours=1)
        self._spark.sql(f"VACUUM delta.`{self._table.location}` RETAIN {int(hours) + 1} HOURS")


def read_interval(text: str) -> timedelta:
    """Read an interval as Delta's properties have it; what cannot be read is not a time at all.

    >>> read_interval("interval 1 week 2 days")
    datetime.timedelta(days=9)
    """
    return timedelta(hours=sum(int(number) * _HOURS[unit] for number, unit in _PART.findall(text.lower())))
