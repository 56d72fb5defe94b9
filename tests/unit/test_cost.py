"""What mode auto learns from a table's refreshes."""

from __future__ import annotations

from trickle.model.cost import Costs, was_wrong


def test_nothing_known_is_differential():
    assert not Costs().estimate(10_000_000).prefers_full


def test_a_change_far_too_big_for_the_usual_rate_is_recomputed():
    assert Costs(full=3.0).estimate(2_000_000).prefers_full
    assert not Costs(full=3.0).estimate(20_000).prefers_full


def test_moments_do_not_matter():
    assert not Costs(full=0.1, differential=0.9, rows=10).estimate(10).prefers_full


def test_the_first_refresh_of_a_mode_in_a_process_counts_by_half():
    created = Costs().after_full(4.0, chosen=False)
    refreshed = created.after_differential(3.0, rows=10)

    assert not refreshed.estimate(10).prefers_full
    assert refreshed.after_differential(3.0, rows=10).estimate(10).prefers_full
    assert created.after_full(4.0, chosen=True).after_differential(3.0, rows=10).estimate(10).full == 4.0


def test_another_process_starts_up_again():
    known = Costs.model_validate_json(Costs(full=3.0).after_differential(1.0, rows=10).model_dump_json())

    assert known.after_differential(5.0, rows=10).differential == 2.5


def test_a_slow_differential_refresh_is_remembered_and_scaled():
    costs = Costs(full=3.0, warm=frozenset({"differential"})).after_differential(2.0, rows=10_000)

    assert not costs.estimate(5_000).prefers_full
    assert costs.estimate(30_000).prefers_full


def test_no_mode_is_lost_for_ever():
    costs = Costs(full=3.0, differential=7.0, rows=10_000)
    times = 0
    while costs.estimate(10_000).prefers_full:
        costs = costs.after_full(3.0, chosen=True)
        times += 1

    assert 10 < times < 40


def test_an_estimate_is_wrong_beyond_a_factor_of_two_that_matters():
    assert was_wrong(1.0, 2.5)
    assert was_wrong(5.0, 2.0)
    assert not was_wrong(1.0, 1.9)
    assert not was_wrong(0.1, 0.5)
