"""A refresh over fake tables: what is looked at, which steps run, and that explain foresees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.errors import ConflictError, SourceError
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.refresh.decide import decide
from trickle.refresh.explain import foresee
from trickle.refresh.look import look
from trickle.refresh.request import Request
from trickle.refresh.run import Refresh
from trickle.refresh.steps import AdvanceFrontier, NoData, Step, describe
from trickle.refresh.tables import RefreshTables
from trickle.tables.contract import Applied, TargetState, VersionRange
from trickle.tables.redefinition import Redefinition


@dataclass
class Source:
    """A source whose commits change no rows."""

    newest: int = 1
    classified: list[tuple[int, int]] = field(default_factory=list)
    path: str = "orders"

    def head(self) -> int:
        return self.newest

    def identity(self, version: int) -> str:
        assert version <= self.newest
        return "orders"

    def record(self, version: int) -> None:
        assert version >= 0

    overwrites_late = False

    def digest(self, version: int, _before: int = 0) -> str:
        return f"d{version}"

    def classify(self, since: int, upto: int, columns: object) -> VersionRange:
        assert columns == ("id",)
        self.classified.append((since, upto))
        return VersionRange(since, upto)


@dataclass
class Target:
    """A table that takes records alone."""

    record: str | None
    name: str = "totals"
    version: int = 3

    def state(self) -> TargetState:
        return TargetState(self.version, self.record, self.version)

    def touch(self, record: Any, expected: TargetState) -> Applied:
        assert expected == self.state()
        self.record, self.version = record(0, 0), self.version + 1
        return Applied(self.version, 0, 0)


class NoState:
    """State tables that nobody may look at."""

    def get(self, name: str) -> None:
        pytest.fail(f"{name} was looked at")


def tables_at(version: int, source: Source, **prepared: Any) -> RefreshTables:
    seen = SourceVersion(version=version, identity="orders", digest=f"d{version}")
    record = RefreshRecord(refresh_id="r", mode="full", frontier={"orders": seen}, fingerprint="f", started="now")
    known = {
        "sources": {"orders": source},
        "program": SimpleNamespace(used={"orders": ("id",)}, state_table=None),
        "used": {"orders": ("id",)},
        "state_tables": (),
        "fingerprint": "f",
        "obstacles": (),
        "without": (),
        "names": ("id",),
    }
    ready: Any = SimpleNamespace(**{**known, **prepared})
    target: Any = Target(record.model_dump_json())
    store: Any = NoState()
    return RefreshTables(ready, target, "auto", store)


def run(tables: RefreshTables, **asked: Any) -> tuple[Any, list[Step]]:
    jvm: Any = None
    steps: list[Step] = []
    return Refresh(jvm, tables, Request(before_step=steps.append, **asked)).run(), steps


def test_a_table_where_nothing_is_new_is_only_looked_at():
    source = Source(newest=1)
    state_table = SimpleNamespace(state_table=SimpleNamespace(name="@1", is_required=False))
    tables = tables_at(1, source, state_tables=(state_table,))

    outcome, steps = run(tables)

    assert outcome.report.mode == "no_data"
    assert (outcome.report.version, outcome.report.frontier) == (3, {"orders": 1})
    assert steps == [NoData()]
    assert source.classified == []


def test_commits_without_rows_advance_the_frontier_once():
    tables = tables_at(1, Source(newest=4))

    outcome, steps = run(tables)
    again, _ = run(tables)

    assert steps == [AdvanceFrontier()]
    assert (outcome.report.mode, outcome.report.version, outcome.report.frontier) == ("differential", 4, {"orders": 4})
    assert outcome.costs.warm == {"differential"}
    assert again.report.mode == "no_data"


def test_versions_can_be_pinned():
    outcome, _ = run(tables_at(1, Source(newest=4)), at={"orders": 2})

    assert outcome.report.frontier == {"orders": 2}
    with pytest.raises(SourceError, match="NO_SUCH_VERSION"):
        run(tables_at(1, Source(newest=4)), at={"orders": 5})
    with pytest.raises(SourceError, match="UNKNOWN_SOURCE"):
        run(tables_at(1, Source(newest=4)), at={"items": 1})


def test_a_run_leaves_a_table_where_others_have_brought_it_since_it_began():
    tables = tables_at(3, Source(newest=4))

    further, steps = run(tables, pinned={"orders": 2})
    on, _ = run(tables, pinned={"orders": 4})
    back, _ = run(tables, at={"orders": 2})

    assert (further.report.mode, further.report.frontier, steps) == ("no_data", {"orders": 3}, [NoData()])
    assert on.report.frontier == {"orders": 4}
    assert back.report.frontier == {"orders": 2}


def test_a_definition_that_is_not_the_planned_one_is_not_replaced():
    tables = tables_at(1, Source(newest=4))
    planned = Redefinition({}, instead_of="another definition")

    with pytest.raises(ConflictError, match="CONCURRENT_ALTER"):
        run(tables, full=True, redefine=planned)

    assert tables.target.state().version == 3


def test_a_run_goes_to_its_own_version_of_a_source_that_is_not_the_one_of_before():
    source = Source(newest=4)
    source.digest = lambda version, _before=0: f"restored {version}"

    now = look(tables_at(3, source), tables_at(3, source).target.state(), Request(pinned={"orders": 2}))

    assert now.goal["orders"].version == 2


def test_what_stops_a_step_leaves_the_table_as_it_is():
    tables = tables_at(1, Source(newest=4))

    def stop(step: Step) -> None:
        raise KeyboardInterrupt(step)

    with pytest.raises(KeyboardInterrupt):
        Refresh(None, tables, Request(before_step=stop)).run()

    assert tables.target.state().version == 3


def test_an_error_of_a_refresh_that_was_overtaken_is_a_conflict():
    tables = tables_at(1, Source(newest=4))

    def overtake(_: Step) -> None:
        target: Any = tables.target
        target.version += 1
        raise OSError

    with pytest.raises(ConflictError, match="CONCURRENT_REFRESH"):
        Refresh(None, tables, Request(before_step=overtake)).run()


@pytest.mark.parametrize("newest", [1, 4])
def test_explain_shows_the_steps_that_run_and_changes_nothing(newest):
    tables = tables_at(1, Source(newest=newest))
    foreseen = decide(look(tables, tables.target.state(), Request()))
    shown = foresee(tables, Request())
    outcome, steps = run(tables)

    assert list(foreseen) == steps
    assert shown.mode == outcome.report.mode
    assert shown.steps == tuple(map(describe, steps))


def test_explain_tells_that_the_next_refresh_would_fail():
    tables = tables_at(1, Source(newest=4))
    target: Any = tables.target
    target.record = "{}"

    shown = foresee(tables, Request())

    assert shown.mode == "an error"
    assert "UNREADABLE_RECORD" in " ".join(shown.steps)
