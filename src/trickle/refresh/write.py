"""Writes the table of a refresh: applies its change, advances its frontier, or replaces all its rows, each in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trickle.compute.changes import read_changes
from trickle.compute.declared_keys import DeclaredKeys
from trickle.compute.evaluation import Evaluation, evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.compute.rows import Rows
from trickle.errors import StateError
from trickle.model import reason as codes
from trickle.model.cost import was_wrong
from trickle.model.names import is_state_table
from trickle.model.report import RefreshReport
from trickle.refresh.apply import Application
from trickle.refresh.record import new_record
from trickle.tables.contract import TooManyRowsError

if TYPE_CHECKING:
    from trickle.catalyst.jvm import Jvm
    from trickle.compute.changes import Changes
    from trickle.model.cost import Costs
    from trickle.model.definition import RefreshMode, RefreshRecord
    from trickle.model.reason import Reason
    from trickle.refresh.situation import Situation
    from trickle.refresh.steps import Recompute
    from trickle.refresh.stopwatch import Stopwatch
    from trickle.refresh.tables import RefreshTables
    from trickle.tables.contract import Applied

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

    def apply_change(self, now: Situation) -> Situation:
        """Compute the change and commit it, unless it turns out to have no rows, or not to fit the stored ones."""
        program = self.tables.prepared.program
        record = new_record("differential", None, now.goal, self.tables.prepared)
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
            if error.code != codes.STATE_MISMATCH:
                raise
            return replace(now, mismatch=error)
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

    def advance_frontier(self, now: Situation) -> Situation:
        """Commit the record alone."""
        record = new_record("differential", None, now.goal, self.tables.prepared)
        with self.watch.step("commit"):
            applied = self.tables.target.touch(self._write_record(now, record, None), now.state)
        return self._commit(now, record, None, applied)

    def recompute(self, step: Recompute, now: Situation) -> Situation:
        """Replace all rows."""
        if step.reason.code not in _EXPECTED:
            logger.warning("stream table %s is refreshed in full: %s", now.table, step.reason)
        record = new_record("full", step.reason, now.goal, self.tables.prepared)
        with self.watch.step("plan"):
            rows = self._all_rows(now).named(self.tables.prepared.names)
        with self.watch.step("write"):
            write = self._write_record(now, record, step.reason)
            try:
                applied = self.tables.target.overwrite(rows, write, now.state, self._max_rows)
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
        if self._max_rows is None:
            return Rows(frame)
        # No task writes more of a state table than shows that it is too big, so that it does not fill the disk.
        return Rows(self.jvm.part_by_part(frame, self._max_rows + 1))

    @property
    def _max_rows(self) -> int | None:
        """How many rows it may have; None if it is kept whatever its size, as results and needed state tables are."""
        state_table = self.tables.prepared.program.state_table
        return None if state_table is None or state_table.is_required else self.tables.options.state_rows

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

    def _write_record(self, now: Situation, record: RefreshRecord, reason: Reason | None) -> Callable[[], str]:
        """Return what writes a record at the last moment: the commit tells the next process all that it took but itself."""
        return lambda: record.model_copy(update={"costs": self._learn(now, record.mode, reason)}).model_dump_json()

    def _commit(self, now: Situation, record: RefreshRecord, reason: Reason | None, applied: Applied) -> Situation:
        """Take note of a commit, and of what it cost for the next choice in this process."""
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
        )
        return replace(now, report=report)
