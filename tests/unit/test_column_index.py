"""The rows of keys by an index, against a look at every row."""

from __future__ import annotations

from datetime import date

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.cache.column_index import ColumnIndex, is_indexed
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.driver.find import Finder

NUMBERS = st.lists(st.integers(-5, 60), min_size=100, max_size=150)


@settings(deadline=None)
@given(
    values=NUMBERS,
    keys=st.sets(st.integers(-8, 70), max_size=3),
    in_order=st.booleans(),
    stretch=st.sampled_from([(1, pl.Int64), (1, pl.Int8), (2**56, pl.Int64)]),
)
def test_places_are_those_of_the_keys(values, keys, in_order, stretch):
    far, dtype = stretch
    values, keys = [value * far for value in values], {key * far for key in keys}
    column = pl.Series(sorted(values) if in_order else values, dtype=dtype)

    places = ColumnIndex.of(column).places(pl.Series(sorted(keys), dtype=dtype))

    assert places.tolist() == [place for place, value in enumerate(column.to_list()) if value in keys]


def test_many_keys_are_better_looked_for_in_every_row():
    index = ColumnIndex.of(pl.Series(range(100)))

    assert index.places(pl.Series([5, 50, 99])).tolist() == [5, 50, 99]
    assert index.places(pl.Series(range(4))) is None
    assert index.places(pl.Series(range(100, 200))).tolist() == []


@pytest.mark.parametrize(
    ("values", "answer"),
    [([1, 2], True), ([date(2020, 1, 1)], True), ([1, None], False), (["a"], False), ([1.5], False), ([], False)],
)
def test_whole_numbers_and_dates_are_indexed(values, answer):
    assert is_indexed(pl.Series(values)) is answer


def test_a_column_in_order_has_its_index_at_once_and_others_when_it_pays(tmp_path):
    path, rows = tmp_path / "a.parquet", 1000
    pq.write_table(pa.table({"id": range(rows), "other": [n * 7 % rows for n in range(rows)]}), path)
    columns = ColumnCache(Options(column_cache_bytes=10**6, index_looks=3))
    finder = Finder(columns)
    fields = [pa.field(name, pa.int64()) for name in ("id", "other")]

    for _ in range(2):
        by_id = finder.find([path], fields, {"id": pa.array([3, 5000], pa.int32())})
    assert columns.index(f":{path}", "id") is not None
    kept = columns.bytes
    for _ in range(3):
        by_other = finder.find([path], fields, {"other": pa.array([21]), "id": pa.array(range(rows))})

    assert by_id.to_pylist() == by_other.to_pylist() == [{"id": 3, "other": 21}]
    assert columns.index(f":{path}", "other") is not None
    assert columns.bytes == kept + rows * (2 + 4)
