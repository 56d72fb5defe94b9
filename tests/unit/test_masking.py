"""Which rows to mask, and how, without a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.actions import FileAction
from trickle.tables.delta.compaction import wasteful_files
from trickle.tables.delta.deletion_vectors import unmasked
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.masking import (
    VECTORS,
    is_masked,
    search_keys,
    small_files,
    with_more,
    with_vectors,
)


def file(path: str, *, size: int = 10**9, records: int | None = 100, masked: int = 0) -> FileAction:
    body: dict[str, Any] = {"deletionVector": {"cardinality": masked}} if masked else {}
    return FileAction("add", body, path, str(masked or ""), size, records)


def test_a_property_decides_then_the_size() -> None:
    many = [file("a", size=10, records=DEFAULT.vector_rows + 1)]
    big = [file("a", size=DEFAULT.vector_bytes + 1)]
    few = [file("a", size=10)]

    def decided(files: list[FileAction], said: str | None = None) -> bool:
        return is_masked({"configuration": {} if said is None else {VECTORS: said}}, files, DEFAULT)

    assert [decided(files) for files in (many, big, few)] == [True, True, False]
    assert decided(few, "true")
    assert not decided(many, "false")


@pytest.mark.parametrize(
    ("versions", "reading", "writing"),
    [
        ((1, 2), [], ["appendOnly", "invariants"]),
        ((1, 4), [], ["appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"]),
        (
            (2, 5),
            ["columnMapping"],
            ["appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "generatedColumns", "invariants"],
        ),
    ],
)
def test_the_protocol_keeps_what_it_allowed(versions: Any, reading: list[str], writing: list[str]) -> None:
    reader, writer = versions
    metadata = {"id": "t", "configuration": {"a": "b"}}

    protocol, changed = with_vectors({"minReaderVersion": reader, "minWriterVersion": writer}, metadata) or ({}, {})

    assert protocol["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted([*reading, "deletionVectors"]),
        "writerFeatures": sorted([*writing, "deletionVectors"]),
    }
    assert changed["metaData"] == {"id": "t", "configuration": {"a": "b", VECTORS: "true"}}
    assert with_vectors(protocol["protocol"], changed["metaData"]) is None
    assert with_vectors(protocol["protocol"], metadata) == (protocol, changed)


def test_columns_that_few_rows_share_are_searched_by() -> None:
    wanted = pa.table(
        {
            "v": pa.array(range(100), pa.int32()),
            "id": pa.array(range(100), pa.int64()),
            "name": [f"n{n}" for n in range(100)],
            "d": [0.5] * 100,
        }
    )
    domains = {"v": 100, "id": 10**6}

    def chosen(names: list[str], rows: int = 10**6, options: Options = DEFAULT) -> list[str]:
        return list(search_keys(wanted.select(names), rows, domains.get, options))

    assert chosen(["v", "id", "d"]) == ["id"]
    assert chosen(["v", "d"]) == ["v"]
    assert chosen(["v", "name"]) == ["name"]
    assert chosen(["d"]) == []
    assert chosen(["v", "id"], options=Options(lookup_keys=99)) == []
    assert chosen(["v"], 10**6 + 1, Options(lookup_rows=10**6)) == []
    assert chosen(["v", "id"], 10**6 + 1, Options(lookup_rows=10**6)) == ["id"]
    repeated = pa.table({"a": ["x", "y"] * 50, "b": [f"n{n}" for n in range(100)]})
    assert list(search_keys(repeated, 10**6, domains.get, DEFAULT)) == ["b"]


def test_places_in_a_vector_are_told() -> None:
    mask = np.array([2, 5, 9])
    assert unmasked(np.array([9, 1, 5, 10, 0]), mask).tolist() == [False, True, False, True, True]
    assert unmasked(np.array([1, 2]), None).all()
    assert unmasked(np.array([], np.int64), mask).size == 0
    assert with_more(mask, np.array([7, 0])).tolist() == [0, 2, 5, 7, 9]
    assert with_more(None, np.array([7, 0])).tolist() == [0, 7]


def test_small_and_worn_files_are_wasteful() -> None:
    options = Options(small_files=2, small_file_bytes=100, masked_share=4, appended_files=3)
    small = [file(f"s{n}", size=10) for n in range(4)]
    worn, good = file("worn", masked=26), file("good", masked=25)

    assert wasteful_files([good, worn, *small[:2]], options) == [worn]
    assert wasteful_files([small[0], worn, good, *small[1:]], options) == [small[0], worn, *small[1:]]
    assert small_files([good, *small[:3]], options) == []
    assert small_files([good, *small], options) == small
    assert small_files([good, *small], Options(small_file_bytes=100, appended_files=3, commit_bytes=39)) == []


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_rows_are_located_in_files(tmp_path: Path, looks: int) -> None:
    schema = pa.schema(
        [pa.field("k", pa.int64()), pa.field("s", pa.string()), pa.field("t", pa.timestamp("us", tz="UTC"))]
    )
    files, expected = [], []
    for number in range(3):
        keys = [(n * 7 + number) % 20 if n % 6 else None for n in range(30)]
        # Spark writes old timestamps unless told otherwise: polars and pyarrow take them for other types.
        moments = [n * 10**6 for n in range(30)]
        rows = pa.table(
            {
                "k": pa.array(keys, pa.int64()),
                "s": [f"{number}-{n % 4}" for n in range(30)],
                "t": pa.array(moments, schema.field("t").type),
            }
        )
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(rows, files[-1], row_group_size=10, use_deprecated_int96_timestamps=number == 1)
        expected += [(number, n, *row.values()) for n, row in enumerate(rows.to_pylist()) if row["k"] in (3, 11, None)]
    options = Options(column_cache_asks=2, index_looks=1)
    cache = ColumnCache(options) if looks > 1 else None
    finder = Finder(cache, options)

    for _ in range(looks):
        found = finder.locate(files, list(schema), {"k": pa.array([11, None, 3], pa.int64())})

    rows = zip(found.files.tolist(), found.places.tolist(), *(c.to_pylist() for c in found.rows.columns), strict=True)
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert found.rows.schema.types == schema.types
    none = finder.locate(files, list(schema), {"k": pa.array([99], pa.int64())})
    assert (none.rows.num_rows, len(none.places)) == (0, 0)
    with pytest.raises(NeedsSparkError):
        finder.locate(files, list(schema), {"t": pa.array([0], schema.field("t").type)})


def test_statistics_of_a_masked_file_say_that_bounds_are_wide(tmp_path: Path) -> None:
    from trickle.tables.delta.driver.masking import mask_actions
    from trickle.tables.delta.driver.write import FileWriter
    from trickle.tables.storage.schemes import folder_at

    folder = folder_at(str(tmp_path))
    assert folder is not None
    body = {"path": "a", "size": 5, "stats": json.dumps({"numRecords": 3}), "partitionValues": {}, "tags": {"x": "y"}}
    one, other = (FileAction("add", {**body, "path": p}, p, "", 5, 3) for p in "ab")
    writer = FileWriter(folder)

    masks = {one.key: np.array([1]), other.key: np.array([0, 1, 2])}
    actions = mask_actions([one, other], masks, writer, Options(inline_vector_rows=0))

    assert [next(iter(action)) for action in actions] == ["remove", "remove", "add"]
    add = actions[-1]["add"]
    assert json.loads(add["stats"]) == {"numRecords": 3, "tightBounds": False}
    assert (add["path"], add["tags"], add["deletionVector"]["cardinality"]) == ("a", {"x": "y"}, 1)
    assert len(list(tmp_path.glob("*.bin"))) == 1
    writer.abandon()
    assert not list(tmp_path.glob("*.bin"))
    (*_, inline) = mask_actions([one], masks, writer, DEFAULT)
    assert inline["add"]["deletionVector"]["storageType"] == "i"
    assert not list(tmp_path.glob("*.bin"))
