"""Weights of equal rows, summed in two ways."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.driver.read import net_rows

COLUMNS = {
    "n": (pa.int32(), st.sampled_from([None, 0, -1, 7])),
    "d": (pa.decimal128(15, 2), st.sampled_from([None, Decimal("0.10"), Decimal("-9999999999999.99")])),
    "s": (pa.string(), st.sampled_from([None, "", "a", "a\0b", "straße"])),
    "t": (pa.date32(), st.sampled_from([None, date(1992, 1, 1), date(1, 1, 1)])),
    "b": (pa.bool_(), st.sampled_from([None, True, False])),
    "f": (pa.float64(), st.sampled_from([None, 0.0, -0.0, 1.5])),
}


def columns(*names: str) -> pa.Schema:
    return pa.schema([*((n, COLUMNS[n][0]) for n in names), pa.field(WEIGHT, pa.int64(), nullable=False)])


@pytest.mark.parametrize("bound", [0, 1000])
@settings(deadline=None)
@given(rows=st.lists(st.tuples(*(COLUMNS[n][1] for n in "ndstb"), st.sampled_from([-2, -1, 1, 3])), max_size=40))
def test_weights_of_equal_rows_are_summed(bound, rows):
    schema = columns(*"ndstb")
    change = pa.table([list(values) for values in zip(*rows, strict=True)] or [[]] * 6, schema=schema)
    expected = Counter()
    for *row, weight in rows:
        expected[tuple(row)] += weight

    found = net_rows(change, schema, Options(polars_net_rows=bound))

    assert found.schema == schema
    summed = {tuple(row.values())[:-1]: row[WEIGHT] for row in found.to_pylist()}
    assert summed == {row: weight for row, weight in expected.items() if weight}
    assert found.num_rows == len(summed)


@pytest.mark.parametrize("bound", [0, 1000])
def test_zeros_that_differ_by_a_bit_do_not_cancel(bound):
    schema = columns("f")

    found = net_rows(
        pa.table([[0.0, -0.0, 1.5, 1.5], [1, -1, 1, -1]], schema=schema), schema, Options(polars_net_rows=bound)
    )

    assert found.num_rows == 2
