"""A Delta table is one object for all who use it, and a key look-up goes straight to its files."""

from __future__ import annotations

import gc
import inspect
import json
import shutil
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.cache import CacheSize, cache_sizes
from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.catalog import Catalog
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.table import forget_table, open_table
from trickle.tables.delta.target import DeltaTarget

if TYPE_CHECKING:
    from trickle.tables.contract import SourceTable

ROWS = 1000
FIELDS = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("k", "v")]
METADATA = {"id": "t", "schemaString": json.dumps({"type": "struct", "fields": FIELDS}), "partitionColumns": []}


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A table of one file."""
    _make(tmp_path, METADATA, factor=2)
    return str(tmp_path)


def _make(place: Path, metadata: dict[str, Any], factor: int) -> None:
    pq.write_table(pa.table({"k": range(ROWS), "v": [factor * k for k in range(ROWS)]}), place / "a.parquet")
    stats = json.dumps({"numRecords": ROWS, "minValues": {"k": 0}, "maxValues": {"k": ROWS - 1}})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
        {"add": {"path": "a.parquet", "size": 10_000, "partitionValues": {}, "dataChange": True, "stats": stats}},
    ]
    (place / "_delta_log").mkdir()
    log = place / "_delta_log" / f"{0:020d}.json"
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_source_and_target_share_a_table_however_its_place_is_written(place: str) -> None:
    spark: Any = MagicMock()

    source, target = DeltaSource(spark, "orders", place), DeltaTarget(spark, "shop.orders", f"file:{place}")

    assert source.table is target.table
    assert source.log.name == "orders"
    assert source.table is not open_table(spark, place, Options(lookup_files=1))
    assert source.table is not open_table(MagicMock(), place)
    forget_table(spark, place)
    assert source.table is not open_table(spark, place)


def test_a_table_lives_as_long_as_someone_uses_it(place: str) -> None:
    spark: Any = MagicMock()
    gone = weakref.ref(open_table(spark, place, name="early"))
    gc.collect()

    table = open_table(spark, place, name="late")

    assert gone() is None
    assert open_table(spark, place) is table
    assert table.log.name == "late"


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_look_up_takes_three_frames_to_the_file(place: str, is_cached: bool, monkeypatch: Any) -> None:
    columns = ColumnCache(Options(column_cache_asks=1)) if is_cached else None
    options = Options(whole_rows=0, column_cache_asks=1)
    source = DeltaSource(MagicMock(), "orders", place, columns=columns, options=options)
    frames: list[list[str]] = []

    def noting(read: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            modules = (frame.frame.f_globals.get("__name__", "") for frame in inspect.stack())
            frames.append([name for name in modules if name.startswith("trickle.")])
            return read(*args, **kwargs)

        return noted

    monkeypatch.setattr(pl, "read_parquet", noting(pl.read_parquet))
    monkeypatch.setattr(pl, "scan_parquet", noting(pl.scan_parquet))

    found = source.find(0, ["v"], {"k": pa.array([3, 5, 7000])})

    assert found is not None
    assert found["v"].to_pylist() == [6, 10]
    assert len(frames) == 1
    assert len(frames[0]) <= 3, frames[0]


def test_another_table_may_have_files_of_the_same_names(place: str) -> None:
    options = Options(whole_rows=0, column_cache_asks=1)
    columns = ColumnCache(options)
    source = DeltaSource(MagicMock(), "orders", place, columns=columns, options=options)
    keys = {"k": pa.array([5])}
    assert source.find(source.head(), ["v"], keys)["v"].to_pylist() == [10]

    shutil.rmtree(place)
    Path(place).mkdir()
    _make(Path(place), {**METADATA, "id": "another"}, factor=3)

    late = DeltaSource(MagicMock(), "orders", place, columns=columns, options=options)
    for one in (source, late):
        assert one.find(one.head(), ["v"], keys)["v"].to_pylist() == [15]


@pytest.mark.parametrize("options", [DEFAULT, Options(whole_rows=0)], ids=["read whole", "searched"])
def test_rows_are_found_again_without_a_file(place: str, options: Options) -> None:
    source = DeltaSource(MagicMock(), "orders", place, options=options)
    wanted = {"k": pa.array([3, 5, 9])}
    first = source.find(0, ["k", "v"], wanted)
    Path(place, "a.parquet").unlink()

    again = source.find(0, ["k", "v"], {"k": pa.array([9, 3])})

    assert first is not None
    assert again is not None
    assert sorted(first["k"].to_pylist()) == [3, 5, 9]
    assert sorted(again["k"].to_pylist()) == [3, 9]


def test_a_session_keeps_as_many_tables_open_as_it_may(tmp_path: Path) -> None:
    def asked(*names: str) -> list[SourceTable]:
        for name in names:
            catalog.results.table_log(str(tmp_path / name))
        paths = (f"delta.`{tmp_path / name}`" for name in names)
        return [catalog.source_by_name(path, catalog="spark_catalog", schema="default") for path in paths]

    gc.collect()
    before = cache_sizes()
    catalog = Catalog(MagicMock(), options=Options(tables_kept=2))
    first, second, third = asked("a", "b", "c")

    for name in ("sources", "tables looked at"):
        grown = cache_sizes()[name]
        held = before.get(name, CacheSize())
        assert (grown.entries - held.entries, grown.max_entries - held.max_entries) == (2, 2)
    assert asked("c", "b") == [third, second]
    assert asked("a") != [first]
