"""Rows found by key in Parquet files, without Spark."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError

ROWS = {
    "id": pa.array([1, 2, 2, None, 5], pa.int64()),
    "name": pa.array(["a", "b", None, "b", "ü"], pa.string()),
    "price": pa.array(
        [Decimal("1.10"), None, Decimal("-3.00"), Decimal("0.00"), Decimal("9.99")], pa.decimal128(10, 2)
    ),
    "day": pa.array([date(2024, 1, d) for d in range(1, 6)], pa.date32()),
}


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    table = pa.table(ROWS)
    halves = [table.slice(0, 2), table.slice(2)]
    for number, half in enumerate(halves):
        pq.write_table(half, tmp_path / f"{number}.parquet")
    return sorted(tmp_path.glob("*.parquet"))


def _fields(*names: str) -> list[pa.Field]:
    return [pa.field(name, ROWS[name].type) for name in names]


def test_rows_come_with_their_key_and_in_the_columns_asked_for(paths):
    found = Finder().find(paths, _fields("price", "id"), {"id": pa.array([2, 5, 77])})

    assert found.schema.types == [pa.decimal128(10, 2), pa.int64()]
    assert found.to_pylist() == [
        {"price": None, "id": 2},
        {"price": Decimal("-3.00"), "id": 2},
        {"price": Decimal("9.99"), "id": 5},
    ]


def test_keys_of_several_columns_must_all_be_met(paths):
    found = Finder().find(paths, _fields("id", "name"), {"id": pa.array([2]), "name": pa.array(["b", "ü"])})

    assert found.to_pylist() == [{"id": 2, "name": "b"}]


@pytest.mark.parametrize("options", [Options(), Options(column_cache_asks=1)], ids=["searched", "cached"])
def test_dates_may_be_of_years_that_python_does_not_have(tmp_path, options):
    days = pa.array([-720_000, 2_932_897, 5], pa.int32())
    pq.write_table(pa.table({"id": [1, 2, 3], "day": days.cast(pa.date32())}), tmp_path / "f.parquet")
    finder = Finder(ColumnCache(options), options)

    for keys in ({"id": pa.array([1, 2])}, {"day": days[:2].cast(pa.date32())}):
        found = finder.find([str(tmp_path / "f.parquet")], _fields("day"), keys)
        assert found["day"].cast(pa.int32()).to_pylist() == [-720_000, 2_932_897]


@pytest.mark.parametrize("keys", [pa.array([], pa.int64()), pa.array([99])])
def test_no_key_finds_nothing_and_null_is_no_key(paths, keys):
    assert Finder().find(paths, _fields("id"), {"id": keys}).num_rows == 0


def test_dates_are_keys_too(paths):
    found = Finder().find(paths, _fields("day"), {"day": pa.array([date(2024, 1, 4)])})

    assert found.to_pylist() == [{"day": date(2024, 1, 4)}]


def test_signs_of_patterns_are_plain_letters(tmp_path):
    path = tmp_path / "k=1" / "a[1]*.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"a.b": [1, 2], "^x$": [3, 4], "k": [5, 6]}), path)

    finder = Finder(ColumnCache())
    for _ in range(2):  # from the file, then from memory
        found = finder.find([path], [pa.field("a.b", pa.int64()), pa.field("k", pa.int64())], {"a.b": pa.array([2])})
        assert found.to_pylist() == [{"a.b": 2, "k": 6}]
    with pytest.raises(NeedsSparkError):
        Finder().find([path], [pa.field("^x$", pa.int64())], {"^x$": pa.array([3])})


def test_what_only_spark_can_read_is_left_to_it(paths):
    with pytest.raises(NeedsSparkError):  # stored as another type than the table's
        Finder().find(paths, [pa.field("id", pa.int32())], {"id": pa.array([1], pa.int32())})
    with pytest.raises(NeedsSparkError):  # a column that came later
        Finder().find(paths, [pa.field("new", pa.int64())], {"new": pa.array([1])})
    paths[0].unlink()
    with pytest.raises(NeedsSparkError):
        Finder().find(paths, _fields("id"), {"id": pa.array([1])})


def test_dates_of_the_old_calendar_are_left_to_spark(tmp_path):
    table = pa.table(ROWS).replace_schema_metadata({b"org.apache.spark.legacyDateTime": b""})
    pq.write_table(table, tmp_path / "old.parquet")

    with pytest.raises(NeedsSparkError):
        Finder().find([tmp_path / "old.parquet"], _fields("day"), {"day": pa.array([date(2024, 1, 4)])})


def test_more_rows_than_the_driver_takes_are_left_to_spark(paths):
    with pytest.raises(NeedsSparkError):
        Finder(options=Options(lookup_rows=1)).find(paths, _fields("id"), {"id": pa.array([2])})
