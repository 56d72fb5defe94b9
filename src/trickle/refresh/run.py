"""One refresh: look at the sources, choose the mode, compute, commit. The only place where a refresh writes."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from trickle.algebra.plan import Plan, Scan
from trickle.algebra.walk import walk
from trickle.compile.program import SELF
from trickle.errors import NotDifferentiableError, SourceError, StateError
from trickle.model import reason as codes
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.model.names import short_name
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport
from trickle.refresh.evaluate import DRIVER_ROWS, Evaluation, Rows
from trickle.rules.derive import net

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.algebra.expr import Column
    from trickle.catalyst.jvm import Jvm
    from trickle.compile.program import ChangePlan
    from trickle.model.definition import Mode
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import Applied, SourceTable, Span, TargetState, TargetTable


logger = logging.getLogger("trickle")


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each step, in order."""

    started: float = field(default_factory=time.perf_counter)
    steps: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; the same name twice adds up."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.steps[name] = self.steps.get(name, 0.0) + time.perf_counter() - begun

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started


@dataclass(slots=True)
class Refresh:
    """A refresh of one stream table to one frontier."""

    jvm: Jvm
    prepared: Prepared
    target: TargetTable
    mode: Mode
    watch: Stopwatch = field(default_factory=Stopwatch)

    def run(self, *, full: bool = False, at: Mapping[str, int] | None = None) -> RefreshReport:
        """Bring the table to the sources' newest versions, or to those given.

        Raises:
            SourceError: In mode ``differential``, a source's history is gone or altered; or a version asked for does not exist.
            NotDifferentiableError: In mode ``differential``, the query cannot be maintained.
        """
        with self.watch.step("look"):
            state = self.target.state()
            # A full refresh needs no record, so it also repairs one that cannot be read.
            record = None if full else read_record(self.target.name, state)
            goal = self._goal(at)
        reason = self._why_full(state, record, full=full)
        if reason is not None or record is None:
            first = Reason(codes.FIRST_REFRESH, "the table has no refresh on record")
            return self._full(state, goal, reason or first)
        moved = {n: v for n, v in goal.items() if v != record.frontier[n]}
        if not moved:
            return self._report("no_data", None, None, record, state.version)
        with self.watch.step("classify"):
            spans = {n: self._span(n, record.frontier[n], v) for n, v in moved.items()}
        broken = next((s.broken for s in spans.values() if s.broken is not None), None)
        if broken is not None:
            if self.mode == "differential":
                hint = broken.hint or "Call refresh(full=True) once; refreshes after it are differential again."
                raise SourceError(broken.code, f"stream table '{self.target.name}': {broken.text}", hint=hint)
            return self._full(state, goal, broken)
        try:
            return self._differential(state, record, goal, spans)
        except StateError as error:
            if error.code != codes.STATE_MISMATCH or self.mode == "differential":
                raise
            return self._full(state, goal, Reason(error.code, error.message))

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
            goal[name] = SourceVersion(version=chosen, identity=source.identity(chosen))
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
        if state.foreign:
            text = f"others wrote to the stream table: {', '.join(state.foreign)}"
            return Reason(codes.TABLE_MODIFIED, text, "Write to the sources, not to the stream table.")
        if record.fingerprint != self.prepared.fingerprint:
            return Reason(codes.DEFINITION_CHANGED, "a view in the query was redefined since the last refresh")
        if set(record.frontier) != set(self.prepared.sources):
            return Reason(codes.DEFINITION_CHANGED, "the query now reads other sources than at the last refresh")
        return None

    def _span(self, name: str, old: SourceVersion, new: SourceVersion) -> Span:
        from trickle.tables.contract import Span as SourceSpan

        if old.identity != new.identity:
            text = f"source '{name}' was dropped and made anew since version {old.version}"
            return SourceSpan(old.version, new.version, broken=Reason(codes.SOURCE_REPLACED, text))
        return self.prepared.sources[name].classify(old.version, new.version, self.prepared.program.used[name])

    # -- doing

    def _full(self, state: TargetState, goal: Mapping[str, SourceVersion], reason: Reason) -> RefreshReport:
        if reason.code not in (codes.REQUESTED, codes.MODE_FULL):
            logger.warning("stream table %s is refreshed in full: %s", self.target.name, reason)
        new = new_record("full", reason, goal, self.prepared)
        with self.watch.step("plan"):
            rows = self._named(full_rows(self.jvm, self.prepared, goal))
        with self.watch.step("write"):
            applied = self.target.overwrite(rows, new.model_dump_json(), state)
        return self._report("full", reason, applied, new, applied.version)

    def _differential(
        self,
        state: TargetState,
        record: RefreshRecord,
        goal: Mapping[str, SourceVersion],
        spans: Mapping[str, Span],
    ) -> RefreshReport:
        program = self.prepared.program
        new = new_record("differential", None, goal, self.prepared)
        live = {n: s for n, s in spans.items() if s.kind != "none"}
        with self.watch.step("read changes"):
            known = [s.rows for s in live.values()]
            local = None not in known and sum(r for r in known if r is not None) <= DRIVER_ROWS
            evaluation = Evaluation(self.jvm, self._snapshots(record.frontier, goal), {}, local=local)
            evaluation.changes = {n: self._changes(evaluation, n, s) for n, s in live.items()}
        changed = {n: r.count for n, r in evaluation.changes.items()}
        touched = frozenset(n for n, count in changed.items() if count)
        try:
            applied = None
            if touched:
                only_in = frozenset(n for n in touched if live[n].kind == "append")
                with self.watch.step("derive"):
                    plan = program.derive(touched, only_in)
                applied = self._apply(evaluation, plan, new, state)
            if applied is None:
                with self.watch.step("commit"):
                    applied = self.target.touch(new.model_dump_json(), state)
        finally:
            evaluation.release()
        return self._report("differential", None, applied, new, applied.version, changed)

    def _changes(self, evaluation: Evaluation, name: str, span: Span) -> Rows:
        """Read a source's change once, only the used columns, netted."""
        used = self.prepared.program.used[name]
        frame = self.prepared.sources[name].changes(span, used)
        if evaluation.local:
            # Few rows: one partition sums their weights without a shuffle.
            frame = frame.coalesce(1)
        columns = tuple(_column_of(self.prepared.program.plan, name, c) for c in used)
        scan = Scan(name, columns, "change")
        raw = Evaluation(self.jvm, evaluation.snapshot, {name: Rows(frame, -1)}, local=evaluation.local)
        # Rows that only came cannot cancel.
        rows = raw.materialise(raw.frame(scan if span.kind == "append" else net(scan)))
        evaluation._kept.extend(raw._kept)
        return rows

    def _apply(
        self, evaluation: Evaluation, plan: ChangePlan, record: RefreshRecord, state: TargetState
    ) -> Applied | None:
        """Compute and commit; None if nothing of it reaches the table."""
        text = record.model_dump_json()
        if plan.change is not None:
            with self.watch.step("compute"):
                rows = evaluation.rows(plan.change)
            if rows is None or not rows.count:
                return None
            with self.watch.step("commit"):
                return self.target.apply_bag(self._named(rows.frame), text, state)
        keyed = self.prepared.program.keyed
        if plan.keys is None or plan.rows is None or keyed is None:
            message = "a change plan replaces keys or has a change"
            raise AssertionError(message)
        with self.watch.step("compute"):
            keys = evaluation.rows(plan.keys)
            if keys is None or not keys.count:
                return None
            rows = evaluation.rows(plan.rows)
            frame = evaluation.frame(self.prepared.program.plan) if rows is None else rows.frame
            if rows is None:
                frame = frame.limit(0)
        with self.watch.step("commit"):
            names = tuple(self._names()[c.id] for c in keyed.keys)
            touched = keys.frame.toDF(*names) if names else keys.frame
            return self.target.replace_keys(self._named(frame), touched, names, text, state)

    def _snapshots(
        self, old: Mapping[str, SourceVersion], new: Mapping[str, SourceVersion]
    ) -> Callable[[Scan], DataFrame]:
        def snapshot(scan: Scan) -> DataFrame:
            if scan.source == SELF:
                return self.target.frame().toDF(*(c.name for c in scan.base))
            at = old if scan.at == "old" else new
            source = self.prepared.sources[scan.source]
            return source.snapshot(at[scan.source].version, self.prepared.program.used[scan.source])

        return snapshot

    def _names(self) -> dict[int, str]:
        return {c.id: n for c, n in zip(self.prepared.program.plan.columns, self.prepared.names, strict=True)}

    def _named(self, frame: DataFrame) -> DataFrame:
        """Give the result's columns their names in the query."""
        extra = frame.columns[len(self.prepared.names) :]
        return frame.toDF(*self.prepared.names, *extra)

    # -- telling

    def _report(
        self,
        mode: str,
        reason: Reason | None,
        applied: Applied | None,
        record: RefreshRecord,
        version: int,
        changed: Mapping[str, int] | None = None,
    ) -> RefreshReport:
        return RefreshReport(
            table=self.target.name,
            mode=mode,  # type: ignore[arg-type]
            reason=reason,
            rows_inserted=applied.rows_inserted if applied else 0,
            rows_deleted=applied.rows_deleted if applied else 0,
            frontier={n: s.version for n, s in record.frontier.items()},
            version=version,
            seconds=self.watch.seconds,
            steps={**self.watch.steps, **(applied.steps if applied else {})},
            changed=dict(changed or {}),
        )


