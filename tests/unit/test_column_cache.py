"""Columns of files that stay decoded between look-ups."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError

ROWS = 1000
SIZE = 2 * ROWS
"""Of numbers up to some thousands."""


@pytest.fixture
def file(tmp_path):
    def write(name: str, start: int = 0):
        numbers = list(range(start, start + ROWS))
        columns = {
            "id": pa.array(numbers, pa.int64()),
            "group": pa.array([n % 10 if n % 7 else None for n in numbers], pa.int64()),
            "text": pa.array([f"row {n}" for n in numbers]),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(12, 2)),
        }
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return write


def get(columns, path, sizes):
    """Ask for columns as a look-up does."""
    missing = columns.reserve(str(path), sizes)
    if missing is None:
        return None
    decoded = ()
    try:
        decoded = pl.read_parquet(path, columns=missing).get_columns() if missing else ()
    finally:
        found = columns.keep(str(path), sizes, missing, decoded)
    return found


def test_a_column_is_kept_when_it_is_asked_for_again(file):
    path, columns = file("a.parquet"), ColumnCache(Options(column_cache_bytes=10 * SIZE))

    assert get(columns, path, {"id": SIZE}) is None
    assert columns.bytes == 0
    assert get(columns, path, {"id": SIZE})["id"].numbers.to_list() == list(range(ROWS))
    assert columns.bytes == SIZE


def test_cached_columns_need_no_file(file):
    path, columns = file("a.parquet"), ColumnCache(Options(column_cache_bytes=10 * SIZE))
    for _ in range(2):
        get(columns, path, {"id": SIZE, "group": SIZE})
    path.unlink()

    assert get(columns, path, {"group": SIZE}).keys() == {"group"}
    assert get(columns, path, {"text": SIZE}) is None
    with pytest.raises(FileNotFoundError):
        get(columns, path, {"text": SIZE})


def test_old_columns_make_room_for_new_ones(file):
    first, second, columns = file("a.parquet"), file("b.parquet"), ColumnCache(Options(column_cache_bytes=SIZE))
    for _ in range(2):
        get(columns, first, {"id": SIZE})
    assert get(columns, second, {"id": SIZE}) is None
    assert get(columns, second, {"id": SIZE}) is not None
    assert columns.bytes == SIZE
    assert get(columns, first, {"id": SIZE}) is None


def test_columns_asked_for_in_turn_do_not_drive_each_other_out(file):
    first, second, columns = file("a.parquet"), file("b.parquet"), ColumnCache(Options(column_cache_bytes=SIZE))
    for _ in range(2):
        get(columns, first, {"id": SIZE})
    for _ in range(5):
        assert get(columns, second, {"id": SIZE}) is None
        assert get(columns, first, {"id": SIZE}) is not None


@pytest.mark.parametrize(
    "keys", [{"id": [3, 1500, 1700, 9999]}, {"group": [2, 3]}, {"group": [5], "id": [15, 25, 1001]}]
)
def test_the_same_rows_are_found_with_and_without(file, keys):
    paths = [file("a.parquet"), file("b.parquet", ROWS)]
    fields = [pa.field("id", pa.int64()), pa.field("text", pa.string()), pa.field("price", pa.decimal128(12, 2))]
    wanted = {name: pa.array(values, pa.int64()) for name, values in keys.items()}
    columns = ColumnCache(Options(column_cache_bytes=100 * SIZE))
    cached, plain = Finder(columns), Finder()
    expected = plain.find(paths, fields, wanted).sort_by("id")

    for _ in range(3):
        assert cached.find(paths, fields, wanted).sort_by("id").equals(expected)
    assert columns.bytes > 0
    assert (
        expected.num_rows
        == pl.read_parquet(paths).filter(pl.all_horizontal(pl.col(n).is_in(v) for n, v in keys.items())).height
    )


def test_a_file_without_the_key_is_left_to_spark(file):
    finder = Finder(ColumnCache(Options(column_cache_bytes=100 * SIZE)))
    for _ in range(2):
        with pytest.raises(NeedsSparkError):
            finder.find([file("a.parquet")], [pa.field("id", pa.int64())], {"added_later": pa.array([1], pa.int64())})
