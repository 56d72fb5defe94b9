"""Computes a change plan and commits the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from trickle.compile.change_plan import AddToState, ApplyBag, ReplaceKeys
from trickle.compute.rows import Rows
from trickle.errors import StateError
from trickle.model import reason as codes

if TYPE_CHECKING:
    from trickle.algebra.plan import Plan
    from trickle.compile.change_plan import ChangePlan
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
        """Compute and commit; None if the table does not change."""
        match plan:
            case AddToState():
                return self._add(plan, record, state)
            case ReplaceKeys():
                return self._replace(plan, record, state)
            case ApplyBag():
                return self._apply_bag(plan, record, state)
            case _:
                assert_never(plan)

    def _add(self, plan: AddToState, record: Record, state: TargetState) -> Applied | None:
        with self.watch.step("compute"):
            change = self.evaluation.rows(plan.change)
        if change is None or not change.count:
            return None
        keys, count = [o.column.name for o in plan.state.keys], plan.state.terms[0].column.name
        with self.watch.step("commit"):
            return self.target.accumulate(change.named(self.prepared.names), keys, record, state, count)

    def _replace(self, plan: ReplaceKeys, record: Record, state: TargetState) -> Applied | None:
        with self.watch.step("compute"):
            touched = self.evaluation.rows(plan.touched)
            if touched is None or not touched.count:
                return None
            if plan.broken is not None and (wrong := self.evaluation.rows(plan.broken)) is not None and wrong.count:
                text = f"stream table '{self.target.name}': its state does not fit the changes of its sources."
                raise StateError(codes.STATE_MISMATCH, text, hint="Call refresh(full=True) once.")
            rows = self.evaluation.rows(plan.rows)
            if rows is None:
                rows = Rows(self.evaluation.frame(self.prepared.program.plan).limit(0), 0)
        columns = zip(self.prepared.program.plan.columns, self.prepared.names, strict=True)
        visible = {column.id: name for column, name in columns}
        keys = tuple(visible[c.id] for c in plan.keys)
        with self.watch.step("commit"):
            return self.target.replace_keys(rows.named(self.prepared.names), touched.named(keys), keys, record, state)

    def _apply_bag(self, plan: ApplyBag, record: Record, state: TargetState) -> Applied | None:
        with self.watch.step("compute"):
            rows = self.evaluation.rows(self._quickest(plan))
        if rows is None or not rows.count:
            return None
        with self.watch.step("commit"):
            return self.target.apply_bag(rows.named(self.prepared.names), record, state)

    def _quickest(self, plan: ApplyBag) -> Plan:
        shortcut = plan.shortcut
        if shortcut is None or (shortcut.if_at_hand and self.target.small_rows(to_search=True) is None):
            return plan.change
        against = None if shortcut.unless is None else self.evaluation.rows(shortcut.unless)
        return plan.change if against is not None and against.count else shortcut.change
