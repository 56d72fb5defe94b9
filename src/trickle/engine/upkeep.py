"""Keeps stream tables in shape between refreshes: small files, checkpoints, files that nobody needs any more."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from trickle.errors import TrickleError
from trickle.model.events import Warned
from trickle.model.schedule import Cron, Every, next_due, read_schedule
from trickle.refresh.record import read_record
from trickle.tables.formats import RESULT_FORMAT

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.graph import Member, Members
    from trickle.tables.format_contract import Upkeep

_LOG: Final = logging.getLogger("trickle")
_MARGIN: Final = timedelta(hours=1)
RETENTION_SHORT: Final = "RETENTION_SHORT"


class Housekeeping:
    """The upkeep of the stream tables of a catalog. Everything here may fail, or be cut short, without harm."""

    def __init__(self, engine: Engine) -> None:
        """Bind to an engine."""
        self._engine = engine

    def tidy(self, name: str, members: Members, now: datetime) -> list[str]:
        """Write wasteful files anew, and checkpoints, of a table and its state tables; return what was done."""
        done = self._keep_log(name, members, now)
        for place in self._places(members.members[name]):
            upkeep = self._engine.catalog.results.upkeep(place)
            if upkeep.has_wasteful_files():
                upkeep.compact()
                done.append(f"compacted {place}")
            if upkeep.checkpoint():
                done.append(f"checkpointed {place}")
        return done

    def _keep_log(self, name: str, members: Members, now: datetime) -> list[str]:
        """Let a table keep its log while a reader that is far behind needs it: any checkpoint may shorten it."""
        upkeep = self._engine.catalog.results.upkeep(members.members[name].table.location)
        versions = (*_read_versions(name, members), *self._read_by_broken(name, members))
        ages = [age for version in versions if (age := _age(upkeep, version, now)) is not None]
        behind = max(ages, default=timedelta())
        if behind <= upkeep.log_kept_for() / 2:
            return []
        upkeep.keep_log_for(2 * behind)
        return [f"the log of {name} is kept for {_rounded(2 * behind)}, for a reader is {_rounded(behind)} behind"]

    def _read_by_broken(self, name: str, members: Members) -> Iterator[int]:
        """Return the versions of a stream table that those were computed from that cannot be opened."""
        results = self._engine.catalog.results
        own = members.members[name].table
        for place, broken in members.broken_at.items():
            try:
                source = results.source(own.name, own.location)
                record = read_record(broken, results.target(broken, place).state())
                identity = source.identity(source.head())
            except (TrickleError, OSError):
                continue
            if record is not None:
                yield from (seen.version for seen in record.frontier.values() if seen.identity == identity)

    def vacuum(self, name: str, members: Members, now: datetime) -> timedelta | None:
        """Delete the files that neither the table's own retention nor a reader needs; return how long files are kept.

        None if nothing was done: a stream table that cannot be opened may read this one from any version on.
        """
        if members.broken:
            return None
        upkeep = self._engine.catalog.results.upkeep(members.members[name].table.location)
        ages = [_age(upkeep, version, now) for version in _read_versions(name, members)]
        if any(age is None for age in ages):
            return None
        keep = max([upkeep.kept_for(), *(age + _MARGIN for age in ages if age is not None)])
        upkeep.vacuum(keep)
        return keep

    def warn(self, name: str, member: Member, now: datetime) -> list[str]:
        """Tell of the sources that may lose what the next refresh of a table needs."""
        found = list(self._outrun(member, now))
        for text in found:
            _LOG.warning("stream table %s: %s", name, text)
            self._engine.events.emit(Warned(name, RETENTION_SHORT, text))
        return found

    def _outrun(self, member: Member, now: datetime) -> Iterator[str]:
        record = read_record(member.table.target.name, member.table.target.state())
        for source_name, source in member.table.prepared.sources.items():
            seen = None if record is None else record.frontier.get(source_name)
            if seen is None:
                continue
            upkeep = self._engine.catalog.results.upkeep(source.path)
            age = timedelta() if seen.version >= source.head() else _age(upkeep, seen.version, now)
            if age is None:
                yield f"source '{source_name}' no longer has its history since version {seen.version}, which the table has"
                continue
            why = why_outrun(age, _period(member.table.definition.schedule, now), upkeep.kept_for())
            if why is not None:
                yield f"source '{source_name}' {why}"

    def _places(self, member: Member) -> Iterator[str]:
        yield member.table.location
        for program in member.table.prepared.state_tables:
            place = (
                None if program.state_table is None else member.table.state_tables.location(program.state_table.name)
            )
            if place is not None:
                yield place


def why_outrun(age: timedelta, period: timedelta | None, kept: timedelta) -> str | None:
    """Say why a source may lose what a refresh needs, None if there is time enough.

    Args:
        age: How long ago the source moved on from what the table has.
        period: The time between two refreshes; None if it is not known.
        kept: How long the source keeps what older versions need.
    """
    hint = f"{RESULT_FORMAT.keep_longer}, or refresh more often"
    if age > kept / 2:
        return f"keeps older versions for {kept}, and the table is {_rounded(age)} behind: {hint}"
    if period is not None and period >= kept:
        return f"keeps older versions for {kept}, and the table is refreshed every {_rounded(period)}: {hint}"
    return None


def _rounded(time: timedelta) -> timedelta:
    return timedelta(seconds=round(time.total_seconds()))


def _period(schedule: str | None, now: datetime) -> timedelta | None:
    when = read_schedule(schedule)
    if not isinstance(when, Every | Cron):
        return None
    first = next_due(when, now, now)
    return next_due(when, first, first) - first


def _read_versions(name: str, members: Members) -> Iterator[int]:
    """Return the versions of a stream table that others were computed from."""
    for member in members.members.values():
        for source_name, node in member.reads.items():
            if node == name:
                try:
                    record = read_record(member.table.target.name, member.table.target.state())
                except TrickleError:
                    record = None
                seen = None if record is None else record.frontier.get(source_name)
                yield -1 if seen is None else seen.version


def _age(upkeep: Upkeep, version: int, now: datetime) -> timedelta | None:
    """Return for how long a version has not been the newest any more, None if that is not known."""
    if version < 0:
        return None
    after = upkeep.committed_at(version + 1)
    if after is not None:
        return now - after
    # The log has no later version: it is the newest, or the log is gone that far back.
    return timedelta() if upkeep.committed_at(version) is not None else None
