"""Rows with arrays and structs are numbered, ordered, netted and found as Spark would."""

from __future__ import annotations

import math
import struct
from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.types import facts_of
from trickle.tables.arrow.edit import edit_bag
from trickle.tables.arrow.local import row_key
from trickle.tables.arrow.rows import ranks, row_bits, row_ids
from trickle.tables.arrow.types import arrow_facts, arrow_type, value_type
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.driver.carried import without_carried
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.read import net_rows, read_file
from trickle.tables.delta.driver.write import statistics
from trickle.testing.regimes import regime

if TYPE_CHECKING:
    from pathlib import Path

LISTS = arrow_type("array<string>")
DEEP = arrow_type("array<struct<x:double,ys:array<int>>>")
STRUCTS = arrow_type("struct<x:double,s:string>")
TEXTS = st.sampled_from([None, "", "a", "b", "ab", "é"])
DOUBLES = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, -math.nan])
VALUES = st.tuples(
    st.integers(0, 2),
    st.none() | st.lists(TEXTS, max_size=2),
    st.none()
    | st.lists(
        st.none()
        | st.fixed_dictionaries({"x": DOUBLES, "ys": st.none() | st.lists(st.sampled_from([None, 1, 2]), max_size=2)}),
        max_size=2,
    ),
    st.none() | st.fixed_dictionaries({"x": DOUBLES, "s": TEXTS}),
)
SCHEMA = pa.schema([("n", pa.int64()), ("l", LISTS), ("d", DEEP), ("s", STRUCTS)])


def table(rows: list[tuple]) -> pa.Table:
    """In two pieces, the second with an offset: as tables come."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    whole = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
    half = len(rows) // 2
    return pa.concat_tables([whole.slice(0, half), whole.slice(half)])


def bits(value: Any) -> Any:
    """A stand-in that is equal for what is the same to the bit."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return tuple((key, bits(part)) for key, part in sorted(value.items()))
    return tuple(map(bits, value)) if isinstance(value, list | tuple) else value


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(VALUES, max_size=12), others=st.lists(VALUES, max_size=6))
def test_equal_rows_have_one_number(rows, others):
    first, second = row_ids(table(rows), table(others))

    numbers = [*first, *second]
    keys = [row_key(row) for row in (*rows, *others)]
    assert len(set(numbers)) == len(set(keys)) == len(set(zip(numbers, keys, strict=True)))
    alike = row_bits(table(rows))
    keys = [bits(row) for row in rows]
    assert len(set(alike)) == len(set(keys)) == len(set(zip(alike, keys, strict=True)))


