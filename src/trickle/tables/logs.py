"""The logs of tables, read without Spark: which versions there are, who made them and when, what the properties say.

Nothing here imports Spark, nor does what it imports: commands that only look start at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What a table's log tells of one version.

    Attributes:
        time: When it was committed; None if the log does not say.
        operation: What was done, as the table's history shows it.
        changes_data: False for compaction and the like: the rows are the same.
        record: The text of Trickle's record; None if the commit is not Trickle's.
        rows_inserted: Rows inserted by it; None if the log does not say.
        rows_deleted: Rows deleted by it.
    """

    version: int
    time: datetime | None
    operation: str
    changes_data: bool
    record: str | None
    rows_inserted: int | None
    rows_deleted: int | None


class TableLog(Protocol):
    """The log of one table."""

    location: str

    def head(self) -> int:
        """Return the newest version.

        Raises:
            SourceError: ``SOURCE_MISSING``, ``NEEDS_SPARK``, ``UNREADABLE_LOG``.
        """
        ...

    def commit(self, version: int) -> CommitFacts | None:
        """Return what is known of a version, None if the log no longer has it."""
        ...

    def identity(self) -> str:
        """Return the id of the table; a recreated table has another one."""
        ...

    def properties(self) -> Mapping[str, str]:
        """Return the properties at the newest version."""
        ...


OpenLog = Callable[[str], TableLog]
