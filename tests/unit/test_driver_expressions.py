"""Decimals divided in the driver are rounded as Spark rounds averages."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trickle.algebra.expr import Call, Cast, Col, Column
from trickle.compute.driver import expressions as driver_expressions
from trickle.compute.driver.expressions import Expressions, NotHereError

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

    found = Expressions(lambda _: None).value(quotient, rows).to_list()

    wide = Context(prec=80, rounding=ROUND_HALF_UP)
    expected = [None if a is None or not b else wide.quantize(wide.divide(a, b), Decimal("1e-6")) for a, b in pairs]
    assert found == expected


numbers = st.one_of(st.none(), st.integers(-(10**7), 10**7), st.integers(-(10**17), 10**17))


@given(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20),
    st.integers(0, 6),
    st.integers(0, 4),
    st.integers(0, 12),
)
def test_quotients_are_the_same_one_by_one_and_all_at_once(pairs, scale, divisor_scale, result_scale):
    dividends, divisors = (
        pa.array([None if p[i] is None else Decimal(p[i]).scaleb(-s) for p in pairs], pa.decimal128(30, s))
        for i, s in ((0, scale), (1, divisor_scale))
    )
    type_ = pa.decimal128(38, result_scale)
    quick = driver_expressions._small_quotients(dividends, divisors, type_)
    assume(quick is not None)

    expected = []
    for a, b in zip(dividends.to_pylist(), divisors.to_pylist(), strict=True):
        exact = None if a is None or not b else Fraction(a) / Fraction(b) * 10**result_scale
        rounded = None if exact is None else int(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
        expected.append(None if rounded is None else Decimal(rounded).scaleb(-result_scale))

    assert quick.to_pylist() == expected


@pytest.mark.parametrize(("name", "expected"), [("least", 1), ("greatest", 2)])
def test_extremes_of_floating_point_are_left_to_spark(name, expected):
    def value(kind, rows):
        columns = Column(1, "a", kind), Column(2, "b", kind)
        return Expressions(lambda _: None).value(Call(name, tuple(map(Col, columns))), pl.DataFrame(rows))

    assert value("bigint", {"1": [1], "2": [2]}).to_list() == [expected]
    with pytest.raises(NotHereError):
        value("double", {"1": [float("nan")], "2": [1.0]})
