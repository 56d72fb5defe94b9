"""Computes a change plan and commits what it brings to the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.compute.evaluation import Rows
from trickle.errors import StateError
from trickle.model import reason as codes

if TYPE_CHECKING:
    from trickle.algebra.plan import Plan
    from trickle.compile.program import ChangePlan
    from trickle.compute.evaluation import Evaluation
    from trickle.refresh.prepare import Prepared
    from trickle.refresh.stopwatch import Stopwatch
    from trickle.tables.contract import Applied, Record, TargetState, TargetTable


@dataclass(frozen=True, slots=True)
class Application:
    """One change of one table: by adding to its state, by replacing the rows of touched keys, or row by row."""

    evaluation: Evaluation
    prepared: Prepared
    target: TargetTable
    watch: Stopwatch

    def apply(self, plan: ChangePlan, record: Record, state: TargetState) -> Applied | None:
        """Compute and commit; None if nothing of it reaches the table."""
        if plan.delta is not None:
            return self._add(plan.delta, record, state)
        if plan.keys is not None and plan.rows is not None:
            return self._replace(plan.keys, plan.rows, plan.broken, record, state)
        if plan.change is None:
            message = "a change plan adds to a state, replaces keys, or has a change"
            raise AssertionError(message)
        with self.watch.step("compute"):
            rows = self.evaluation.rows(self._quickest(plan.change, plan))
        if rows is None or not rows.count:
            return None
        with self.watch.step("commit"):
            return self.target.apply_bag(rows.named(self.prepared.names), record, state)

    def _add(self, plan: Plan, record: Record, state: TargetState) -> Applied | None:
        state_table = self.prepared.program.state_table
        if state_table is None or state_table.sums is None:
            message = "only the state of an additive aggregate is added to"
            raise AssertionError(message)
        with self.watch.step("compute"):
            delta = self.evaluation.rows(plan)
        if delta is None or not delta.count:
            return None
        keys, count = [o.column.name for o in state_table.sums.keys], state_table.sums.terms[0].column.name
        with self.watch.step("commit"):
            return self.target.accumulate(delta.named(self.prepared.names), keys, record, state, count)

    def _replace(
        self, touched: Plan, new: Plan, broken: Plan | None, record: Record, state: TargetState
    ) -> Applied | None:
        keyed = self.prepared.program.keyed
        if keyed is None:
            message = "rows without a key cannot be replaced"
            raise AssertionError(message)
        with self.watch.step("compute"):
            keys = self.evaluation.rows(touched)
            if keys is None or not keys.count:
                return None
            if broken is not None and (wrong := self.evaluation.rows(broken)) is not None and wrong.count:
                text = f"stream table '{self.target.name}': its state does not fit the changes of its sources."
                raise StateError(codes.STATE_MISMATCH, text, hint="Call refresh(full=True) once.")
            rows = self.evaluation.rows(new) or Rows(self.evaluation.frame(self.prepared.program.plan).limit(0), 0)
        columns = zip(self.prepared.program.plan.columns, self.prepared.names, strict=True)
        visible = {column.id: name for column, name in columns}
        names = tuple(visible[c.id] for c in keyed.keys)
        with self.watch.step("commit"):
            return self.target.replace_keys(rows.named(self.prepared.names), keys.named(names), names, record, state)

    def _quickest(self, change: Plan, plan: ChangePlan) -> Plan:
        if plan.quick is None or plan.unless is None:
            return change
        against = self.evaluation.rows(plan.unless)
        return change if against is not None and against.count else plan.quick
