"""Writes the table of a refresh: applies its change, advances its frontier, or replaces all its rows, each in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trickle.compute.changes import read_changes
from trickle.compute.declared_keys import DeclaredKeys
from trickle.compute.evaluation import Evaluation, evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.compute.rows import Rows
from trickle.compute.spark import is_overflow
from trickle.errors import StateError
from trickle.model import reason as codes
from trickle.model.cost import was_wrong
from trickle.model.definition import Took
from trickle.model.names import is_state_table
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport
from trickle.refresh.apply import Application
from trickle.refresh.estimate import has_more_rows
from trickle.refresh.fuse import FuseBlownError, count_differences
from trickle.refresh.record import new_record
from trickle.tables.arrow.local import frame_of
from trickle.tables.contract import TooManyRowsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from trickle.catalyst.jvm import Jvm
    from trickle.compute.changes import Changes
    from trickle.model.cost import Costs
    from trickle.model.definition import RefreshMode, RefreshRecord
    from trickle.refresh.request import Request
    from trickle.refresh.situation import Situation
    from trickle.refresh.steps import Recompute
    from trickle.refresh.stopwatch import Stopwatch
    from trickle.refresh.tables import RefreshTables
    from trickle.tables.contract import Applied, Given

logger = logging.getLogger("trickle")

CATCH_UP: Final = "catch up"
"""The time to bring state tables to the table's frontier, after a refresh that went without them."""

_EXPECTED: Final = frozenset({codes.REQUESTED, codes.MODE_FULL, codes.FIRST_REFRESH, codes.COST})
"""Reasons for a full refresh that need no warning."""


