"""Runs a refresh: looks, decides, and executes the steps; after a step that learns new facts it decides again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from trickle.compute.evaluation import evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.errors import CancelledError, ConflictError, StateError
from trickle.model import reason as codes
from trickle.model.names import is_state_table
from trickle.model.reason import Reason
from trickle.refresh.decide import LOST_STATE, conflict, decide, is_lost
from trickle.refresh.look import look, look_at_ranges, look_at_state_table, version_of
from trickle.refresh.record import UNREADABLE_RECORD
from trickle.refresh.request import Request
from trickle.refresh.situation import Situation
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
from trickle.refresh.stopwatch import Stopwatch
from trickle.refresh.write import CATCH_UP, StateTooBigError, Writer
from trickle.tables.looks import look_again
from trickle.tables.redefinition import altered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm
    from trickle.compile.program import Program
    from trickle.model.cost import Costs
    from trickle.model.definition import SourceVersion
    from trickle.model.report import RefreshReport
    from trickle.refresh.tables import RefreshTables
    from trickle.tables.contract import TargetState


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a refresh did, and the costs known after it."""

    report: RefreshReport
    costs: Costs


@dataclass(frozen=True, slots=True)
class Refresh:
    """A refresh of one stream table, or of one of its state tables, to one frontier."""

    jvm: Jvm
    tables: RefreshTables
    request: Request = field(default_factory=Request)
    watch: Stopwatch = field(default_factory=Stopwatch)

    def run(self) -> Outcome:
        """Bring the table to the sources' newest versions, or to the requested ones.

        Raises:
            SourceError: In mode ``differential``, a source's history is gone or altered; or a requested version does not exist.
            NotDifferentiableError: In mode ``differential``, the query cannot be maintained.
            ConflictError: Another refresh came first.
            StateTooBigError: A state table is not worth keeping.
        """
        if self.request.deadline is not None:
            self.watch.check_before_steps(self.request.deadline.check)
        with self.watch.step("look"):
            self.tables.look_at_once()
            began = self.tables.target.state()
        is_replaced = self.tables.definition is not None and began.definition != self.tables.definition
        redefine = self.request.redefine
        if is_replaced and redefine is None:
            raise conflict(self.tables.target.name)
        if redefine is not None and redefine.instead_of not in (None, began.definition):
            raise altered(self.tables.target.name)
        try:
            return self._run(began)
        except (CancelledError, ConflictError, StateTooBigError):
            raise
        except Exception as error:
            # The state files that an overtaken refresh reads are deleted, and its versions are outdated.
            if self._is_overtaken(began):
                raise conflict(self.tables.target.name) from error
            raise

    def _run(self, began: TargetState) -> Outcome:
        now = look(self.tables, began, self.request, self.watch)
        steps = decide(now)
        while steps:
            if self.request.before_step is not None:
                self.request.before_step(steps[0])
            try:
                learnt = self._perform(steps[0], now)
            except (CancelledError, ConflictError, StateTooBigError):
                raise
            except Exception:
                learnt = self._find_expired(steps[0], now)
                if learnt is None:
                    raise
            # A step that learns nothing new leaves the decision as it is.
            now, steps = (now, steps[1:]) if learnt is None else (learnt, decide(learnt))
        if now.report is None:
            message = "a refresh ends with a report or an error"
            raise AssertionError(message)
        return Outcome(now.report, now.costs)

    def _perform(self, step: Step, now: Situation) -> Situation | None:
        """Execute a step; return the situation after it, None if nothing new is known."""
        match step:
            case Fail(error, cause):
                if cause is None:
                    raise error
                raise error from cause
            case NoData():
                return self._writer.finish(now, "no_data", now.record)
            case CatchUp():
                return self._catch_up(step, now)
            case RefreshStateTable():
                return self._refresh_state_table(step, now)
            case ApplyChange():
                return self._writer.apply_change(now)
            case AdvanceFrontier(skips):
                return self._writer.advance_frontier(now, skips=skips)
            case Recompute():
                return self._writer.recompute(step, now)
            case CleanState(name, version):
                self.tables.clean_state_table(name, version)
                return None
            case _:
                assert_never(step)

    def _find_expired(self, step: Step, now: Situation) -> Situation | None:
        """Return the situation if a change could not be read because files of a source went since the look; else None."""
        if not isinstance(step, ApplyChange) or (self.request.deadline is not None and self.request.deadline.is_over):
            return None
        look_again()
        try:
            found = look_at_ranges(self.tables, replace(now, ranges={}), now.ranges)
        except Exception:
            return None  # the error of the step says more
        return found if any(versions.broken is not None for versions in found.ranges.values()) else None

    @property
    def _writer(self) -> Writer:
        return Writer(self.jvm, self.tables, self.watch, self.request)

    def _is_overtaken(self, began: TargetState) -> bool:
        """Return whether another refresh of the table has committed since this one began."""
        look_again()
        try:
            return self.tables.target.state().record_version != began.record_version
        except Exception:
            return False  # the error about the table was raised already

    # -- state tables

    def _catch_up(self, step: CatchUp, now: Situation) -> Situation:
        """Fill a state table at the frontier of the last refresh, and continue from there."""
        frontier = {} if now.record is None else now.record.frontier
        with self.watch.step(CATCH_UP):
            report = self._run_state_table(step, now, Request(full=True, goal=frontier), Stopwatch())
        if isinstance(report, Situation):
            return report
        name = step.state_table
        now = now.with_frontier(name, self._version(name, report))
        facts = replace(now.state_table(name), damage=None, cause=None)
        return now.with_state_table(look_at_state_table(self.tables, facts, now.record))

    def _refresh_state_table(self, step: RefreshStateTable, now: Situation) -> Situation:
        """Bring a state table to the goal, and add its version to the goal."""
        request = Request(full=step.full, goal=now.goal, may_go_back=step.may_go_back)
        report = self._run_state_table(step, now, request, self.watch)
        if isinstance(report, Situation):
            return report
        name, facts = step.state_table, now.state_table(step.state_table)
        now = replace(
            now,
            goal={**now.goal, name: self._version(name, report)},
            changed={**now.changed, **report.changed},
        )
        if report.mode == "full":
            reason = LOST_STATE if is_lost(now, facts) else report.reason
            if step.damage is not None:
                text = f"its stored state was damaged and was rebuilt: {step.damage}"
                reason = Reason(codes.STATE_MISSING, text)
            now = now.with_state_table(replace(facts, rebuilt=reason, damage=None, cause=None))
        if any(isinstance(left, ApplyChange | AdvanceFrontier) for left in decide(now)) and name in now.used:
            with self.watch.step("classify"):
                now = look_at_ranges(self.tables, now, (name,))
        return now

    def _run_state_table(
        self, step: CatchUp | RefreshStateTable, now: Situation, request: Request, watch: Stopwatch
    ) -> RefreshReport | Situation:
        """Refresh a state table; return its report, or the situation with the damage that was found."""
        name = step.state_table
        program, goal = self.tables.program_of(name), request.goal or {}
        like = partial(self._frame, program, goal)
        if step.damage is not None:
            self.tables.forget_state_table(name)
            request = replace(request, full=True, may_go_back=True)
        with watch.step("look"):
            for lower in filter(is_state_table, program.used):
                self.tables.open_state_table(lower, partial(self._frame, self.tables.program_of(lower), goal))
            self.tables.open_state_table(name, like)
        request = replace(request, goal={n: goal[n] for n in program.used}, deadline=self.request.deadline)
        try:
            return Refresh(self.jvm, self.tables.of_state_table(name), request, watch).run().report
        except (CancelledError, ConflictError, StateTooBigError):
            raise
        except Exception as error:
            damage = None if step.damage is not None else self._find_damage(now, name, like, error, full=request.full)
            if damage is None:
                raise
            return now.with_state_table(replace(now.state_table(name), damage=damage, cause=error))

    def _find_damage(
        self, now: Situation, name: str, like: Callable[[], DataFrame], error: Exception, *, full: bool
    ) -> str | None:
        """Say what is wrong with a state table whose refresh failed, None if it is not to blame."""
        if isinstance(error, StateError) and error.code == UNREADABLE_RECORD:
            return error.message
        if self._is_overtaken(now.state) or (self.request.deadline is not None and self.request.deadline.is_over):
            return None
        damage = self.tables.find_damage(name, like)
        # A recompute must not use anything of the old state table.
        return str(error) if damage is None and full else damage

    def _frame(self, program: Program, at: Mapping[str, SourceVersion]) -> DataFrame:
        """Return the rows of a state table at a frontier, not yet run."""
        inputs = Inputs(self.tables.sources, at, at, self.tables.target)
        return evaluate_by_spark(self.jvm, inputs, self.tables.options).frame(program.plan)

    def _version(self, name: str, report: RefreshReport) -> SourceVersion:
        source = self.tables.sources[name]
        source.head()  # notices if another refresh recreated the state table
        return version_of(source, report.version)
