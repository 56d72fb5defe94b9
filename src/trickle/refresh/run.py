"""One refresh: look at the sources, choose the mode, compute, commit. With ``apply`` the only place where a refresh writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from trickle.compute.changes import read_changes
from trickle.compute.declared_keys import DeclaredKeys
from trickle.compute.evaluation import Evaluation, evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.compute.rows import Rows
from trickle.errors import ConflictError, NotDifferentiableError, SourceError, StateError
from trickle.model import reason as codes
from trickle.model.cost import Change, Costs, Estimate, was_wrong
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.model.names import is_state_table, short_name
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport
from trickle.refresh.apply import Application
from trickle.refresh.record import UNREADABLE_RECORD, known_costs, new_record, read_record
from trickle.refresh.stopwatch import Stopwatch
from trickle.tables.contract import TooManyRowsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm
    from trickle.compile.program import Program
    from trickle.model.definition import Mode
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import Applied, SourceTable, StateStore, TargetState, TargetTable, VersionRange


logger = logging.getLogger("trickle")

_LOST_STATE: Final = Reason(codes.STATE_MISSING, "the state stored with it was not there and was built anew")

_CATCH_UP: Final = "catch up"
"""The step that brings state tables to where the table stands, after a refresh that went without them."""


class StateTooBigError(Exception):
    """A state table has so many rows that keeping it costs more than it saves."""

    def __init__(self, name: str) -> None:
        """Name the state table."""
        super().__init__(name)
        self.name = name


@dataclass(slots=True)
class Refresh:
    """A refresh of one stream table, or of one of its state tables, to one frontier.

    Attributes:
        began: Where the table stood at the first look.
        gives_way: For a state table: True if it is not to go back from where another refresh has brought it.
        stood: The digests, before this refresh, of the versions of the state tables that the last one stood on.
    """

    jvm: Jvm
    prepared: Prepared
    target: TargetTable
    mode: Mode
    state_tables: StateStore | None = None
    options: Options = DEFAULT
    watch: Stopwatch = field(default_factory=Stopwatch)
    sources: dict[str, SourceTable] = field(default_factory=dict)
    ranges: dict[str, VersionRange] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    costs: Costs | None = None
    estimate: Estimate | None = None
    change: Change = field(default_factory=lambda: Change.of([]))
    began: TargetState | None = None
    gives_way: bool = False
    stood: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the sources; state tables join them as they are refreshed."""
        self.sources = dict(self.prepared.sources)

    def run(
        self,
        *,
        full: bool = False,
        at: Mapping[str, int] | None = None,
        goal: Mapping[str, SourceVersion] | None = None,
    ) -> RefreshReport:
        """Bring the table to the sources' newest versions, or to those given.

        Args:
            full: Recompute all rows, and the state of every state table.
            at: Versions of sources to go to; the others go to their newest.
            goal: For a state table: the versions chosen already.

        Raises:
            SourceError: In mode ``differential``, a source's history is gone or altered; or a version asked for does not exist.
            NotDifferentiableError: In mode ``differential``, the query cannot be maintained.
            ConflictError: Another refresh came first.
        """
        try:
            return self._run(full=full, at=at, goal=goal)
        except (ConflictError, StateTooBigError):
            raise
        except Exception as error:
            # Files of the state that an overtaken refresh computes from are deleted, and its versions are the past.
            if self._is_overtaken():
                raise _conflict(self.target.name) from error
            raise

    def _is_overtaken(self) -> bool:
        """Tell whether another refresh of the table has committed since this one began."""
        try:
            return self.began is not None and self.target.state().record_version != self.began.record_version
        except Exception:
            return False  # what is wrong with the table was said already

    def _run(
        self, *, full: bool, at: Mapping[str, int] | None, goal: Mapping[str, SourceVersion] | None
    ) -> RefreshReport:
        with self.watch.step("look"):
            self.began = state = self.target.state()
            # A full refresh needs no record, so it also repairs one that cannot be read.
            record = None if full else read_record(self.target.name, state)
            self.costs = self.costs or (record.costs if record is not None else known_costs(state))
            aim = dict(goal) if goal is not None else self._goal(at)
            if self.gives_way and record is not None:
                self._give_way(record, aim)
        reason = self._why_full(state, record, full=full)
        if reason is None and record is not None and _stands_at(record, aim):
            return self._report("no_data", None, None, record, state.version)
        if reason is None and record is not None:
            ranges = self._ranges(self.prepared.sources, record, aim)
            self.change = Change.of((n, self._rows_of(s)) for n, s in ranges.items())
            reason = self._why_broken(ranges)
            if reason is None and goal is None and self.mode == "auto":
                reason = self._why_cheaper(record, self.costs)
        if reason is not None and reason.code == codes.COST and not self._remembers:
            # To fill the state tables too may take as long again: they wait until a refresh needs them. Not so what is
            # remembered: the next change could not be told from rows that were computed without it.
            return self._full(state, aim, reason)
        is_kept = reason is None or reason.code == codes.COST
        if record is not None and is_kept:
            record = self._caught_up(record)
        rebuilt = self._refresh_state_tables(aim, record, full=full, gives_way=is_kept and not at)
        if reason is None and record is not None:
            ranges = self._ranges(self.prepared.program.used, record, aim)
            reason = rebuilt or self._why_broken(ranges)
        if reason is not None or record is None:
            first = Reason(codes.FIRST_REFRESH, "the table has no refresh on record")
            return self._full(state, aim, reason or first)
        try:
            report = self._differential(state, record, aim, ranges)
        except StateError as error:
            if error.code != codes.STATE_MISMATCH or self.mode == "differential":
                raise
            return self._full(state, aim, Reason(error.code, error.message))
        # What the last refresh stood on is not needed any more.
        for program in self.prepared.state_tables:
            if (
                self.state_tables is not None
                and program.state_table is not None
                and program.state_table.name in record.frontier
            ):
                self.state_tables.clean(program.state_table.name, record.frontier[program.state_table.name].version)
        return report

    # -- state tables

    @property
    def _remembers(self) -> bool:
        """True if some state table holds values that cannot be computed twice alike."""
        return any(p.state_table is not None and p.state_table.is_required for p in self.prepared.state_tables)

    def _is_behind(self, record: RefreshRecord) -> bool:
        """Tell whether the last refresh went without some state table."""
        return any(
            p.state_table is not None and p.state_table.name not in record.frontier for p in self.prepared.state_tables
        )

    def _caught_up(self, record: RefreshRecord) -> RefreshRecord:
        """Bring the state tables that the last refresh went without to its frontier; they go on from there."""
        if not self._is_behind(record):
            return record
        frontier = dict(record.frontier)
        for program in self.prepared.state_tables:
            name, state_table = self._open_state_table(program, frontier)
            if name not in frontier:
                with self.watch.step(_CATCH_UP):
                    state_table.watch = Stopwatch()
                    self._run_state_table(program, state_table, frontier, full=True)
        return record.model_copy(update={"frontier": frontier})

    def _refresh_state_tables(
        self, goal: dict[str, SourceVersion], record: RefreshRecord | None, *, full: bool, gives_way: bool
    ) -> Reason | None:
        """Refresh what the table stands on, and add the state tables' versions to the goal; tells why one was recomputed."""
        rebuilt = None
        for program in self.prepared.state_tables:
            name, state_table = self._open_state_table(program, goal)
            state_table.gives_way = gives_way
            if record is not None and name in record.frontier:
                self.stood[name] = self._digest_of(name, record.frontier[name].version)
            is_behind = record is not None and name not in record.frontier
            lost = not full and record is not None and not is_behind and self._is_empty(state_table)
            if lost and self.mode == "differential":
                raise self._lost_state(_LOST_STATE.text)
            report, damaged = self._run_state_table(program, state_table, goal, full=full or is_behind)
            if report.mode == "full":
                rebuilt = rebuilt or (damaged or (_LOST_STATE if lost else report.reason))
        return rebuilt

    def _digest_of(self, name: str, version: int) -> str | None:
        """Give a state table's digest at a version, before a checkpoint of its next refresh may cut its short log there."""
        try:
            self.sources[name].head()  # notices that what is known of the log no longer holds
            return self.sources[name].digest(version)
        except SourceError:
            return None

    def _is_empty(self, state_table: Refresh) -> bool:
        """Tell whether a state table has no record; one that cannot be read is looked at when it is refreshed."""
        try:
            return state_table.target.state().record is None
        except SourceError:
            return False

    def _lost_state(self, text: str) -> StateError:
        hint = "Call refresh(full=True) once; refreshes after it are differential again."
        return StateError(codes.STATE_MISSING, f"stream table '{self.target.name}': {text}.", hint=hint)

    def _give_way(self, record: RefreshRecord, goal: Mapping[str, SourceVersion]) -> None:
        """Let a refresh go first that has brought this state table further than its goal: the sources are looked at again.

        Else the state table would go back, which takes a recompute, and the other refresh could not commit.
        """
        for name, new in goal.items():
            seen, source = record.frontier.get(name), self.sources[name]
            if seen is None or seen.identity != new.identity or seen.version <= new.version:
                continue
            if source.head() >= seen.version and source.digest(seen.version) == seen.digest:
                raise _conflict(self.target.name)

    def _open_state_table(self, program: Program, goal: Mapping[str, SourceVersion]) -> tuple[str, Refresh]:
        """Give a state table's name and its refresh, with its table made if there is none."""
        if self.state_tables is None or program.state_table is None:
            message = "a plan with state tables needs a place for them"
            raise AssertionError(message)
        name = program.state_table.name
        with self.watch.step("look"):
            target, self.sources[name] = self.state_tables.open(name, self._rows_of_state_table(program, goal))
        unit = self.prepared.of_state_table(program, self.sources)
        return name, Refresh(self.jvm, unit, target, self.mode, options=self.options, watch=self.watch)

    def _rows_of_state_table(self, program: Program, goal: Mapping[str, SourceVersion]) -> Callable[[], DataFrame]:
        inputs = Inputs(self.sources, goal, goal, self.target)
        return partial(evaluate_by_spark(self.jvm, inputs, self.options).frame, program.plan)

    def _run_state_table(
        self, program: Program, state_table: Refresh, goal: dict[str, SourceVersion], *, full: bool
    ) -> tuple[RefreshReport, Reason | None]:
        """Refresh a state table and add its version to the goal; a damaged one is made anew, which the reason tells."""
        if self.state_tables is None or program.state_table is None:
            message = "a plan with state tables needs a place for them"
            raise AssertionError(message)
        name, damaged = program.state_table.name, None
        wanted = {n: goal[n] for n in state_table.prepared.program.used}
        try:
            report = state_table.run(full=full, goal=wanted)
        except (ConflictError, StateTooBigError):
            raise
        except Exception as error:
            damage = (
                None
                if self._is_overtaken()
                else self.state_tables.damage(name, self._rows_of_state_table(program, goal))
            )
            if isinstance(error, StateError) and error.code == UNREADABLE_RECORD:
                damage = error.message
            if damage is None and full and not self._is_overtaken():
                damage = str(error)  # it is to be computed anew at all events: then with nothing of the old one
            if damage is None:
                raise
            if self.mode == "differential" and not full:
                raise self._lost_state(f"the state stored with it is damaged: {damage}") from error
            damaged = Reason(codes.STATE_MISSING, f"the state stored with it was damaged and built anew: {damage}")
            self.state_tables.forget(name)
            _, state_table = self._open_state_table(program, goal)
            report = state_table.run(full=True, goal=wanted)
        self.changed.update(state_table.changed)
        self.sources[name].head()  # notices that another refresh made the state table anew
        goal[name] = _version_of(self.sources[name], report.version)
        return report, damaged

    # -- choosing

    def _goal(self, at: Mapping[str, int] | None) -> dict[str, SourceVersion]:
        sources = self.prepared.sources
        asked = dict(at or {})
        if asked and self.prepared.obstacles:
            text = f"'{self.target.name}' is recomputed by Spark over the newest versions: {self.prepared.obstacles[0].text}"
            raise SourceError("NOT_PINNED", text, hint="Refresh it without versions.")
        goal = {}
        for name, source in sources.items():
            version = asked.pop(name, None)
            if version is None:
                version = asked.pop(short_name(name), None)
            head = source.head()
            if version is not None and not 0 <= version <= head:
                text = f"source '{name}' has versions 0 to {head}, not {version}."
                raise SourceError("NO_SUCH_VERSION", text, hint="Ask for a version that exists.")
            chosen = head if version is None else version
            goal[name] = _version_of(source, chosen)
        if asked:
            text = f"{', '.join(map(repr, asked))} is not a source of '{self.target.name}'."
            raise SourceError("UNKNOWN_SOURCE", text, hint=f"Its sources are {', '.join(sources)}.")
        return goal

    def _why_full(self, state: TargetState, record: RefreshRecord | None, *, full: bool) -> Reason | None:
        if full:
            return Reason(codes.REQUESTED, "a full refresh was asked for")
        if self.mode == "full":
            return Reason(codes.MODE_FULL, "the stream table is in mode 'full'")
        if self.prepared.obstacles:
            obstacle = self.prepared.obstacles[0]
            if self.mode == "differential":
                raise NotDifferentiableError(obstacle.code, obstacle.text, hint=obstacle.hint)
            return obstacle
        if record is None:
            return None
        changed = self._what_changed(state, record)
        if changed is not None and self.mode == "differential":
            text = f"stream table '{self.target.name}': {changed.text}."
            raise StateError(changed.code, text, hint="Call refresh(full=True) once; then it is differential again.")
        return changed

    def _what_changed(self, state: TargetState, record: RefreshRecord) -> Reason | None:
        """Tell why the stored rows are no basis for a change."""
        if state.external:
            text = f"others wrote to the stream table: {', '.join(state.external)}"
            return Reason(codes.TABLE_MODIFIED, text, "Write to the sources, not to the stream table.")
        if record.fingerprint != self.prepared.fingerprint:
            return Reason(codes.DEFINITION_CHANGED, "a view in the query was redefined since the last refresh")
        if {n for n in record.frontier if not is_state_table(n)} != {
            n for n in self.prepared.sources if not is_state_table(n)
        }:
            return Reason(codes.DEFINITION_CHANGED, "the query now reads other sources than at the last refresh")
        if any(is_state_table(n) and n not in record.frontier for n in self.prepared.sources):
            return _LOST_STATE
        return None

    def _rows_of(self, versions: VersionRange) -> int:
        return versions.bytes // self.options.assumed_row_bytes if versions.rows is None else versions.rows

    def _why_broken(self, ranges: Mapping[str, VersionRange]) -> Reason | None:
        """Tell why a source's change cannot be known, None if all can; not to know is an error in mode ``differential``."""
        broken = next((s.broken for s in ranges.values() if s.broken is not None), None)
        if broken is not None and self.mode == "differential":
            if broken.code == codes.STATE_MISSING:
                raise self._lost_state(broken.text)
            hint = broken.hint or "Call refresh(full=True) once; refreshes after it are differential again."
            raise SourceError(broken.code, f"stream table '{self.target.name}': {broken.text}", hint=hint)
        return broken

    def _why_cheaper(self, record: RefreshRecord, costs: Costs) -> Reason | None:
        """Tell why recomputing is the cheaper way, None if it is not thought to be."""
        self.estimate = costs.estimate(self.change, is_behind=self._is_behind(record), options=self.options)
        if not self.estimate.prefers_full:
            return None
        text = (
            f"{self.change.rows} changed rows are thought to take {self.estimate.differential:.1f} s, "
            f"a full refresh {self.estimate.full or 0:.1f} s"
        )
        return Reason(codes.COST, text)

    def _learnt(self, mode: str, reason: Reason | None) -> Costs:
        """Give what is known of costs with what this refresh took up to now.

        What a refresh before it had left to do is not its own cost.
        """
        costs, seconds = self.costs or Costs(), self.watch.seconds - self.watch.steps.get(_CATCH_UP, 0.0)
        if mode == "full":
            chosen = reason is not None and reason.code == codes.COST
            return costs.after_full(seconds, self.change if chosen else None, self.options)
        return costs.after_differential(seconds, self.change, self.options)

    def _telling(self, record: RefreshRecord, reason: Reason | None) -> Callable[[], str]:
        """Give what writes a record at the last moment: the commit tells the next process all that it took but itself."""
        return lambda: record.model_copy(update={"costs": self._learnt(record.mode, reason)}).model_dump_json()

    def _learn(self, report: RefreshReport) -> None:
        """Remember what it cost, for the next choice in this process."""
        estimate = self.estimate
        foreseen = estimate and (estimate.full if report.mode == "full" else estimate.differential)
        self.costs = self._learnt(report.mode, report.reason)
        if foreseen and was_wrong(foreseen, report.seconds):
            text = "stream table %s: a %s refresh took %.1f s, %.1f s were foreseen; corrected for the next one"
            logger.info(text, report.table, report.mode, report.seconds, foreseen)

    def _ranges(
        self, names: Iterable[str], record: RefreshRecord, goal: Mapping[str, SourceVersion]
    ) -> dict[str, VersionRange]:
        """Tell from the logs what happened since the last refresh; what stands still is left out."""
        with self.watch.step("classify"):
            for name in names:
                if name not in self.ranges and not record.frontier[name].is_same(goal[name]):
                    self.ranges[name] = self._range(name, record.frontier[name], goal[name])
        return {name: self.ranges[name] for name in names if name in self.ranges}

    def _range(self, name: str, old: SourceVersion, new: SourceVersion) -> VersionRange:
        versions = self._range_of(name, old, new)
        if versions.broken is None or not is_state_table(name):
            return versions
        text = f"the state stored with it is not the one that the last refresh left ({versions.broken.text})"
        return replace(versions, broken=Reason(codes.STATE_MISSING, text))

    def _range_of(self, name: str, old: SourceVersion, new: SourceVersion) -> VersionRange:
        from trickle.tables.contract import VersionRange as SourceSpan

        if old.identity != new.identity:
            text = f"source '{name}' was dropped and made anew since version {old.version}"
            return SourceSpan(old.version, new.version, broken=Reason(codes.SOURCE_REPLACED, text))
        restored = self._why_restored(name, old, new)
        if restored is not None:
            return SourceSpan(old.version, new.version, broken=restored)
        columns = self.prepared.program.used.get(name) or self.prepared.used[name]
        return self.sources[name].classify(old.version, new.version, columns)

    def _why_restored(self, name: str, old: SourceVersion, new: SourceVersion) -> Reason | None:
        """Tell that the version of the last refresh is not, or not surely, what it was; None if it is."""
        source = self.sources[name]
        if name in self.stood:
            now = self.stood[name]
        elif old.version > source.head():
            now = ""
        else:
            now = new.digest if old.version == new.version else source.digest(old.version)
        if old.digest is None or now == old.digest:
            return None
        if now is None:
            text = f"version {old.version} of source '{name}', where the last refresh stood, is gone from its log"
            return Reason(codes.HISTORY_EXPIRED, text, "Refresh more often, or raise delta.logRetentionDuration.")
        text = f"version {old.version} of source '{name}' is not the one that the last refresh saw"
        return Reason(
            codes.SOURCE_RESTORED, f"{text}: the table was put back to an earlier state, or its log was changed"
        )

    # -- doing

    def _full(self, state: TargetState, goal: Mapping[str, SourceVersion], reason: Reason) -> RefreshReport:
        if reason.code not in (codes.REQUESTED, codes.MODE_FULL, codes.FIRST_REFRESH, codes.COST):
            logger.warning("stream table %s is refreshed in full: %s", self.target.name, reason)
        new = new_record("full", reason, goal, self.prepared)
        with self.watch.step("plan"):
            rows = self._all_rows(goal).named(self.prepared.names)
        state_table = self.prepared.program.state_table
        with self.watch.step("write"):
            try:
                applied = self.target.overwrite(rows, self._telling(new, reason), state, self._most_rows)
            except TooManyRowsError as error:
                raise StateTooBigError("" if state_table is None else state_table.name) from error
        return self._report("full", reason, applied, new, applied.version)

    def _all_rows(self, goal: Mapping[str, SourceVersion]) -> Rows:
        """Give the rows at a frontier, perhaps not yet run. A query that is only ever recomputed runs as Spark has it."""
        if self.prepared.obstacles:
            return Rows(self.jvm.frame(self.prepared.analysed))
        program = self.prepared.program
        inputs = Inputs(self.sources, goal, goal, self.target)
        evaluation = evaluate_by_spark(self.jvm, inputs, self.options)
        if not goal.keys() >= program.used.keys():
            return Rows(evaluation.frame(program.whole))
        if (
            all(is_state_table(name) for name in program.used)
            and not {"driver_execution", "key_lookup"} & program.disable
        ):
            # What stands on small state tables alone needs no Spark job.
            leaves = replace(evaluation.leaves, looks_up=True)
            rows = replace(evaluation, leaves=leaves, in_driver=True).rows_in_driver(program.plan)
            if rows is not None:
                return rows
        frame = evaluation.frame(program.plan)
        if self._most_rows is None:
            return Rows(frame)
        # Of a state table that is too big no task writes more than what shows it, so that it does not take the room of all.
        return Rows(self.jvm.part_by_part(frame, self._most_rows + 1))

    @property
    def _most_rows(self) -> int | None:
        """How many rows it may have; None if it is kept whatever its size, as results and needed state tables are."""
        state_table = self.prepared.program.state_table
        return None if state_table is None or state_table.is_required else self.options.state_rows

    def _differential(
        self,
        state: TargetState,
        record: RefreshRecord,
        goal: Mapping[str, SourceVersion],
        ranges: Mapping[str, VersionRange],
    ) -> RefreshReport:
        program = self.prepared.program
        new = new_record("differential", None, goal, self.prepared)
        with self.watch.step("read changes"):
            changes = read_changes(self.jvm, program, self.sources, ranges, self.options)
        self.changed.update((n, count) for n, count in changes.counts.items() if not is_state_table(n))
        inputs = Inputs(self.sources, record.frontier, goal, self.target, changes.rows)
        looks_up = "key_lookup" not in program.disable
        if looks_up and "declared_keys" not in program.disable:
            sources = {n: self.sources[n] for n in program.used}
            inputs = replace(inputs, declared=DeclaredKeys(sources, record.frontier, goal, changes.tables))
        leaves = Leaves(self.jvm, inputs, self.options, looks_up=looks_up)
        evaluation = Evaluation(changes.spark, leaves, in_driver="driver_execution" not in program.disable)
        changed = changes.counts
        touched = frozenset(n for n, count in changed.items() if count)
        try:
            applied = None
            if touched:
                with self.watch.step("derive"):
                    plan = program.derive(touched, inputs.fan_out)
                change = Application(evaluation, self.prepared, self.target, self.watch)
                applied = change.apply(plan, self._telling(new, None), state)
            if applied is None:
                with self.watch.step("commit"):
                    applied = self.target.touch(self._telling(new, None), state)
        finally:
            evaluation.release()
        return self._report("differential", None, applied, new, applied.version)

    # -- telling

    def _report(
        self,
        mode: str,
        reason: Reason | None,
        applied: Applied | None,
        record: RefreshRecord,
        version: int,
    ) -> RefreshReport:
        report = RefreshReport(
            table=self.target.name,
            mode=mode,  # type: ignore[arg-type]
            reason=reason,
            rows_inserted=applied.rows_inserted if applied else 0,
            rows_deleted=applied.rows_deleted if applied else 0,
            frontier={n: s.version for n, s in record.frontier.items() if not is_state_table(n)},
            version=version,
            seconds=self.watch.seconds,
            steps=dict(self.watch.steps),
            changed=dict(self.changed),
            estimate=self.estimate,
        )
        if mode != "no_data":
            self._learn(report)
        return report


def _stands_at(record: RefreshRecord, goal: Mapping[str, SourceVersion]) -> bool:
    return all(n in record.frontier and record.frontier[n].is_same(v) for n, v in goal.items())


def _version_of(source: SourceTable, version: int) -> SourceVersion:
    return SourceVersion(version=version, identity=source.identity(version), digest=source.digest(version))


def _conflict(table: str) -> ConflictError:
    text = f"Another refresh of stream table {table} went ahead while this one was running; nothing was written."
    return ConflictError("CONCURRENT_REFRESH", text, hint="Refresh again: it starts from where the other one ended.")