def new_record(
    mode: Literal["differential", "full"],
    reason: Reason | None,
    frontier: Mapping[str, SourceVersion],
    prepared: Prepared,
) -> RefreshRecord:
    """Write down what a commit is about to say of itself."""
    return RefreshRecord(
        refresh_id=uuid.uuid4().hex,
        mode=mode,
        reason=str(reason) if reason else None,
        frontier=dict(frontier),
        fingerprint=prepared.fingerprint,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def first_refresh(jvm: Jvm, prepared: Prepared) -> tuple[DataFrame, RefreshRecord]:
    """Give the rows and the record of a stream table that is being made."""
    frontier = heads(prepared.sources)
    rows = full_rows(jvm, prepared, frontier).toDF(*prepared.names)
    reason = Reason(codes.FIRST_REFRESH, "the stream table was made")
    return rows, new_record("full", reason, frontier, prepared)


def heads(sources: Mapping[str, SourceTable]) -> dict[str, SourceVersion]:
    """Give the sources' newest versions."""
    found = {}
    for name, source in sources.items():
        version = source.head()
        found[name] = SourceVersion(version=version, identity=source.identity(version))
    return found


def read_record(table: str, state: TargetState) -> RefreshRecord | None:
    """Read the record of the newest refresh."""
    if state.record is None:
        return None
    try:
        return RefreshRecord.model_validate_json(state.record)
    except ValueError as error:
        text = f"stream table '{table}' carries a record that this version of Trickle cannot read."
        raise StateError(
            "UNREADABLE_RECORD", text, hint="Use the version that wrote it, or refresh(full=True)."
        ) from error


def full_rows(jvm: Jvm, prepared: Prepared, at: Mapping[str, SourceVersion]) -> DataFrame:
    """Give the query's rows at a frontier. A query that is only ever recomputed runs as Spark has it."""
    if prepared.obstacles:
        return jvm.frame(prepared.analysed)

    def snapshot(scan: Scan) -> DataFrame:
        source = prepared.sources[scan.source]
        return source.snapshot(at[scan.source].version, prepared.program.used[scan.source])

    return Evaluation(jvm, snapshot, {}).frame(prepared.program.plan)


def _column_of(plan: Plan, source: str, name: str) -> Column:
    return next(c for p in walk(plan) if isinstance(p, Scan) and p.source == source for c in p.base if c.name == name)