class StateTooBigError(Exception):
    """A state table has so many rows that keeping it costs more than it saves."""

    def __init__(self, name: str) -> None:
        """Name the state table."""
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Writer:
    """The writing half of a refresh: each method takes a situation and returns the one after it."""

    jvm: Jvm
    tables: RefreshTables
    watch: Stopwatch
    request: Request

    def apply_change(self, now: Situation) -> Situation:
        """Compute the change and commit it, unless it turns out to have no rows, or not to fit the stored ones."""
        program = self.tables.prepared.program
        record = self._new_record(now)
        ranges = {name: versions for name, versions in now.ranges.items() if name in now.used}
        with self.watch.step("read changes"):
            changes = read_changes(self.jvm, program, self.tables.sources, ranges, self.tables.options)
        counts = {name: count for name, count in changes.counts.items() if not is_state_table(name)}
        now = replace(now, changed={**now.changed, **counts})
        touched = frozenset(name for name, count in changes.counts.items() if count)
        evaluation = self._evaluate_changes(now, changes)
        try:
            if not touched:
                return replace(now, is_change_empty=True)
            with self.watch.step("derive"):
                plan = program.derive(touched, evaluation.leaves.inputs.fan_out)
            application = Application(evaluation, self.tables.prepared, self.tables.target, self.watch)
            applied = application.apply(plan, self._write_record(now, record, None), now.state)
        except StateError as error:
            if error.code not in (codes.STATE_MISMATCH, codes.SUM_OVERFLOW):
                raise
            return replace(now, mismatch=error)
        except Exception as error:
            kept = program.state_table
            if kept is None or kept.state is None or not is_overflow(error):
                raise
            # What lies between two sums that fit may not: from 9e37 to -9e37 it is more than 38 digits.
            text = f"Stream table {self.tables.target.name}: the change of a sum does not fit its type."
            mismatch = StateError(
                codes.SUM_OVERFLOW, text, hint="Call refresh(full=True) once, or give it a narrower type."
            )
            mismatch.__cause__ = error
            return replace(now, mismatch=mismatch)
        finally:
            evaluation.release()
        return replace(now, is_change_empty=True) if applied is None else self._commit(now, record, None, applied)

    def _evaluate_changes(self, now: Situation, changes: Changes) -> Evaluation:
        """Return what computes plans over the changes."""
        program, sources = self.tables.prepared.program, self.tables.sources
        old = {} if now.record is None else now.record.frontier
        looks_up, declared = "key_lookup" not in program.disable, None
        if looks_up and "declared_keys" not in program.disable:
            declared = DeclaredKeys({n: sources[n] for n in program.used}, old, now.goal, changes.tables)
        inputs = Inputs(sources, old, now.goal, self.tables.target, changes.rows, declared)
        leaves = Leaves(self.jvm, inputs, self.tables.options, looks_up=looks_up)
        return Evaluation(changes.spark, leaves, in_driver="driver_execution" not in program.disable)

    def _new_record(self, now: Situation, *, skips: bool = False) -> RefreshRecord:
        """Return the record of a differential refresh; that changes were skipped is told until all rows are recomputed."""
        record = new_record("differential", None, now.goal, self.tables.prepared, self.tables.options)
        skipped = now.record.skipped if now.record is not None else None
        if skips:
            skipped = f"the change up to {_versions(now)} was skipped at {record.started}"
        return record if skipped is None else record.model_copy(update={"skipped": skipped, "base": None})

    def advance_frontier(self, now: Situation, *, skips: bool = False) -> Situation:
        """Commit the record alone."""
        record = self._new_record(now, skips=skips)
        with self.watch.step("commit"):
            applied = self.tables.target.touch(self._write_record(now, record, None), now.state)
        return self._commit(now, record, None, applied)

    def recompute(self, step: Recompute, now: Situation) -> Situation:
        """Replace all rows.

        Raises:
            StateTooBigError: They are more than a state table may have.
        """
        if step.reason.code not in _EXPECTED and self.request.redefine is None:
            logger.warning("stream table %s is refreshed in full: %s", now.table, step.reason)
        record = new_record("full", step.reason, now.goal, self.tables.prepared, self.tables.options)
        try:
            with self.watch.step("plan"):
                rows = self._all_rows(now).named(self.tables.prepared.names)
            rows, held = self._fused(now, step, rows)
            with self.watch.step("write"), held:
                write = self._write_record(now, record, step.reason)
                applied = self.tables.target.overwrite(rows, write, now.state, self._max_rows, self.request.redefine)
        except TooManyRowsError as error:
            state_table = self.tables.prepared.program.state_table
            raise StateTooBigError("" if state_table is None else state_table.name) from error
        return self._commit(now, record, step.reason, applied)

    def _all_rows(self, now: Situation) -> Rows:
        """Return the rows at the goal, perhaps not yet run. A query that is only ever recomputed runs as Spark has it."""
        prepared = self.tables.prepared
        if prepared.obstacles:
            return Rows(self.jvm.frame(prepared.analysed))
        program = prepared.program
        inputs = Inputs(self.tables.sources, now.goal, now.goal, self.tables.target)
        evaluation = evaluate_by_spark(self.jvm, inputs, self.tables.options)
        if not now.goal.keys() >= program.used.keys():
            return Rows(evaluation.frame(program.whole))
        if all(map(is_state_table, program.used)) and not {"driver_execution", "key_lookup"} & program.disable:
            # A plan over small state tables alone needs no Spark job.
            leaves = replace(evaluation.leaves, looks_up=True)
            rows = replace(evaluation, leaves=leaves, in_driver=True).rows_in_driver(program.plan)
            if rows is not None:
                return rows
        frame = evaluation.frame(program.plan)
        most = self._max_rows
        if most is None:
            return Rows(frame)
        read = (self.tables.sources[name].rows(now.goal[name].version) for name in program.used)
        # One that was kept is filled again without a question.
        if now.state.record is None and has_more_rows(self.jvm, evaluation, program.plan, most, read):
            raise TooManyRowsError
        # The estimate may be wrong, so no task writes more than shows that.
        return Rows(self.jvm.part_by_part(frame, most + 1))

    @property
    def _max_rows(self) -> int | None:
        """How many rows it may have; None if it is kept whatever its size, as results and needed state tables are."""
        state_table = self.tables.prepared.program.state_table
        return None if state_table is None or state_table.is_required else self.tables.options.state_rows

    # -- the fuse

    def _check_fuse(self, now: Situation, changed: int) -> None:
        """Refuse to commit a change that is too big.

        Raises:
            FuseBlownError: It is.
        """
        fuse = None if self.request.ignores_fuse or now.record is None else self.tables.fuse
        if fuse is None:
            return
        stored = self.tables.target.count(now.state.version) if fuse.max_ratio is not None else 0
        if (why := fuse.why_blown(changed, stored)) is not None:
            at = {name: seen.version for name, seen in now.goal.items() if not is_state_table(name)}
            raise FuseBlownError(now.table, why, at)

    def _fused(self, now: Situation, step: Recompute, rows: Given) -> tuple[Given, AbstractContextManager[object]]:
        """Count how many rows a recompute changes, if that matters; return the rows, and what holds them meanwhile.

        A commit of all rows does not tell: most of them are the same as before.
        """
        asked = self.request.ignores_fuse or step.reason.code in (codes.REQUESTED, codes.FIRST_REFRESH)
        if asked or self.request.redefine is not None or self.tables.fuse is None:
            return rows, nullcontext()
        with ExitStack() as stack, self.watch.step("compare"):
            frame = frame_of(self.jvm.spark, rows).persist()
            stack.callback(frame.unpersist)
            self._check_fuse(now, count_differences(frame, self.tables.target.frame(now.state.version)))
            return frame, stack.pop_all()

    # -- costs and reports

    def _learn(self, now: Situation, mode: str, reason: Reason | None) -> Costs:
        """Return what is known of costs with what this refresh took up to now.

        What a refresh before it had left to do is not its own cost.
        """
        seconds = self.watch.seconds - self.watch.steps.get(CATCH_UP, 0.0)
        if mode == "full":
            chosen = reason is not None and reason.code == codes.COST
            return now.costs.after_full(seconds, now.change if chosen else None, self.tables.options)
        return now.costs.after_differential(seconds, now.change, self.tables.options)

    def _write_record(self, now: Situation, record: RefreshRecord, reason: Reason | None) -> Callable[[int, int], str]:
        """Return what writes a record at the last moment: the commit tells the next process all that it took but itself."""

        def write(inserted: int, deleted: int) -> str:
            if record.mode == "differential":
                self._check_fuse(now, inserted + deleted)
            if self.request.deadline is not None:
                self.request.deadline.begin_commit()
            took = Took(
                inserted=inserted,
                deleted=deleted,
                seconds=round(self.watch.seconds, 3),
                trigger=self.request.trigger,
                steps={name: round(seconds, 3) for name, seconds in self.watch.steps.items()},
            )
            learnt = {"took": took, "costs": self._learn(now, record.mode, reason)}
            return record.model_copy(update=learnt).model_dump_json()

        return write

    def _commit(self, now: Situation, record: RefreshRecord, reason: Reason | None, applied: Applied) -> Situation:
        """Take note of a commit, and of what it cost for the next choice in this process."""
        if self.request.deadline is not None and self.tables.prepared.program.state_table is not None:
            self.request.deadline.end_commit()
        now = self.finish(now, record.mode, record, reason, applied)
        report, estimate = now.report, now.estimate
        foreseen = estimate and (estimate.full if record.mode == "full" else estimate.differential)
        if report is not None and foreseen and was_wrong(foreseen, report.seconds):
            text = "stream table %s: a %s refresh took %.1f s, the estimate was %.1f s; corrected for the next one"
            logger.info(text, report.table, report.mode, report.seconds, foreseen)
        return replace(now, costs=self._learn(now, record.mode, reason))

    def finish(
        self,
        now: Situation,
        mode: RefreshMode,
        record: RefreshRecord | None,
        reason: Reason | None = None,
        applied: Applied | None = None,
    ) -> Situation:
        """Add the report."""
        frontier = {} if record is None else record.frontier
        report = RefreshReport(
            table=now.table,
            mode=mode,
            reason=reason,
            rows_inserted=applied.rows_inserted if applied else 0,
            rows_deleted=applied.rows_deleted if applied else 0,
            frontier={n: s.version for n, s in frontier.items() if not is_state_table(n)},
            version=applied.version if applied else now.state.version,
            seconds=self.watch.seconds,
            steps=dict(self.watch.steps),
            changed=dict(now.changed),
            estimate=now.estimate,
            warnings=_warnings(record),
        )
        return replace(now, report=report)


def _warnings(record: RefreshRecord | None) -> tuple[Reason, ...]:
    if record is None or record.skipped is None:
        return ()
    text = f"the table does not equal its query: {record.skipped}"
    return (Reason(codes.CHANGE_SKIPPED, text, "refresh(full=True) makes it whole."),)


def _versions(now: Situation) -> str:
    return ", ".join(f"{name} {seen.version}" for name, seen in now.goal.items() if not is_state_table(name))
