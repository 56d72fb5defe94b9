"""What mode auto learns from a table's refreshes."""

from __future__ import annotations

import pytest

from trickle.model.cost import Change, Costs, was_wrong

WARM = frozenset({"differential", "full"})


def orders(rows: int) -> Change:
    return Change.of([("orders", rows)])


def learnt(full: float, *took: tuple[int, float]) -> Costs:
    costs = Costs(full=full, warm=WARM)
    for rows, seconds in took:
        costs = costs.after_differential(seconds, orders(rows))
    return costs


def test_nothing_known_is_differential():
    assert not Costs().estimate(orders(10_000_000)).prefers_full


def test_what_is_not_known_is_tried_unless_it_is_far_too_much():
    assert not learnt(3.0).estimate(orders(2_000_000)).prefers_full
    assert learnt(3.0).estimate(orders(20_000_000)).prefers_full


def test_moments_do_not_matter():
    assert not learnt(0.1, (10, 0.7)).estimate(orders(10)).prefers_full


def test_the_first_refresh_of_a_mode_in_a_process_counts_in_part():
    created = Costs().after_full(4.0)
    refreshed = created.after_differential(4.0, orders(10))

    assert created.full == 3.0
    assert refreshed.estimate(orders(10)).differential == 2.0
    assert not refreshed.estimate(orders(10)).prefers_full
    assert refreshed.after_differential(4.0, orders(10)).estimate(orders(10)).prefers_full
    assert created.after_full(4.0).full == 4.0


def test_state_left_behind_counts_against_differential():
    costs = learnt(4.0, (1000, 3.0), (10, 0.3))

    assert not costs.estimate(orders(1000)).prefers_full
    assert costs.estimate(orders(1000), is_behind=True).prefers_full
    assert not costs.estimate(orders(10), is_behind=True).prefers_full


def test_full_is_tried_again_some_day():
    costs = learnt(9.0, (1000, 3.0))
    times = 0
    while not costs.estimate(orders(1000)).prefers_full:
        costs = costs.after_differential(3.0, orders(1000))
        times += 1

    assert 50 < times < 200


def test_another_process_starts_up_again():
    known = Costs.model_validate_json(learnt(3.0, (10, 1.0)).model_dump_json())

    assert known.estimate(orders(10)).differential == 1.0
    assert known.after_differential(5.0, orders(10)).estimate(orders(10)).differential == 2.5


def test_what_an_older_version_learnt_is_no_obstacle():
    assert Costs.model_validate_json('{"full": 3.0, "differential": 1.0, "rows": 7}') == Costs(full=3.0)


def test_between_two_known_changes_cost_grows_with_the_rows():
    costs = learnt(3.0, (1000, 0.5), (1_000_000, 10.5))

    assert 0.5 < costs.estimate(orders(100_000)).differential < 2.0
    assert not costs.estimate(orders(100_000)).prefers_full
    assert costs.estimate(orders(500_000)).prefers_full
    assert not costs.estimate(orders(1)).prefers_full


def test_a_change_of_other_sources_is_another_matter():
    costs = learnt(3.0, (1, 20.0))
    elsewhere = Change.of([("lines", 1)])

    assert costs.estimate(orders(1)).prefers_full
    assert not costs.estimate(elsewhere).prefers_full
    assert not costs.estimate(Change.of([("lines", 1), ("orders", 1)])).prefers_full
    assert costs.after_differential(0.1, elsewhere).estimate(orders(1)).prefers_full


def test_the_latest_of_like_changes_counts():
    costs = learnt(3.0, (1000, 9.0)).after_differential(1.0, orders(1010))

    assert costs.estimate(orders(1010)).differential == 1.0


@pytest.mark.parametrize(
    ("costs", "rows"),
    [(learnt(3.0, (10_000, 7.0)), 10_000), (learnt(3.0, (10, 7.0)), 10_000), (learnt(3.0), 4_000_000)],
)
def test_no_mode_is_lost_for_ever(costs: Costs, rows: int):
    times = 0
    while costs.estimate(orders(rows)).prefers_full:
        costs = costs.after_full(3.0, orders(rows))
        times += 1

    assert 10 < times < 40


def test_what_is_known_has_an_end():
    costs = learnt(3.0)
    for number in range(100):
        costs = costs.after_differential(1.0, Change.of([(f"t{number}", 1)]))

    assert len(costs.known) == 24
    assert costs.estimate(Change.of([("t99", 1)])).differential == 1.0


def test_an_estimate_is_wrong_beyond_a_factor_of_two_that_matters():
    assert was_wrong(1.0, 2.5)
    assert was_wrong(5.0, 2.0)
    assert not was_wrong(1.0, 1.9)
    assert not was_wrong(0.1, 0.5)
