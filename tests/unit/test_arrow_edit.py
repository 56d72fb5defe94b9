"""Edits of Arrow tables against the same edits of Python rows, on random small tables full of NULLs, NaNs and zeros."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.tables.arrow.edit import Edit, MissingRowsError, edit_bag, edit_keys, edit_sum
from trickle.tables.arrow.local import row_key

ROW = pa.schema([("a", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
WEIGHTED = ROW.append(pa.field("__weight", pa.int64()))
KEY = pa.schema([("a", pa.int64()), ("f", pa.float64())])
SUM = pa.schema([*KEY, ("n", pa.int64()), ("total", pa.decimal128(38, 0))])

KEYS = st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, 0.0, -0.0, float("nan"), 1.0]))
ROWS = st.builds(lambda key, text: (*key, text), KEYS, st.sampled_from([None, "x", "y"]))


def table(rows: Any, schema: pa.Schema) -> pa.Table:
    """Rows in two pieces, as a table of two files has them."""
    rows = list(rows)
    half = len(rows) // 2
    parts = [
        pa.table([pa.array([row[at] for row in part], field.type) for at, field in enumerate(schema)], schema=schema)
        for part in (rows[:half], rows[half:])
    ]
    return pa.concat_tables(parts)


def rows_of(arrow: pa.Table) -> list[Any]:
    return list(zip(*(column.to_pylist() for column in arrow.columns), strict=True))


def after(stored: pa.Table, edit: Edit) -> list[Any]:
    assert len(np.unique(edit.leaving)) == len(edit.leaving)
    staying = np.ones(stored.num_rows, np.bool_)
    staying[edit.leaving] = False
    return rows_of(stored.filter(pa.array(staying))) + rows_of(edit.inserts)


def unique(rows: Any) -> dict[Any, Any]:
    return {row_key(row[:2]): row for row in rows}


NUMBERS = st.tuples(
    st.sampled_from([None, 1, 2]), st.sampled_from([None, 0.3, 0.1, -1e300, float("inf"), 5e-324]), st.just("x")
)


@settings(deadline=None)
@given(rows=st.lists(NUMBERS, min_size=1, max_size=12), come=st.lists(NUMBERS, max_size=4), data=st.data())
def test_rows_with_other_last_digits_are_taken_back(rows: Any, come: Any, data: Any) -> None:
    went = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))

    def nearly(row: Any) -> Any:
        ulps = data.draw(st.integers(-3, 3))
        value = row[1]
        for _ in range(0 if value is None or math.isinf(value) else abs(ulps)):
            value = math.nextafter(value, math.copysign(math.inf, ulps))
        return (row[0], value, row[2])

    stored = table(rows, ROW)
    change = [(*nearly(rows[at]), -1) for at in went] + [(*row, 1) for row in come]

    edit = edit_bag(stored, table(change, WEIGHTED))

    expected = [row for at, row in enumerate(rows) if at not in went] + come
    assert Counter(map(rounded, after(stored, edit))) == Counter(map(rounded, expected))
    assert len(edit.leaving) == len(went)


def rounded(row: Any) -> Any:
    return row[0], None if row[1] is None else float(f"{row[1]:.12g}") if abs(row[1]) > 1e-12 else 0.0, row[2]


def test_the_nearest_of_several_goes_and_what_is_far_is_missing() -> None:
    stored = table([(1, 0.3, "x"), (1, 0.3000000000000002, "x"), (1, 0.4, "x"), (2, 0.3, "x")], ROW)

    edit = edit_bag(stored, table([(1, 0.30000000000000004, "x", -1), (1, 0.30000000000000027, "x", -1)], WEIGHTED))

    assert sorted(edit.leaving) == [0, 1]
    for far in ((1, 0.3001, "x", -1), (1, None, "x", -1), (3, 0.3, "x", -1), (1, 0.3, "y", -1)):
        with pytest.raises(MissingRowsError):
            edit_bag(stored, table([far], WEIGHTED))


def test_what_was_never_stored_takes_back_what_the_change_brings() -> None:
    stored = table([(1, 5.0, "x")], ROW)

    edit = edit_bag(stored, table([(7, 0.3, "x", -1), (7, 0.30000000000000004, "x", 3)], WEIGHTED))

    assert not len(edit.leaving)
    assert rows_of(edit.inserts) == [(7, 0.30000000000000004, "x")] * 2


@settings(deadline=None)
@given(rows=st.lists(ROWS, max_size=12), come=st.lists(ROWS, max_size=4), data=st.data())
def test_a_bag_is_edited_copy_by_copy(rows: Any, come: Any, data: Any) -> None:
    went = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
    change = [(*rows[at], -1) for at in went] + [(*row, 2) for row in come]

    edit = edit_bag(table(rows, ROW), table(change, WEIGHTED))

    expected = Counter(row_key(row) for at, row in enumerate(rows) if at not in went)
    for row in come:
        expected[row_key(row)] += 2
    assert Counter(map(row_key, after(table(rows, ROW), edit))) == expected


def test_a_row_that_is_not_there_often_enough_is_missing() -> None:
    with pytest.raises(MissingRowsError):
        edit_bag(table([(1, 0.0, "x")], ROW), table([(1, -0.0, "x", -2)], WEIGHTED))


@settings(deadline=None)
@given(rows=st.lists(ROWS, max_size=12), new=st.lists(ROWS, max_size=5), more=st.lists(KEYS, max_size=3))
def test_touched_keys_have_exactly_the_new_rows(rows: Any, new: Any, more: Any) -> None:
    new = list(unique(new).values())
    touched = [row[:2] for row in new] + more

    edit = edit_keys(table(rows, ROW), table(new, ROW), table(touched, KEY), ["a", "f"])

    keys = {row_key(key) for key in touched}
    expected = [*(row for row in rows if row_key(row[:2]) not in keys), *new]
    assert Counter(map(row_key, after(table(rows, ROW), edit))) == Counter(map(row_key, expected))


NUMBERS = st.tuples(st.integers(0, 2), st.integers(-2, 2).map(Decimal))
SUMS = st.lists(st.builds(lambda key, numbers: (*key, *numbers), KEYS, NUMBERS), max_size=8).map(unique)


@settings(deadline=None)
@given(stored=SUMS, delta=SUMS, undo=st.booleans())
def test_sums_add_up_by_key(stored: Any, delta: Any, undo: bool) -> None:
    stored = {key: (*row[:2], row[2] + 1, row[3]) for key, row in stored.items()}
    if undo:  # take all of it away again
        delta = {key: (*row[:2], -row[2], -row[3]) for key, row in stored.items()}

    edit = edit_sum(table(stored.values(), SUM), table(delta.values(), SUM), ["a", "f"], "n")

    expected = {key: row[2:] for key, row in stored.items()}
    for key, row in delta.items():
        if not any(row[2:]):
            continue
        old = expected.pop(key, (0, 0))
        if old[0] + row[2]:
            expected[key] = (old[0] + row[2], old[1] + row[3])
    found = after(table(stored.values(), SUM), edit)
    assert len(found) == len(expected)
    assert {row_key(row[:2]): row[2:] for row in found} == expected


def test_sums_keep_their_types_or_overflow() -> None:
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("total", pa.decimal128(38, 0))])
    stored = table([(1, 1, Decimal(10**38 - 1))], schema)

    edit = edit_sum(stored, table([(1, 1, Decimal(-1))], schema), ["k"], "n")
    assert edit.inserts.schema == schema
    assert rows_of(edit.inserts) == [(1, 2, Decimal(10**38 - 2))]
    for delta in ((1, 1, Decimal(1)), (1, 2**63 - 1, Decimal(0))):
        with pytest.raises(OverflowError):
            edit_sum(stored, table([delta], schema), ["k"], "n")
    with pytest.raises(MissingRowsError):
        edit_sum(stored, table([(1, -2, Decimal(0))], schema), ["k"], "n")


def test_without_keys_there_is_one_row() -> None:
    schema = pa.schema([("n", pa.int64()), ("total", pa.decimal128(10, 2))])
    stored = table([(2, Decimal("1.50"))], schema)

    for delta, expected in (((-2, Decimal("-1.50")), (0, Decimal("0.00"))), ((0, Decimal(0)), (2, Decimal("1.50")))):
        edit = edit_sum(stored, table([delta], schema), [], "n")
        assert after(stored, edit) == [expected]
    assert after(stored, edit_keys(stored, schema.empty_table(), pa.schema([]).empty_table(), [])) == []
    assert after(stored.slice(1), edit_sum(stored.slice(1), stored, [], "n")) == [(2, Decimal("1.50"))]
