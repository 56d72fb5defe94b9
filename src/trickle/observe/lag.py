"""How far a stream table is behind its sources."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from trickle.errors import SourceError
from trickle.model.names import is_state_table
from trickle.model.observed import SourceLag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.model.definition import RefreshRecord, SourceVersion
    from trickle.tables.logs import CommitFacts, TableLog

GONE: Final = "is not there"
MADE_ANEW: Final = "was made anew"
WENT_BACK: Final = "went back to an older version"

_COUNTED: Final = 1000
"""Further commits are taken to have changed rows, without being read."""


def measure_lags(record: RefreshRecord, logs: Mapping[str, TableLog | None]) -> tuple[SourceLag, ...]:
    """Compare the versions that a refresh saw with those that its sources, by name, have now."""
    return tuple(
        _measure(name, seen, logs.get(name)) for name, seen in record.frontier.items() if not is_state_table(name)
    )


def _measure(name: str, seen: SourceVersion, log: TableLog | None) -> SourceLag:
    if log is None:
        return SourceLag(name, seen.version, None, 0, note=GONE)
    try:
        head = log.head()
        if log.identity() != seen.identity:
            return SourceLag(name, seen.version, head, head + 1, _time(log.commit(0)), MADE_ANEW)
        if head < seen.version:
            return SourceLag(name, seen.version, head, 1, note=WENT_BACK)
        commits, oldest = _count(log, seen.version, head)
    except SourceError as error:
        note = GONE if error.code == "SOURCE_MISSING" else str(error)
        return SourceLag(name, seen.version, None, 0, note=note)
    return SourceLag(name, seen.version, head, commits, oldest)


def _count(log: TableLog, since: int, upto: int) -> tuple[int, datetime | None]:
    """Count the commits that changed rows, and tell when the first was made."""
    count, oldest = 0, None
    for version in range(since + 1, min(upto, since + _COUNTED) + 1):
        commit = log.commit(version)
        if commit is None or _changes_rows(commit):
            count += 1
            oldest = oldest or _time(commit)
    return count + max(upto - since - _COUNTED, 0), oldest


def _changes_rows(commit: CommitFacts) -> bool:
    return commit.changes_data and (commit.rows_inserted, commit.rows_deleted) != (0, 0)


def _time(commit: CommitFacts | None) -> datetime | None:
    return None if commit is None else commit.time
