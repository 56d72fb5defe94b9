"""Gathers the facts that ``decide`` needs about a table and its sources, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from trickle.errors import SourceError, StateError
from trickle.model import reason as codes
from trickle.model.cost import Change
from trickle.model.definition import SourceVersion
from trickle.model.digests import commits_before, first_difference, is_same_digest
from trickle.model.names import is_state_table, short_name
from trickle.model.reason import Reason
from trickle.refresh.decide import decide, why_recompute
from trickle.refresh.record import known_costs, read_record
from trickle.refresh.situation import Situation, StateTableFacts
from trickle.refresh.steps import CatchUp, RefreshStateTable
from trickle.refresh.stopwatch import Stopwatch
from trickle.tables.contract import VersionRange
from trickle.tables.formats import RESULT_FORMAT

if TYPE_CHECKING:
    from trickle.model.definition import RefreshRecord
    from trickle.refresh.request import Request
    from trickle.refresh.tables import RefreshTables
    from trickle.tables.contract import SourceTable, TargetState


def look(tables: RefreshTables, state: TargetState, request: Request, watch: Stopwatch | None = None) -> Situation:
    """Gather no more facts than the decision needs: if nothing is new, this takes a moment.

    Raises:
        SourceError: A requested version does not exist; or a log cannot be read.
        StateError: The table's record cannot be read.
    """
    watch = watch or Stopwatch()
    with watch.step("look"):
        # A full refresh needs no record, so it also repairs one that cannot be read.
        record = None if request.full else read_record(tables.target.name, state)
        goal = (
            request.goal
            if request.goal is not None
            else _choose_versions(tables, request, _frontier(tables, state, record))
        )
        now = Situation(
            table=tables.target.name,
            mode=tables.mode,
            state=state,
            record=record,
            goal=dict(goal),
            sources=frozenset(tables.prepared.sources),
            fingerprint=tables.prepared.fingerprint,
            obstacles=tables.prepared.obstacles,
            is_full_asked=request.full,
            is_redefined=request.redefine is not None,
            is_skip_asked=request.skips_change,
            is_pinned=bool(request.at),
            is_ahead=not request.may_go_back and record is not None and _is_ahead(tables, record, goal),
            costs=request.costs or (record.costs if record is not None else known_costs(state)),
            state_tables=_state_tables(tables),
        )
    if now.is_at_goal and why_recompute(now) is None:
        return now
    now = replace(now, used=frozenset(tables.prepared.program.used))
    if record is not None and not now.is_ahead and why_recompute(now) is None:
        with watch.step("classify"):
            now = look_at_ranges(tables, now, tables.prepared.sources)
        now = replace(now, change=Change.of((n, _count_rows(tables, r)) for n, r in now.ranges.items()))
        if request.goal is None and tables.mode == "auto" and all(r.broken is None for r in now.ranges.values()):
            estimate = now.costs.estimate(now.change, is_behind=now.is_behind, options=tables.options)
            now = replace(now, estimate=estimate)
    if any(isinstance(step, CatchUp | RefreshStateTable) for step in decide(now)):
        with watch.step("look"):
            for facts in now.state_tables:
                now = now.with_state_table(look_at_state_table(tables, facts, now.record))
    return now


def look_at_ranges(tables: RefreshTables, now: Situation, names: Iterable[str]) -> Situation:
    """Add what the logs say happened to sources and refreshed state tables since the last refresh."""
    if now.record is None:
        return now
    found = dict(now.ranges)
    for name in names:
        old, new = now.record.frontier[name], now.goal[name]
        if name not in found and not old.is_same(new):
            found[name] = _look_at_range(tables, now, name, old, new)
    return replace(now, ranges=found)


def look_at_state_table(tables: RefreshTables, facts: StateTableFacts, record: RefreshRecord | None) -> StateTableFacts:
    """Find out whether a state table that the last refresh wrote exists, and what it has at that version."""
    if record is None or facts.name not in record.frontier:
        return facts
    found = tables.find_state_table(facts.name)
    if found is None:
        return replace(facts, is_empty=True)
    target, source = found
    try:
        source.head()  # notices that the cached log is outdated
        # Before its next refresh, whose checkpoint may shorten the log.
        digest = source.digest(record.frontier[facts.name].version)
    except SourceError:
        digest = None
    try:
        is_empty = target.state().record is None
    except SourceError:
        is_empty = False  # an unreadable one is handled when it is refreshed
    return replace(facts, digest=digest, is_empty=is_empty)


def version_of(source: SourceTable, version: int, before: int = 0) -> SourceVersion:
    """Return what a frontier says of a version of a source, and perhaps of commits before it."""
    return SourceVersion(version=version, identity=source.identity(version), digest=source.digest(version, before))


def _read_before(version: int, old: SourceVersion | None, most: int) -> int:
    """Return how many commits before a version a refresh to it reads too, or the refresh that stands on it has read."""
    if old is not None and old.version == version:
        return commits_before(old.digest)
    return min(most, version - old.version - 1) if old is not None and old.version < version else most


def why_restored(
    name: str, source: SourceTable, old: SourceVersion, new: SourceVersion, facts: StateTableFacts | None = None
) -> Reason | None:
    """Say why the version of the last refresh may not be what it was; None if it is."""
    if facts is not None:
        now = facts.digest
    elif old.version > source.head():
        now = ""
    else:
        is_new = old.version == new.version
        now = new.digest if is_new else source.digest(old.version, commits_before(old.digest))
    if old.digest is None or (now and first_difference(old.digest, now) is None):
        return None
    if now is None:
        text = f"version {old.version} of source '{name}', which the last refresh used, is gone from its log"
        return Reason(codes.HISTORY_EXPIRED, text, f"Refresh more often, or {RESULT_FORMAT.keep_longer}.")
    back = first_difference(old.digest, now)
    if back and source.overwrites_late:
        text = f"version {old.version - back} of source '{name}', which the last refresh read, was overwritten"
        return Reason(codes.COMMIT_OVERWRITTEN, f"{text} by another writer", codes.OVERWRITTEN_HINT)
    text = f"version {old.version - (back or 0)} of source '{name}' is not the one that the last refresh saw"
    why = "it was there in part" if back else "the table was put back to an earlier state"
    return Reason(codes.SOURCE_RESTORED, f"{text}: {why}, or its log was changed")


def _state_tables(tables: RefreshTables) -> tuple[StateTableFacts, ...]:
    programs = (program.state_table for program in tables.prepared.state_tables)
    return tuple(StateTableFacts(table.name, table.is_required) for table in programs if table is not None)


def _frontier(tables: RefreshTables, state: TargetState, record: RefreshRecord | None) -> Mapping[str, SourceVersion]:
    """Return the versions of the sources that a table stands for; none if nobody can tell."""
    try:
        record = record or read_record(tables.target.name, state)
    except StateError:
        return {}  # a full refresh repairs it
    return {} if record is None else record.frontier


def _choose_versions(
    tables: RefreshTables, request: Request, frontier: Mapping[str, SourceVersion]
) -> dict[str, SourceVersion]:
    """Return the versions to go to: the requested ones, else those that a run chose, else the newest."""
    prepared = tables.prepared
    asked, pinned = dict(request.at or {}), request.pinned or {}
    if asked and prepared.obstacles:
        text = f"'{tables.target.name}' is recomputed by Spark over the newest versions: {prepared.obstacles[0].text}"
        raise SourceError("NOT_PINNED", text, hint="Refresh it without versions.")
    goal = {}
    for name, source in prepared.sources.items():
        version = asked.pop(name, None)
        if version is None:
            version = asked.pop(short_name(name), None)
        head = source.head()
        if version is not None and not 0 <= version <= head:
            text = f"source '{name}' has versions 0 to {head}, not {version}."
            raise SourceError("NO_SUCH_VERSION", text, hint="Use a version that exists.")
        if version is None:
            version = _not_back(source, frontier.get(name), min(pinned[name], head)) if name in pinned else head
        seen = None if request.full else frontier.get(name)
        goal[name] = version_of(source, version, _read_before(version, seen, tables.options.commit_digests))
    if asked:
        text = f"{', '.join(map(repr, asked))} is not a source of '{tables.target.name}'."
        raise SourceError("UNKNOWN_SOURCE", text, hint=f"Its sources are {', '.join(prepared.sources)}.")
    return goal


def _is_ahead(tables: RefreshTables, record: RefreshRecord, goal: Mapping[str, SourceVersion]) -> bool:
    """Return whether another refresh has brought this state table further than its goal: then the sources are looked at again.

    Else the state table would go back, which takes a recompute, and the other refresh could not commit.
    """
    return any(
        name in record.frontier and _is_later(tables.prepared.sources[name], record.frontier[name], new)
        for name, new in goal.items()
    )


def _not_back(source: SourceTable, seen: SourceVersion | None, version: int) -> int:
    """Return a version of a source, or the later one that the table stands for already."""
    is_later = seen is not None and _is_later(source, seen, version_of(source, version))
    return seen.version if seen is not None and is_later else version


def _is_later(source: SourceTable, seen: SourceVersion, new: SourceVersion) -> bool:
    """Return whether a version that a refresh has seen comes after another one of the same table, and is still there."""
    if seen.identity != new.identity or seen.version <= new.version:
        return False
    return source.head() >= seen.version and is_same_digest(source.digest(seen.version), seen.digest)


def _look_at_range(
    tables: RefreshTables, now: Situation, name: str, old: SourceVersion, new: SourceVersion
) -> VersionRange:
    own = next((facts for facts in now.state_tables if facts.name == name), None)
    versions = _classify(tables, name, old, new, own)
    if versions.broken is None or not is_state_table(name):
        return versions
    text = f"its stored state is not the one that the last refresh left ({versions.broken.text})"
    return replace(versions, broken=Reason(codes.STATE_MISSING, text))


def _classify(
    tables: RefreshTables, name: str, old: SourceVersion, new: SourceVersion, own: StateTableFacts | None
) -> VersionRange:
    source = tables.sources[name]
    if old.identity != new.identity:
        text = f"source '{name}' was dropped and created again since version {old.version}"
        return VersionRange(old.version, new.version, broken=Reason(codes.SOURCE_REPLACED, text))
    restored = why_restored(name, source, old, new, own)
    if restored is not None:
        return VersionRange(old.version, new.version, broken=restored)
    columns = tables.prepared.program.used.get(name) or tables.prepared.used[name]
    return source.classify(old.version, new.version, columns)


def _count_rows(tables: RefreshTables, versions: VersionRange) -> int:
    return versions.bytes // tables.options.assumed_row_bytes if versions.rows is None else versions.rows
