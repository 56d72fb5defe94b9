"""A fixed part of what `make fuzz` does: random queries over random tables, compared with plain Spark after each round."""

from __future__ import annotations

import pytest

from trickle.testing.fuzz.case import draw_case
from trickle.testing.fuzz.choose import choose
from trickle.testing.fuzz.report import script

SEED = 2026


QUICK = (0,)
"""Two cases of different regimes."""


@pytest.mark.parametrize(
    "number", [number if number in QUICK else pytest.param(number, marks=pytest.mark.slow) for number in range(8)]
)
def test_random_queries_stay_equal_to_plain_spark(bench, number):
    outcome = bench.run(choose(bench.plain, draw_case(SEED, number, views=6, rounds=4), 3))

    assert not outcome.failures, script(outcome.failures[0], f"make fuzz SEED={SEED} CASE={number}")
    assert any(refresh.changed for refresh in outcome.refreshes)
    assert all(refresh.mode in ("differential", "no_data") for refresh in outcome.refreshes)
