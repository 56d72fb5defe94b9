"""Columns held in few bytes, and given back."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.cache.encoding import Encoded, decoded
from trickle.tables.delta.driver.find import Finder

KINDS = {
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "bigint": (pa.int64(), st.integers(-300, 300) | st.integers(-(2**63), 2**63 - 1)),
    "date": (pa.date32(), st.dates()),
    "price": (pa.decimal128(15, 2), st.decimals(-(10**13) + 1, 10**13 - 1, places=2)),
    "wide": (pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4)),
    "text": (pa.string(), st.sampled_from(["", "AIR", "straße"]) | st.text(max_size=3)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "instant": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1))),
    "flag": (pa.bool_(), st.booleans()),
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    type_, values = KINDS[kind]
    return pa.array(draw(st.lists(st.none() | values, max_size=30)), type_)


@settings(deadline=None)
@given(column=columns())
def test_a_column_comes_back_as_it_was(column):
    held = Encoded.of(pl.Series("c", pl.from_arrow(column)))

    shown = held.shown(held.numbers).to_arrow(compat_level=pl.CompatLevel.oldest())

    assert decoded(shown, column.type).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("values", "dtype", "bytes_"),
    [
        ([1, None, 127], pl.Int64, 1),
        ([1, 128], pl.Int64, 2),
        ([1, 60_000_000], pl.Int64, 4),
        ([2**40], pl.Int64, 8),
        ([], pl.Int64, 1),
        ([date(1998, 12, 1)], pl.Date, 2),
        ([Decimal("104949.50")], pl.Decimal(15, 2), 4),
        ([Decimal("0.10")], pl.Decimal(38, 2), 16),
        ([1.5], pl.Float64, 8),
        (["AIR", "RAIL"], pl.String, 1),
    ],
)
def test_values_take_the_bytes_they_need(values, dtype, bytes_):
    held = Encoded.of(pl.Series("c", values, dtype=dtype)).numbers

    assert held.estimated_size() - (len(held) + 7) // 8 * held.has_nulls() == bytes_ * len(values)


@pytest.mark.parametrize("first", [0, 2000])
def test_texts_that_seldom_repeat_are_held_as_they_are(first):
    held = Encoded.of(pl.Series("c", ["same"] * first + [f"comment {n}" for n in range(1000)]))

    assert held.texts is None
    assert held.numbers.dtype == pl.String


@settings(deadline=None, max_examples=50)
@given(data=st.data(), kind=st.sampled_from(["tinyint", "bigint", "date", "text"]))
def test_rows_are_found_by_any_key(tmp_path_factory, data, kind):
    type_, values = KINDS[kind]
    folder = tmp_path_factory.mktemp("found")
    parts = [data.draw(st.lists(st.none() | values, min_size=1, max_size=10)) for _ in range(2)]
    for number, part in enumerate(parts):
        pq.write_table(
            pa.table({"k": pa.array(part, type_), "n": [10 * number + i for i in range(len(part))]}),
            folder / f"{number}.parquet",
        )
    known = [value for part in parts for value in part if value is not None]
    far = st.sampled_from([-129, 300, 2**40]) if pa.types.is_integer(type_) else values
    keys = data.draw(st.lists(st.sampled_from(known) | far if known else values, max_size=5))
    fields = [pa.field("n", pa.int64()), pa.field("k", type_)]
    asked = pa.int64() if pa.types.is_integer(type_) else type_
    finder = Finder(ColumnCache(Options(column_cache_bytes=10**6)))

    for _ in range(5):
        found = finder.find(sorted(folder.iterdir()), fields, {"k": pa.array(keys, asked)})

    expected = [(10 * n + i, v) for n, part in enumerate(parts) for i, v in enumerate(part) if v in set(keys)]
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected


def test_any_column_of_a_file_has_a_size(tmp_path):
    values = {name: pa.array([None], type_) for name, (type_, _) in KINDS.items()}
    values |= {"big": pa.array([Decimal(10**37)], pa.decimal128(38, 0)), "none": pa.array([None], pa.int64())}
    pq.write_table(pa.table(values), tmp_path / "a.parquet")
    finder = Finder(ColumnCache(Options(column_cache_bytes=10**6)))
    fields = [pa.field(name, array.type) for name, array in values.items()]

    for _ in range(3):
        assert finder.find([tmp_path / "a.parquet"], fields, {"none": pa.array([1])}).num_rows == 0
        found = finder.find(
            [tmp_path / "a.parquet"], fields, {"big": pa.array([Decimal(10**37)], pa.decimal128(38, 0))}
        )
        assert found["big"].to_pylist() == [Decimal(10**37)]