def order(left: Any, right: Any) -> int:
    """Spark's: NULL is least, arrays and structs go part by part, then by length."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, dict):
        left, right = ([one["s"], one["ns"]] for one in (left, right))
    if isinstance(left, list):
        parts = (order(a, b) for a, b in zip(left, right, strict=False))
        return next(filter(None, parts), len(left) - len(right))
    left, right = (v.encode() if isinstance(v, str) else v for v in (left, right))
    return (left > right) - (left < right)


PAIRS = arrow_type("array<struct<s:string,ns:array<int>>>")


@settings(deadline=None, max_examples=150)
@given(
    values=st.lists(
        st.none()
        | st.lists(
            st.none()
            | st.fixed_dictionaries(
                {"s": TEXTS, "ns": st.none() | st.lists(st.none() | st.integers(-2, 2), max_size=3)}
            ),
            max_size=3,
        ),
        max_size=12,
    )
)
def test_ranks_are_in_the_order_of_spark(values):
    found = ranks(pa.chunked_array([pa.array(values, PAIRS)])).to_pylist()

    assert [rank is None for rank in found] == [value is None for value in values]
    some = [(rank, value) for rank, value in zip(found, values, strict=True) if rank is not None]
    by_rank = sorted(some, key=lambda pair: pair[0])
    in_order = sorted(some, key=cmp_to_key(lambda a, b: order(a[1], b[1])))
    assert [value for _, value in by_rank] == [value for _, value in in_order]
    assert len({rank for rank, _ in some}) == len({row_key(value) for _, value in some})


def weighted(rows: list[tuple], weights: list[int]) -> pa.Table:
    field = pa.field(WEIGHT, pa.int64(), nullable=False)
    return table(rows).append_column(field, pa.array(weights, pa.int64()))


def counted(change: pa.Table) -> Counter:
    found: Counter = Counter()
    for row in change.to_pylist():
        *values, weight = row.values()
        found[bits(values)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


@settings(deadline=None, max_examples=150)
@given(some=st.lists(st.tuples(VALUES, st.sampled_from([-2, -1, 1])), max_size=12))
def test_changes_are_netted(some):
    change = weighted([row for row, _ in some], [weight for _, weight in some])

    netted = net_rows(change, change.schema)

    assert netted.schema == change.schema
    assert counted(netted) == counted(change)
    assert netted.num_rows == len(counted(change))


@settings(deadline=None, max_examples=100)
@given(rows=st.lists(VALUES, max_size=40), at=st.integers(0, 40), new=st.lists(VALUES, max_size=3))
def test_rows_that_a_rewrite_carried_over_are_left_out(rows, at, new):
    after = [*rows[:at], *new, *rows[at + 1 :]]
    left = without_carried([frame(rows)], [frame(after)])

    parts = [net_of(frame(rows), -1), net_of(frame(after), 1)], [net_of(left[0], -1), net_of(left[1], 1)]
    assert counted(pa.concat_tables(parts[0])) == counted(pa.concat_tables(parts[1]))


def frame(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table(rows)))


def net_of(rows: pl.DataFrame, sign: int) -> pa.Table:
    found = rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(SCHEMA)
    return found.append_column(WEIGHT, pa.array(np.full(rows.height, sign), pa.int64()))


def test_most_of_a_rewritten_file_is_left_out():
    rows = [(n, [f"t{n}"], [{"x": float(n), "ys": [n]}], {"x": 0.5, "s": None}) for n in range(5000)]
    after = [*rows[:700], (9, [], None, None), *rows[701:]]

    before, new = without_carried([frame(rows)], [frame(after)])

    assert before.columns == new.columns == SCHEMA.names
    assert before.height < 50
    assert new.height < 50


def test_an_edit_deletes_stored_rows_by_their_value():
    stored = table(
        [
            (1, ["a"], [{"x": -0.0, "ys": None}], None),
            (1, ["a"], [{"x": 0.0, "ys": None}], None),
            (1, ["a", None], [], None),
        ]
    )
    change = weighted([(1, ["a"], [{"x": 0.0, "ys": None}], None), (2, [], None, None)], [-2, 1])

    edit = edit_bag(stored, change)

    assert sorted(edit.leaving) == [0, 1]
    assert edit.inserts.to_pylist() == [{"n": 2, "l": [], "d": None, "s": None}]


def test_an_edit_takes_back_nearly_equal_doubles_in_arrays():
    stored = table([(1, None, [{"x": 0.1 + 0.2, "ys": [1]}], None)])
    change = weighted([(1, None, [{"x": 0.3, "ys": [1]}], None)], [-1])

    assert list(edit_bag(stored, change).leaving) == [0]


@pytest.mark.parametrize("how", ["default", "columns at once"])
def test_rows_with_arrays_and_structs_are_found_in_files(tmp_path: Path, how: str):
    rows = [(n % 3, [f"t{n}", None], [{"x": n / 2, "ys": [n]}, None], {"x": None, "s": str(n)}) for n in range(9)]
    rows += [(1, None, None, None), (1, [], [], {"x": None, "s": None})]
    files = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    required = pa.list_(pa.field("element", pa.string(), nullable=True))
    for file, part in zip(files, (rows[:4], rows[4:]), strict=True):
        pq.write_table(table(part).set_column(1, "l", table(part)["l"].cast(required)), file, store_schema=False)
    finder = Finder(ColumnCache(regime(how)), regime(how))
    fields = list(SCHEMA)

    for _ in range(3):
        found = finder.find(files, fields, {"n": pa.array([1], pa.int64())})
        assert found.schema.types == SCHEMA.types
        assert Counter(map(bits, found.to_pylist())) == Counter(
            bits(dict(zip(SCHEMA.names, row, strict=True))) for row in rows if row[0] == 1
        )
    taken, number = finder.take(files, fields, [np.array([0, 3]), np.array([5, 6])])
    expected = {0: [rows[0], rows[3]], 1: [rows[9], rows[10]]}
    assert [tuple(row.values()) for row in taken.to_pylist()] == [row for file in number for row in expected[file]]
    assert [part.height for part in finder.read(files, fields)] == [4, 7]
    assert read_file(files[1], fields).to_pylist() == table(rows[4:]).to_pylist()


def test_facts_of_arrays_and_structs_follow_from_their_parts():
    for name in (
        "array<int>",
        "struct<a:decimal(10,2),b:array<string>>",
        "array<struct<x:double>>",
        "array<map<int,int>>",
    ):
        kind = arrow_type(name)
        if kind is None:
            assert not facts_of(name).is_held
        else:
            assert arrow_facts(kind) == facts_of(name)
            assert value_type(pl.Series(pl.from_arrow(pa.array([], kind))).to_arrow().type) == kind
    assert facts_of("array<int>").is_grouped
    assert not facts_of("array<double>").is_grouped
    assert arrow_type("struct<a b<:int>") is None
    assert arrow_type("array<string collate UNICODE>") is None


def test_statistics_count_no_missing_structs():
    found = statistics(table([(1, None, None, None), (2, [], [], {"x": 1.0, "s": "a"})]))

    assert '"nullCount": {"n": 0, "l": 1, "d": 1}' in found
