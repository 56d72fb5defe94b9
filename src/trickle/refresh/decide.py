"""Decides what a refresh does: a pure function of the situation.

Some facts only appear as steps run (a state table was rebuilt, the stored rows were not what they should be, the change has no
rows). They are added to the situation, and ``decide`` runs again; it always returns everything that remains to be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.errors import ConflictError, NotDifferentiableError, SourceError, StateError, TrickleError
from trickle.model import reason as codes
from trickle.model.names import is_state_table
from trickle.model.reason import Reason
from trickle.refresh.steps import (
    AdvanceFrontier,
    ApplyChange,
    CatchUp,
    CleanState,
    Fail,
    NoData,
    Recompute,
    RefreshStateTable,
    Step,
)

if TYPE_CHECKING:
    from trickle.refresh.situation import Situation, StateTableFacts

LOST_STATE: Final = Reason(codes.STATE_MISSING, "its stored state was missing and was rebuilt")
_FIRST: Final = Reason(codes.FIRST_REFRESH, "the table has no recorded refresh")
_ONCE: Final = "Call refresh(full=True) once; refreshes after it are differential again."


def decide(now: Situation) -> tuple[Step, ...]:
    """Return the steps that are left, in order; none if the refresh is done."""
    if now.report is not None:
        return _clean(now) if now.report.mode == "differential" else ()
    if now.is_skip_asked and not now.is_ahead:
        return (*_bring_state_up(now, None), AdvanceFrontier(skips=True))
    refused = _why_refused(now)
    if refused is not None:
        return (refused,)
    reason = why_recompute(now)
    if reason is None and now.is_at_goal:
        return (NoData(),)
    if reason is None:
        reason = _why_source_broken(now) or _why_cheaper(now)
    if reason is not None and reason.code == codes.COST and not now.requires_state:
        # To fill the state tables too may take as long again: they wait until a refresh needs them. Not so what is
        # remembered: the next change could not be computed from rows that were computed without it.
        return (Recompute(reason, from_sources=True),)
    return (*_bring_state_up(now, reason), *_change_table(now, reason))


def why_recompute(now: Situation) -> Reason | None:
    """Say why a change cannot be applied to the stored rows, None if it can; a missing record is not a reason."""
    if now.is_redefined:
        return Reason(codes.DEFINITION_CHANGED, "its query was replaced, or returns other columns")
    if now.is_full_asked:
        return Reason(codes.REQUESTED, "a full refresh was requested")
    if now.mode == "full":
        return Reason(codes.MODE_FULL, "the stream table is in mode 'full'")
    if now.obstacles:
        return now.obstacles[0]
    if now.record is None:
        return None
    if now.state.external:
        text = f"others wrote to the stream table: {', '.join(now.state.external)}"
        return Reason(codes.TABLE_MODIFIED, text, "Write to the sources, not to the stream table.")
    if now.state.overwritten is not None:
        text = f"version {now.state.overwritten} of the stream table was overwritten by another writer"
        return Reason(codes.COMMIT_OVERWRITTEN, text, codes.OVERWRITTEN_HINT)
    if now.record.fingerprint != now.fingerprint:
        return Reason(codes.DEFINITION_CHANGED, "a view or function in the query was redefined since the last refresh")
    read, reads = ({n for n in names if not is_state_table(n)} for names in (now.record.frontier, now.sources))
    if read != reads:
        return Reason(codes.DEFINITION_CHANGED, "the query now reads other sources than at the last refresh")
    if any(is_state_table(name) and name not in now.record.frontier for name in now.sources):
        return LOST_STATE
    return None


def conflict(table: str) -> ConflictError:
    """Build the error for a refresh that another one has overtaken."""
    text = f"Another refresh of stream table {table} committed while this one was running; nothing was written."
    return ConflictError("CONCURRENT_REFRESH", text, hint="Refresh again; it starts from the other one's result.")


def is_lost(now: Situation, facts: StateTableFacts) -> bool:
    """Return whether a state table that the last refresh wrote no longer exists."""
    return facts.is_empty and now.record is not None and facts.name in now.record.frontier


# -- mode differential never recomputes silently


def _why_refused(now: Situation) -> Fail | None:
    if now.is_ahead:
        return Fail(conflict(now.table))
    if now.mode != "differential" or now.is_full_asked:
        return None
    if now.obstacles:
        obstacle = now.obstacles[0]
        return Fail(NotDifferentiableError(obstacle.code, obstacle.text, hint=obstacle.hint))
    if now.mismatch is not None:
        return Fail(now.mismatch)
    reason = why_recompute(now)
    if reason is not None:
        text = f"stream table '{now.table}': {reason.text}."
        return Fail(StateError(reason.code, text, hint="Call refresh(full=True) once; then it is differential again."))
    broken = _why_source_broken(now) or _why_state_broken(now)
    if broken is not None:
        return Fail(_broken_error(now, broken))
    for facts in now.state_tables:
        if is_lost(now, facts):
            return Fail(_lost_state(now, LOST_STATE.text))
        if facts.damage is not None and not _waits(now, facts):
            text = f"its stored state is damaged: {facts.damage}"
            return Fail(_lost_state(now, text), facts.cause)
    return None


def _broken_error(now: Situation, broken: Reason) -> TrickleError:
    if broken.code == codes.STATE_MISSING:
        return _lost_state(now, broken.text)
    return SourceError(broken.code, f"stream table '{now.table}': {broken.text}", hint=broken.hint or _ONCE)


def _lost_state(now: Situation, text: str) -> StateError:
    return StateError(codes.STATE_MISSING, f"stream table '{now.table}': {text}.", hint=_ONCE)


# -- reasons


def _why_source_broken(now: Situation) -> Reason | None:
    """Say why the change of a source is unknown, None if all are known."""
    own = {facts.name for facts in now.state_tables}
    broken = (versions.broken for name, versions in now.ranges.items() if name not in own)
    return next((reason for reason in broken if reason is not None), None)


def _why_state_broken(now: Situation) -> Reason | None:
    """Say why the change of a refreshed state table is unknown, None if all are known."""
    broken = (now.ranges[facts.name].broken for facts in now.state_tables if facts.name in now.ranges)
    return next((reason for reason in broken if reason is not None), None)


def _why_cheaper(now: Situation) -> Reason | None:
    """Say why recomputing is estimated to be cheaper, None if it is not."""
    if now.estimate is None or not now.estimate.prefers_full:
        return None
    text = (
        f"{now.change.rows} changed rows are estimated to take {now.estimate.differential:.1f} s, "
        f"a full refresh {now.estimate.full or 0:.1f} s"
    )
    return Reason(codes.COST, text)


def _why_rebuilt(now: Situation) -> Reason | None:
    """Say why a state table was, or must be, recomputed, so that its change is unknown."""
    for facts in now.state_tables:
        if facts.rebuilt is not None:
            return facts.rebuilt
        if is_lost(now, facts) and not now.is_full_asked:
            return LOST_STATE
    return None


# -- steps


def _waits(now: Situation, facts: StateTableFacts) -> bool:
    """Return whether the last refresh went without a state table."""
    return now.record is not None and facts.name not in now.record.frontier


def _bring_state_up(now: Situation, reason: Reason | None) -> tuple[Step, ...]:
    """Fill the state tables that the last refresh went without, then bring all of them to the goal."""
    keeps = reason is None or reason.code == codes.COST
    left = [facts for facts in now.state_tables if facts.name not in now.goal]
    catch_ups = [CatchUp(f.name, f.damage) for f in left if keeps and _waits(now, f)]
    caught = {step.state_table for step in catch_ups}
    refreshes = [
        RefreshStateTable(
            f.name,
            full=now.is_full_asked or (_waits(now, f) and f.name not in caught),
            may_go_back=not keeps or now.is_pinned,
            damage=None if f.name in caught else f.damage,
        )
        for f in left
    ]
    return (*catch_ups, *refreshes)


def _change_table(now: Situation, reason: Reason | None) -> tuple[Step, ...]:
    reason = reason or _why_rebuilt(now) or _why_state_broken(now)
    if reason is None and now.record is None:
        reason = _FIRST
    if reason is None and now.mismatch is not None:
        reason = Reason(now.mismatch.code, now.mismatch.message)
    if reason is not None:
        return (Recompute(reason),)
    changed = tuple(sorted(name for name in now.used if _may_have_changed(now, name)))
    step = ApplyChange(changed) if changed and not now.is_change_empty else AdvanceFrontier()
    return (step, *_clean(now))


def _may_have_changed(now: Situation, name: str) -> bool:
    """Return whether a source has changed rows; of a state table that is not refreshed yet nothing is known."""
    if is_state_table(name) and name not in now.goal:
        return True
    return name in now.ranges and now.ranges[name].kind != "none"


def _clean(now: Situation) -> tuple[Step, ...]:
    """Delete what the last refresh read: it is no longer needed."""
    frontier = {} if now.record is None else now.record.frontier
    return tuple(CleanState(s.name, frontier[s.name].version) for s in now.state_tables if s.name in frontier)
