"""Decimals divided in the driver are rounded as Spark rounds averages."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from trickle.algebra.expr import Call, Cast, Col, Column
from trickle.refresh.driver_values import Values

SUMS = st.none() | st.decimals(min_value=-(10**18), max_value=10**18, places=2)
COUNTS = st.none() | st.decimals(min_value=0, max_value=10**12, places=0)


@given(pairs=st.lists(st.tuples(SUMS, COUNTS), min_size=1, max_size=20))
def test_average_is_rounded_half_up(pairs):
    total, count = Column(1, "total", "decimal(30,2)"), Column(2, "count", "decimal(20,0)")
    rows = pl.DataFrame(
        {"1": [a for a, _ in pairs], "2": [b for _, b in pairs]},
        schema={"1": pl.Decimal(30, 2), "2": pl.Decimal(20, 0)},
    )
    quotient = Cast(Call("/", (Col(total), Col(count))), Column(0, "", "decimal(38,6)"))

    found = Values(lambda _: None).value(quotient, rows).to_list()

    wide = Context(prec=80, rounding=ROUND_HALF_UP)
    expected = [None if a is None or not b else wide.quantize(wide.divide(a, b), Decimal("1e-6")) for a, b in pairs]
    assert found == expected
