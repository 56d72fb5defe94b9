"""Tables of a hundred thousand commits, and of fifty thousand files: what a refresh asks of them is answered in the driver."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.source import DeltaSource

COMMITS, FILES, ROWS = 100_000, 50_000, 100
FIELDS = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("k", "v")]
METADATA = {
    "id": "t",
    "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
    "partitionColumns": [],
    "configuration": {},
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def add(number: int, *, size: int = 1500) -> dict[str, Any]:
    """An entry for a file of the rows from ``number * ROWS`` on."""
    low, high = number * ROWS, (number + 1) * ROWS - 1
    stats = {"numRecords": ROWS, "minValues": {"k": low}, "maxValues": {"k": high}, "nullCount": {"k": 0}}
    path = f"{number}.parquet"
    return {"path": path, "size": size, "partitionValues": {}, "dataChange": True, "stats": json.dumps(stats)}


def write(folder: Path, number: int) -> None:
    keys = range(number * ROWS, (number + 1) * ROWS)
    pq.write_table(pa.table({"k": keys, "v": [2 * k for k in keys]}), folder / f"{number}.parquet")


def commit(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / f"_delta_log/{version:020d}.json").write_text(text)


def checkpoint(folder: Path, version: int, files: list[dict[str, Any]]) -> None:
    rows: list[dict[str, Any]] = [{"protocol": PROTOCOL}, {"metaData": METADATA | {"configuration": []}}]
    kept = [{name: value for name, value in file.items() if name != "partitionValues"} for file in files]
    table = pa.Table.from_pylist([*rows, *({"add": file} for file in kept)], schema=CHECKPOINT)
    pq.write_table(table, folder / f"_delta_log/{version:020d}.checkpoint.parquet")
    (folder / "_delta_log/_last_checkpoint").write_text(json.dumps({"version": version, "size": table.num_rows}))


TEXTS = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    [
        ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", TEXTS),
                ]
            ),
        ),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", TEXTS),
                    ("size", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
    ]
)


def source_at(folder: Path) -> DeltaSource:
    options = Options(column_cache_asks=1)
    return DeltaSource(MagicMock(), "t", str(folder), columns=ColumnCache(options), options=options)


def changed_keys(source: DeltaSource, since: int, upto: int) -> list[int]:
    change = source.small_changes(source.classify(since, upto, ("k", "v")), ("k", "v"))
    assert change is not None
    assert set(change[WEIGHT].to_pylist()) <= {1}
    return sorted(change["k"].to_pylist())


@pytest.mark.slow
def test_a_log_of_a_hundred_thousand_commits(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    commit(tmp_path, 0, {"protocol": PROTOCOL}, {"metaData": METADATA}, {"add": add(0)})
    idle = json.dumps({"commitInfo": {"operation": "SET TBLPROPERTIES"}}) + "\n"
    for version in range(1, COMMITS):
        (tmp_path / f"_delta_log/{version:020d}.json").write_text(idle)
    # Else Delta is asked for the schema, once in a process.
    commit(tmp_path, COMMITS - 20, {"protocol": PROTOCOL}, {"metaData": METADATA})
    checkpoint(tmp_path, COMMITS - 10, [add(number) for number in range(600)])
    for number in (0, 7, 599, 600):
        write(tmp_path, number)
    source = source_at(tmp_path)

    begun = time.perf_counter()
    head = source.head()
    keys = {"k": pa.array([5, 777, 59_901], pa.int64())}
    assert head == COMMITS - 1
    assert source.find(head, ("v",), keys)["v"].to_pylist() == [10, 1554, 119_802]
    first = time.perf_counter() - begun

    commit(tmp_path, COMMITS, {"add": add(600)}, {"commitInfo": {"operation": "WRITE"}})
    begun = time.perf_counter()
    assert source.head() == COMMITS
    assert changed_keys(source, head, COMMITS) == list(range(600 * ROWS, 601 * ROWS))
    assert source.find(COMMITS, ("v",), {"k": pa.array([60_005], pa.int64())})["v"].to_pylist() == [120_010]
    later = time.perf_counter() - begun

    assert not source.table.handle.spark.mock_calls
    assert first < 10
    assert later < 2
    shutil.rmtree(tmp_path)


def test_a_table_of_fifty_thousand_files(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    commit(tmp_path, 0, {"protocol": PROTOCOL}, {"metaData": METADATA})
    commit(tmp_path, 1, *({"add": add(number)} for number in range(FILES)))
    for number in (0, 7, 40_000, FILES):
        write(tmp_path, number)
    source = source_at(tmp_path)

    begun = time.perf_counter()
    keys = {"k": pa.array([5, 777, 4_000_001], pa.int64())}
    assert sorted(source.find(source.head(), ("v",), keys)["v"].to_pylist()) == [10, 1554, 8_000_002]
    first = time.perf_counter() - begun

    commit(tmp_path, 2, {"add": add(FILES)}, {"commitInfo": {"operation": "WRITE"}})
    begun = time.perf_counter()
    assert source.head() == 2
    assert changed_keys(source, 1, 2) == list(range(FILES * ROWS, (FILES + 1) * ROWS))
    assert source.find(2, ("v",), {"k": pa.array([779, FILES * ROWS], pa.int64())})["v"].to_pylist() == [
        *(1558, 2 * FILES * ROWS)
    ]
    later = time.perf_counter() - begun

    assert not source.table.handle.spark.mock_calls
    assert first < 20
    assert later < 2
