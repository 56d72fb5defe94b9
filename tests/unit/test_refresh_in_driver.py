"""Whole differential refreshes in the driver, over tables of Arrow rows: no Spark, every step of the loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from trickle.algebra.aggregate_state import AggregateState, Term
from trickle.algebra.expr import Call, Col, Column, Output, new_column, passthrough
from trickle.algebra.plan import Aggregate, Scan
from trickle.compile.program import compile_plan
from trickle.errors import StateError
from trickle.model import reason as codes
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.model.keys import NO_KEYS
from trickle.refresh.request import Request
from trickle.refresh.run import Refresh
from trickle.refresh.steps import ApplyChange, CleanState, Recompute, RefreshStateTable, Step
from trickle.refresh.tables import RefreshTables
from trickle.tables.contract import Applied, TargetState, VersionRange

Rows = Counter[tuple[int, ...]]


def arrow(rows: Rows, names: Any, *, weights: bool = False) -> pa.Table:
    flat = [(*row, n) for row, n in rows.items()] if weights else list(rows.elements())
    columns = (*names, "__weight") if weights else tuple(names)
    return pa.table([pa.array([row[i] for row in flat], pa.int64()) for i, _ in enumerate(columns)], names=columns)


@dataclass
class Table:
    """A table with versions: a source, and a target whose commits are its versions."""

    name: str
    columns: tuple[str, ...]
    versions: list[Rows]
    written: str | None = None
    recorded: int = 0
    path: str = ""

    # -- a source

    def head(self) -> int:
        return len(self.versions) - 1

    def identity(self, version: int) -> str:
        return f"{self.name} {version * 0}"

    def record(self, version: int) -> None:
        assert version >= 0

    overwrites_late = False

    def digest(self, version: int, _before: int = 0) -> str:
        return f"{self.name} {version}"

    def keys(self, _: int) -> Any:
        return NO_KEYS

    def rows(self, version: int) -> int:
        return self.versions[version].total()

    def domain(self, *_: object) -> None:
        return None

    def classify(self, since: int, upto: int, _: object) -> VersionRange:
        changed = self.versions[since] != self.versions[upto]
        return VersionRange(since, upto, "mixed" if changed else "none", 1)

    def small_changes(self, versions: VersionRange, columns: Any) -> pa.Table:
        change = Counter(self._pick(versions.upto, columns))
        change.subtract(self._pick(versions.since, columns))
        return arrow(Counter({row: n for row, n in change.items() if n}), columns, weights=True)

    def find(self, version: int, columns: Any, keys: Any) -> pa.Table:
        assert not keys
        return arrow(self._pick(version, columns), columns)

    def _pick(self, version: int, columns: Any) -> Rows:
        places = [self.columns.index(c) for c in columns]
        found: Rows = Counter()
        for row, n in self.versions[version].items():
            found[tuple(row[p] for p in places)] += n
        return found

    # -- a target

    def state(self) -> TargetState:
        return TargetState(self.head(), self.written, self.recorded)

    def apply_bag(self, change: pa.Table, record: Any, expected: TargetState) -> Applied:
        rows = Counter(self.versions[-1])
        for *row, weight in zip(*(c.to_pylist() for c in change.columns), strict=True):
            rows[tuple(row)] += weight
        if any(n < 0 for n in rows.values()):
            raise StateError(codes.STATE_MISMATCH, "a row to delete is not there.")
        return self._commit(+rows, record, expected)

    def accumulate(self, delta: pa.Table, keys: Any, record: Any, expected: TargetState, count: str) -> Applied:
        assert (keys, count) == (["k0"], "n")
        stored = dict(self.versions[-1].keys())
        for key, n in zip(*(c.to_pylist() for c in delta.columns), strict=True):
            stored[key] = stored.get(key, 0) + n
        return self._commit(Counter((key, n) for key, n in stored.items() if n), record, expected)

    def overwrite(self, rows: pa.Table, record: Any, expected: TargetState, *_: object) -> Applied:
        return self._commit(Counter(zip(*(c.to_pylist() for c in rows.columns), strict=True)), record, expected)

    def touch(self, record: Any, expected: TargetState) -> Applied:
        return self._commit(self.versions[-1], record, expected)

    def _commit(self, rows: Rows, record: Any, expected: TargetState) -> Applied:
        assert expected == self.state()
        self.versions.append(rows)
        self.written, self.recorded = record(0, 0), self.head()
        return Applied(self.head(), 0, 0)


@dataclass
class Store:
    """One state table."""

    table: Table | None
    cleaned: list[int] = field(default_factory=list)

    def get(self, _: str) -> tuple[Any, Any] | None:
        return None if self.table is None else (self.table, self.table)

    def open(self, name: str, _: object) -> tuple[Any, Any]:
        found = self.get(name)
        assert found is not None
        return found

    def damage(self, *_: object) -> None:
        return None

    def clean(self, _: str, version: int) -> None:
        self.cleaned.append(version)


class Counts:
    """``SELECT k, count(*) AS n FROM orders GROUP BY k`` over three orders, refreshed at version 0."""

    def __init__(self) -> None:
        k, n = Column(1, "k", "bigint"), new_column("n", "bigint")
        key, count = Output(new_column("k", "bigint"), Col(k)), Output(n, Call("count", (Col(k),)))
        stored, term = Output(new_column("k0", "bigint"), Col(k)), Term(new_column("n", "bigint"))
        results = (Output(key.column, Col(stored.column)), Output(n, Col(term.column)))
        state = AggregateState((stored,), (term,), results, passthrough((key.column, n)))
        plan = Aggregate((Col(k),), (key, count), Scan("orders", (k,)), state)
        self.program = compile_plan(plan)
        self.orders = Table("orders", ("k",), [Counter({(1,): 2, (2,): 1})])
        counts: Rows = Counter({(1, 2): 1, (2, 1): 1})
        sources = {"orders": self.at(self.orders)}
        state_table = Table("counts", ("k0", "n"), [counts], self.record_of(sources))
        self.store = Store(state_table)
        self.table = Table("counts", ("k", "n"), [counts], self.record_of({**sources, "@1": self.at(state_table)}))

    @staticmethod
    def at(table: Table) -> SourceVersion:
        return SourceVersion(version=0, identity=table.identity(0), digest=table.digest(0))

    @staticmethod
    def record_of(frontier: dict[str, SourceVersion]) -> str:
        record = RefreshRecord(refresh_id="r", mode="full", frontier=frontier, fingerprint="f", started="now")
        return record.model_dump_json()

    def prepared(self, program: Any = None, sources: Any = None) -> Any:
        program = program or self.program
        return SimpleNamespace(
            program=program,
            sources=sources or {"orders": self.orders},
            state_tables=program.state_tables,
            used={"orders": ("k",)},
            obstacles=(),
            names=tuple(c.name for c in program.plan.columns),
            fingerprint="f",
            without=(),
            of_state_table=lambda part, found: self.prepared(part, {n: found[n] for n in part.used}),
        )

    def refresh(self, mode: Any = "auto", **asked: Any) -> tuple[Any, list[Step]]:
        steps: list[Step] = []
        jvm: Any = SimpleNamespace(spark=None)
        target: Any = self.table
        store: Any = self.store
        tables = RefreshTables(self.prepared(), target, mode, store)
        request = Request(**{"before_step": steps.append, **asked})
        return Refresh(jvm, tables, request).run().report, steps

    def is_right(self) -> bool:
        expected = Counter((k, n) for (k,), n in self.orders.versions[-1].items())
        return self.table.versions[-1] == expected


@pytest.fixture
def counts() -> Counts:
    return Counts()


def test_a_change_goes_through_the_state_table_to_the_table(counts):
    counts.orders.versions.append(Counter({(1,): 3, (3,): 1}))

    report, steps = counts.refresh("differential")

    assert steps == [RefreshStateTable("@1"), ApplyChange(("@1",)), CleanState("@1", 0)]
    assert (report.mode, report.changed, report.frontier) == ("differential", {"orders": 3}, {"orders": 1})
    assert counts.is_right()
    assert counts.store.cleaned == [0]
    assert counts.refresh()[0].mode == "no_data"


def test_several_refreshes_go_on_from_one_another(counts):
    for rows in ({(1,): 1}, {(1,): 1, (5,): 2}, {(5,): 2, (2,): 4}):
        counts.orders.versions.append(Counter(rows))
        assert counts.refresh("differential")[0].mode == "differential"
        assert counts.is_right()


def test_a_change_that_cancels_advances_the_frontier(counts):
    counts.orders.versions.append(counts.orders.versions[0])

    report, steps = counts.refresh()

    assert [describe_type(step) for step in steps] == ["RefreshStateTable", "AdvanceFrontier", "CleanState"]
    assert (report.mode, report.frontier) == ("differential", {"orders": 1})


def test_a_refresh_killed_between_state_table_and_table_is_made_good(counts):
    counts.orders.versions.append(Counter({(1,): 5}))

    def die(step: Step) -> None:
        if isinstance(step, ApplyChange):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        counts.refresh(before_step=die)
    counts.orders.versions.append(Counter({(1,): 5, (9,): 1}))

    assert counts.refresh("differential")[0].mode == "differential"
    assert counts.is_right()


def describe_type(step: Step) -> str:
    return type(step).__name__


def test_stored_rows_that_do_not_fit_are_recomputed_from_the_state(counts):
    counts.table.versions[-1] = Counter({(7, 7): 1})
    counts.orders.versions.append(Counter({(1,): 3, (2,): 1}))

    report, steps = counts.refresh()

    assert [describe_type(step) for step in steps] == ["RefreshStateTable", "ApplyChange", "Recompute"]
    assert isinstance(steps[-1], Recompute)
    assert steps[-1].reason.code == report.reason.code == codes.STATE_MISMATCH
    assert counts.is_right()


def test_stored_rows_that_do_not_fit_are_an_error_in_mode_differential(counts):
    counts.table.versions[-1] = Counter({(7, 7): 1})
    counts.orders.versions.append(Counter({(1,): 3, (2,): 1}))

    with pytest.raises(StateError, match="STATE_MISMATCH"):
        counts.refresh("differential")


def test_lost_state_is_an_error_in_mode_differential_before_anything_is_written(counts):
    counts.store.table = None
    counts.orders.versions.append(Counter({(1,): 3}))

    with pytest.raises(StateError, match="STATE_MISSING"):
        counts.refresh("differential")


def test_state_that_was_put_back_is_noticed(counts):
    state = counts.store.table
    state.digest = lambda version, _before=0: f"restored {version}"
    counts.orders.versions.append(Counter({(1,): 3}))

    report, _ = counts.refresh()

    assert report.reason.code == codes.STATE_MISSING
    assert counts.is_right()
