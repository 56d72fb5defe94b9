"""What a refresh does, as a function of what it knows: without Spark, without tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trickle.errors import ConflictError, NotDifferentiableError, SourceError, StateError
from trickle.model import reason as codes
from trickle.model.cost import Change, Estimate
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport
from trickle.refresh.decide import LOST_STATE, decide
from trickle.refresh.explain import foreseen_mode
from trickle.refresh.situation import Situation, StateTableFacts
from trickle.refresh.steps import (
    AdvanceFrontier,
    ApplyChange,
    CatchUp,
    CleanState,
    Fail,
    NoData,
    Recompute,
    RefreshStateTable,
    describe,
)
from trickle.tables.contract import TargetState, VersionRange

STATE = StateTableFacts("@1", digest="d")
DEAR = Estimate(differential=10.0, full=1.0)


def at(version: int, identity: str = "id") -> SourceVersion:
    return SourceVersion(version=version, identity=identity)


def record(**frontier: SourceVersion) -> RefreshRecord:
    named = {"@1" if name == "state" else name: version for name, version in frontier.items()}
    return RefreshRecord(refresh_id="r", mode="full", frontier=named, fingerprint="f", started="now")


def situation(**facts: Any) -> Situation:
    """A table over ``orders`` that was refreshed at version 1; it is at version 2 now, with rows appended."""
    known: dict[str, Any] = {
        "table": "totals",
        "mode": "auto",
        "state": TargetState(3, "…", 3),
        "record": record(orders=at(1)),
        "goal": {"orders": at(2)},
        "sources": frozenset({"orders"}),
        "used": frozenset({"orders"}),
        "fingerprint": "f",
        "ranges": {"orders": VersionRange(1, 2, "append", 5)},
        "change": Change(sources=("orders",), rows=5),
    }
    return Situation(**{**known, **facts})


def with_state(**facts: Any) -> Situation:
    """The same over a state table that the last refresh read at version 7."""
    known: dict[str, Any] = {
        "record": record(orders=at(1), state=at(7)),
        "used": frozenset({"@1"}),
        "state_tables": (STATE,),
    }
    return situation(**{**known, **facts})


def refreshed(now: Situation, *, kind: str = "mixed", **facts: Any) -> Situation:
    """The same after the state table was refreshed to version 8."""
    ranges: dict[str, Any] = {**now.ranges, "@1": VersionRange(7, 8, kind, 1)}
    now = replace(now, goal={**now.goal, "@1": at(8)}, ranges=ranges)
    return now.with_state_table(replace(now.state_table("@1"), **facts))


def done(mode: Any) -> RefreshReport:
    return RefreshReport("totals", mode, None, 1, 0, {"orders": 2}, 4, 0.1)


# -- nothing new, or only a change


def test_nothing_new_is_nothing_to_do():
    assert decide(situation(goal={"orders": at(1)}, ranges={})) == (NoData(),)


def test_a_change_is_applied():
    assert decide(situation()) == (ApplyChange(("orders",)),)


def test_a_commit_that_changed_no_rows_advances_the_frontier():
    assert decide(situation(ranges={"orders": VersionRange(1, 2)})) == (AdvanceFrontier(),)


def test_a_change_that_turns_out_empty_advances_the_frontier():
    assert decide(situation(is_change_empty=True)) == (AdvanceFrontier(),)


@pytest.mark.parametrize("mode", ["differential", "full", "no_data"])
def test_a_refresh_that_is_done_has_no_steps_left(mode):
    assert decide(situation(report=done(mode))) == ()


# -- each reason for a full refresh

OBSTACLE = Reason("NON_DETERMINISTIC", "rand() gives other values at each run", "Remove it.")
EXPIRED = Reason(codes.HISTORY_EXPIRED, "orders was vacuumed")
MISMATCH = StateError(codes.STATE_MISMATCH, "a row to delete is not there.")
OTHER_SOURCES = {"sources": frozenset({"orders", "items"}), "goal": {"orders": at(1), "items": at(0)}}
REASONS = [
    (codes.FIRST_REFRESH, {"record": None, "ranges": {}}),
    (codes.REQUESTED, {"record": None, "ranges": {}, "is_full_asked": True}),
    (codes.MODE_FULL, {"mode": "full"}),
    (OBSTACLE.code, {"obstacles": (OBSTACLE,)}),
    (codes.TABLE_MODIFIED, {"state": TargetState(4, "…", 3, ("DELETE",))}),
    (codes.DEFINITION_CHANGED, {"fingerprint": "another"}),
    (codes.DEFINITION_CHANGED, OTHER_SOURCES),
    (codes.STATE_MISSING, {"sources": frozenset({"orders", "@1"})}),
    *(
        (code, {"ranges": {"orders": VersionRange(1, 2, broken=Reason(code, "so it is"))}})
        for code in (
            codes.SOURCE_REPLACED,
            codes.SOURCE_ALTERED,
            codes.SOURCE_REWOUND,
            codes.SOURCE_RESTORED,
            codes.HISTORY_EXPIRED,
        )
    ),
    (codes.STATE_MISMATCH, {"mismatch": MISMATCH}),
    (codes.COST, {"estimate": DEAR}),
]


@pytest.mark.parametrize(("code", "facts"), REASONS)
def test_each_reason_recomputes_in_mode_auto(code, facts):
    (step,) = decide(situation(**facts))

    assert isinstance(step, Recompute)
    assert step.reason.code == code
    assert foreseen_mode((step,)) == "full"
    assert code in describe(step)


ERRORS = {
    OBSTACLE.code: NotDifferentiableError,
    **dict.fromkeys((codes.TABLE_MODIFIED, codes.DEFINITION_CHANGED), StateError),
}


@pytest.mark.parametrize(
    ("code", "facts"),
    [(c, f) for c, f in REASONS if c not in (codes.FIRST_REFRESH, codes.REQUESTED, codes.MODE_FULL, codes.COST)],
)
def test_mode_differential_fails_where_auto_recomputes(code, facts):
    (step,) = decide(situation(**facts, mode="differential"))

    assert isinstance(step, Fail)
    assert step.error.code == code
    assert isinstance(step.error, ERRORS.get(code, SourceError | StateError))
    assert step.error.hint or code == codes.STATE_MISMATCH
    assert foreseen_mode((step,)) == "an error"


def test_mode_differential_recomputes_at_first_and_when_asked_to():
    for code, facts in REASONS[:2]:
        (step,) = decide(situation(**facts, mode="differential"))
        assert isinstance(step, Recompute)
        assert step.reason.code == code


def test_a_full_refresh_that_is_asked_for_needs_no_basis_in_mode_differential():
    facts = {"obstacles": (OBSTACLE,), "fingerprint": "another", "is_full_asked": True, "record": None, "ranges": {}}

    (step,) = decide(situation(**facts, mode="differential"))

    assert isinstance(step, Recompute)
    assert step.reason.code == codes.REQUESTED


def test_the_stored_rows_are_looked_at_before_the_sources():
    facts = {"fingerprint": "another", "ranges": {"orders": VersionRange(1, 2, broken=EXPIRED)}, "estimate": DEAR}

    (step,) = decide(situation(**facts))

    assert isinstance(step, Recompute)
    assert step.reason.code == codes.DEFINITION_CHANGED


# -- cost


def test_a_recompute_for_its_cost_leaves_the_state_tables_alone():
    (step,) = decide(with_state(estimate=DEAR))

    assert isinstance(step, Recompute)
    assert step.from_sources
    assert "5 changed rows are estimated to take 10.0 s, a full refresh 1.0 s" in step.reason.text


def test_a_recompute_for_its_cost_reads_what_is_remembered():
    steps = decide(with_state(estimate=DEAR, state_tables=(replace(STATE, is_required=True),)))

    assert steps[:-1] == (RefreshStateTable("@1"),)
    assert isinstance(steps[-1], Recompute)
    assert not steps[-1].from_sources


def test_a_change_that_is_thought_to_be_cheap_is_applied():
    assert decide(situation(estimate=Estimate(differential=0.1, full=1.0))) == (ApplyChange(("orders",)),)


# -- state tables


def test_a_state_table_is_refreshed_first_and_what_the_last_refresh_read_is_deleted():
    now = with_state()
    clean = CleanState("@1", 7)

    assert decide(now) == (RefreshStateTable("@1"), ApplyChange(("@1",)), clean)
    assert decide(refreshed(now)) == (ApplyChange(("@1",)), clean)
    assert decide(refreshed(now, kind="none")) == (AdvanceFrontier(), clean)
    assert decide(replace(refreshed(now), report=done("differential"))) == (clean,)
    assert decide(replace(refreshed(now), report=done("full"))) == ()


def test_a_state_table_that_the_last_refresh_went_without_catches_up_first():
    now = with_state(record=record(orders=at(1)))

    assert decide(now)[:2] == (CatchUp("@1"), RefreshStateTable("@1"))
    assert decide(now.with_frontier("@1", at(0)))[0] == RefreshStateTable("@1")


def test_a_state_table_that_waits_is_recomputed_with_a_table_that_is():
    steps = decide(with_state(record=record(orders=at(1)), fingerprint="another"))

    assert steps[0] == RefreshStateTable("@1", full=True, may_go_back=True)
    assert isinstance(steps[1], Recompute)


def test_a_full_refresh_recomputes_the_state_tables():
    steps = decide(with_state(record=None, ranges={}, is_full_asked=True))

    assert steps[0] == RefreshStateTable("@1", full=True, may_go_back=True)


def test_a_state_table_may_go_back_only_to_versions_that_were_asked_for():
    assert decide(with_state(is_pinned=True))[0] == RefreshStateTable("@1", may_go_back=True)


def test_a_state_table_that_is_gone_is_made_anew_and_the_table_recomputed():
    now = with_state(state_tables=(replace(STATE, is_empty=True),))

    assert decide(now) == (RefreshStateTable("@1"), Recompute(LOST_STATE))
    assert decide(refreshed(now, rebuilt=LOST_STATE)) == (Recompute(LOST_STATE),)


def test_a_state_table_that_turned_out_rebuilt_recomputes_the_table():
    rebuilt = Reason(codes.STATE_MISMATCH, "a count became negative")

    assert decide(refreshed(with_state(), rebuilt=rebuilt)) == (Recompute(rebuilt),)


def test_a_state_table_that_turned_out_damaged_is_made_anew():
    now = with_state(state_tables=(replace(STATE, damage="its log is garbled"),))

    step, *rest = decide(now)

    assert step == RefreshStateTable("@1", damage="its log is garbled")
    assert "rebuilt: its log is garbled" in describe(step)
    assert rest


def test_a_state_table_whose_version_of_then_is_another_one_recomputes_the_table():
    broken = Reason(codes.STATE_MISSING, "the state stored with it is not the one that the last refresh left")
    now = with_state(goal={"orders": at(2), "@1": at(8)}, ranges={"@1": VersionRange(7, 8, broken=broken)})

    assert decide(now) == (Recompute(broken),)


@pytest.mark.parametrize("facts", [{"is_empty": True}, {"damage": "its log is garbled", "cause": OSError()}])
def test_mode_differential_does_not_make_lost_state_anew(facts):
    (step,) = decide(with_state(mode="differential", state_tables=(replace(STATE, **facts),)))

    assert isinstance(step, Fail)
    assert step.error.code == codes.STATE_MISSING
    assert step.cause is facts.get("cause")


def test_mode_differential_fills_damaged_state_that_waited_anyhow():
    facts = {"record": record(orders=at(1)), "state_tables": (replace(STATE, damage="its log is garbled"),)}

    assert decide(with_state(mode="differential", **facts))[0] == CatchUp("@1", "its log is garbled")


def test_a_state_table_that_another_refresh_has_brought_further_is_a_conflict():
    (step,) = decide(situation(is_ahead=True, fingerprint="another"))

    assert isinstance(step, Fail)
    assert isinstance(step.error, ConflictError)


def test_every_step_says_what_it_does():
    steps = (
        NoData(),
        CatchUp("@1"),
        RefreshStateTable("@1"),
        ApplyChange(("orders",)),
        AdvanceFrontier(),
        Recompute(LOST_STATE),
        CleanState("@1", 7),
        Fail(MISMATCH),
    )

    assert len({describe(step) for step in steps}) == len(steps)


def test_a_change_that_is_skipped_advances_the_frontier_and_the_state_alone():
    assert decide(situation(is_skip_asked=True)) == (AdvanceFrontier(skips=True),)
    assert decide(with_state(is_skip_asked=True)) == (RefreshStateTable("@1"), AdvanceFrontier(skips=True))
    assert "pass over" in describe(AdvanceFrontier(skips=True))
