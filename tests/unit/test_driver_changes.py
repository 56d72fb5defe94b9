"""Changes of tables whose files are masked and rewritten, read in the driver; and rows found by key meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.deletion_vectors import inline_vector
from trickle.tables.delta.driver import read
from trickle.tables.delta.driver.read import net_rows
from trickle.tables.delta.source import DeltaSource

COLUMNS = ("id", "f", "s", "p")
TYPES = {"id": pa.int64(), "f": pa.float64(), "s": pa.string(), "p": pa.string()}
NAMES = {"id": "long", "f": "double", "s": "string", "p": "string"}
ROW = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3, 4]), st.sampled_from([None, 0.0, -0.0, 2.5]), st.sampled_from([None, "a", "ü"])
)


class Table:
    """A table that is written here, and its rows at each version."""

    def __init__(self, folder: Path, *, is_partitioned: bool) -> None:
        self.folder, self.is_partitioned = folder, is_partitioned
        (folder / "_delta_log").mkdir()
        self.files: dict[str, tuple[list[tuple], list[int], str | None, dict[str, Any]]] = {}
        self.versions: list[list[tuple]] = []
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in NAMES.items()]
        metadata = {
            "id": "t",
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["p"] if is_partitioned else [],
        }
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
        self.commit([{"protocol": protocol}, {"metaData": metadata}])

    def commit(self, actions: list[dict[str, Any]]) -> None:
        version = len(self.versions)
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (self.folder / f"_delta_log/{version:020d}.json").write_text(text)
        files = self.files.values()
        self.versions.append(
            [(*r, value) for some, masked, value, _ in files for at, r in enumerate(some) if at not in masked]
        )

    def add(self, rows: list[tuple], value: str | None) -> dict[str, Any]:
        path = f"{len(list(self.folder.glob('*.parquet')))}.parquet"
        held = ("id", "f", "s") if self.is_partitioned else COLUMNS
        columns = [pa.array([(*row, value)[at] for row in rows], TYPES[n]) for at, n in enumerate(held)]
        pq.write_table(pa.Table.from_arrays(columns, names=list(held)), self.folder / path, row_group_size=100)
        return self._entry(path, rows, [], value)

    def _entry(self, path: str, rows: list[tuple], masked: list[int], value: str | None) -> dict[str, Any]:
        body = {
            "path": path,
            "size": 1000,
            "dataChange": True,
            "partitionValues": {"p": value} if self.is_partitioned else {},
            "stats": json.dumps({"numRecords": len(rows)}),
        }
        if masked:
            body["deletionVector"] = inline_vector(np.array(masked))
        self.files[path] = rows, masked, value, body
        return {"add": body}

    def remove(self, path: str) -> dict[str, Any]:
        *_, body = self.files.pop(path)
        return {"remove": {**body, "deletionTimestamp": 1}}

    def mask(self, path: str, places: set[int]) -> list[dict[str, Any]]:
        rows, _, value, _ = self.files[path]
        removed = self.remove(path)
        return [removed, self._entry(path, rows, sorted(place for place in places if place < len(rows)), value)]

    def rewrite(self, path: str, gone: int, new: list[tuple]) -> list[dict[str, Any]]:
        rows, masked, value, _ = self.files[path]
        kept = [row for place, row in enumerate(rows) if place not in masked and place != gone]
        return [self.remove(path), self.add([*kept, *new] or [(9, None, None)], value)]


@st.composite
def tables(draw):
    """What happens to a table, commit by commit."""
    some = st.lists(ROW, min_size=1, max_size=30)
    step = st.one_of(
        st.tuples(st.just("add"), some, st.sampled_from([None, "x", "y"])),
        st.tuples(st.just("mask"), st.integers(0, 9), st.sets(st.integers(0, 29), min_size=1)),
        st.tuples(st.just("rewrite"), st.integers(0, 9), st.integers(0, 29), st.lists(ROW, max_size=3)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
    )
    commits = st.lists(st.lists(step, min_size=1, max_size=3), min_size=2, max_size=5)
    return draw(st.lists(some, min_size=1, max_size=3)), draw(commits)


def play(table: Table, first: list[list[tuple]], commits: list[list[tuple]]) -> None:
    table.commit([table.add(rows, "x") for rows in first])
    for steps in commits:
        actions, touched = [], set()
        for kind, *told in steps:
            if kind == "add":
                actions.append(table.add(*told))
                touched.add(actions[-1]["add"]["path"])
                continue
            there = sorted(table.files.keys() - touched)
            if not there:
                continue
            path = there[told[0] % len(there)]
            touched.add(path)
            if kind == "mask":
                actions += table.mask(path, told[1])
            elif kind == "rewrite":
                actions += table.rewrite(path, told[1], told[2])
                touched.add(actions[-1]["add"]["path"])
            else:
                actions.append(table.remove(path))
        table.commit([*actions, {"commitInfo": {"operation": "TEST"}}])


def exact(row: tuple) -> tuple:
    """The text of a number tells 0.0 from -0.0."""
    return tuple(map(repr, row))


OPTIONS = {
    "netted at once": Options(whole_rows=0),
    "carried rows left out": Options(whole_rows=0, polars_net_rows=0, column_cache_asks=2),
    "cached": Options(
        whole_rows=0, polars_net_rows=0, column_cache_asks=1, roll_forward_share=1, bundle_files=2, lookup_cache_bytes=0
    ),
}


@settings(deadline=None, max_examples=60)
@given(told=tables(), is_partitioned=st.booleans(), how=st.sampled_from([*OPTIONS]), data=st.data())
def test_the_change_is_the_difference_of_the_versions(told, is_partitioned, how, data):
    options = OPTIONS[how]
    with TemporaryDirectory() as folder:
        table = Table(Path(folder), is_partitioned=is_partitioned)
        play(table, *told)
        source = DeltaSource(MagicMock(), "t", folder, columns=ColumnCache(options), options=options)
        for upto in range(1, len(table.versions)):
            columns = data.draw(st.sampled_from([COLUMNS, ("s", "id"), ("p",), ("f", "p")]))
            since = data.draw(st.integers(1, upto))
            check_change(source, table, since, upto, columns)
            check_change(source, table, since, upto, data.draw(st.sampled_from([("id",), ("p", "s")])))
            check_found(source, table, upto, data.draw(st.sampled_from([COLUMNS, ("f", "id"), ("p", "s")])))


def check_change(source: DeltaSource, table: Table, since: int, upto: int, columns: tuple[str, ...]) -> None:
    change = source.small_changes(source.classify(since, upto, columns), columns)
    assert change is not None
    weights: Counter = Counter()
    for row in change.to_pylist():
        weights[exact(tuple(row[name] for name in columns))] += row[WEIGHT]
    expected: Counter = Counter()
    for version, sign in ((upto, 1), (since, -1)):
        for row in table.versions[version]:
            expected[exact(tuple(row[COLUMNS.index(name)] for name in columns))] += sign
    assert {row: n for row, n in weights.items() if n} == {row: n for row, n in expected.items() if n}


def check_found(source: DeltaSource, table: Table, version: int, columns: tuple[str, ...]) -> None:
    if not table.versions[version]:
        return
    found = source.find(version, columns, {"id": pa.array([1, 3, 4], pa.int64())})
    assert found is not None
    expected: Counter = Counter()
    for row in table.versions[version]:
        if row[0] in (1, 3, 4):
            expected[exact(tuple(row[COLUMNS.index(name)] for name in columns))] += 1
    assert Counter(exact(tuple(row.values())) for row in found.to_pylist()) == expected


@pytest.mark.parametrize("how", ["masked", "rewritten"])
def test_a_version_read_before_serves_after_rows_were_masked_or_rewritten(tmp_path, how, monkeypatch):
    options = Options(whole_rows=0, column_cache_asks=1)
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add([(number, 0.5, "a") for number in range(start, start + 500)], "x") for start in (0, 500)])
    source = DeltaSource(MagicMock(), "t", str(tmp_path), columns=ColumnCache(options), options=options)
    keys = {"id": pa.array([7, 8, 507], pa.int64())}
    assert source.find(1, ("id",), keys).num_rows == 3

    first, before = min(table.files), {str(tmp_path / file) for file in table.files}
    info = {"commitInfo": {"operation": "DELETE", "operationMetrics": {"numDeletedRows": "1"}}}
    actions = table.mask(first, {17}) if how == "masked" else table.rewrite(first, 17, [])
    table.commit([*actions, table.add([(9, 0.5, "a")], "x"), info])
    searched = []
    find = source._lookup.finder_of("t").find
    monkeypatch.setattr(
        source._lookup.finder_of("t"), "find", lambda files, *a, **k: searched.extend(files) or find(files, *a, **k)
    )

    found = source.find(2, ("id",), {"id": pa.array([17, 18, 508], pa.int64())})

    assert sorted(found["id"].to_pylist()) == [18, 508]
    assert set(searched) == before


def test_rows_that_a_rewrite_carries_over_are_not_netted(tmp_path, monkeypatch):
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add([(number, 0.5, "a") for number in range(2000)], "x")])
    table.commit(table.rewrite("0.parquet", 17, [(9, 0.5, "b")]))
    options = Options(polars_net_rows=1000)
    source = DeltaSource(MagicMock(), "t", str(tmp_path), options=options)
    netted = []
    monkeypatch.setattr(read, "net_rows", lambda rows, *told: netted.append(rows.num_rows) or net_rows(rows, *told))

    check_change(source, table, 1, 2, COLUMNS)

    assert netted[0] < 400


def test_columns_of_masked_and_rewritten_files_are_decoded_once(tmp_path, monkeypatch):
    options = Options(polars_net_rows=0, column_cache_asks=1)
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add([(number, 0.5, "a") for number in range(2000)], "x") for _ in range(2)])
    source = DeltaSource(MagicMock(), "t", str(tmp_path), columns=ColumnCache(options), options=options)
    scanned = []
    scan = pl.scan_parquet
    monkeypatch.setattr(pl, "scan_parquet", lambda files, **told: scanned.extend(files) or scan(files, **told))

    for version in (2, 3, 4):
        table.commit(table.mask("0.parquet", {version}))
        check_change(source, table, version - 1, version, ("s", "id"))
    assert [Path(file).name for file in scanned] == ["0.parquet"]

    scanned.clear()
    for version, path in ((5, "1.parquet"), (6, "2.parquet")):
        table.commit(table.rewrite(path, 7, []))
        check_change(source, table, version - 1, version, ("s", "id"))
        check_change(source, table, version - 1, version, ("id",))
    assert sorted(Path(file).name for file in scanned) == ["1.parquet", "2.parquet", "3.parquet"]


@pytest.mark.parametrize(("masked", "in_driver"), [({7}, True), ({7, 150}, True), (set(range(0, 2000, 50)), False)])
def test_of_a_big_masked_file_only_some_row_groups_count(tmp_path, masked, in_driver):
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add([(number, 0.5, "a") for number in range(2000)], "x")])
    table.commit(table.mask("0.parquet", masked))
    options = Options(driver_change_bytes=900)  # the log says that the file has 1000
    source = DeltaSource(MagicMock(), "t", str(tmp_path), options=options)
    versions = source.classify(1, 2, ("id",))
    assert (versions.bytes, versions.masked_bytes) == (1000, 1000)

    if in_driver:
        check_change(source, table, 1, 2, ("id",))
    else:
        assert source.small_changes(versions, ("id",)) is None


def test_of_a_big_masked_file_only_some_rows_are_decoded(tmp_path, monkeypatch):
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add([(number, 0.5, "a") for number in range(2000)], "x")])
    table.commit(table.mask("0.parquet", {707, 710}))
    source = DeltaSource(MagicMock(), "t", str(tmp_path))
    slices = []
    cut = pl.LazyFrame.slice
    monkeypatch.setattr(pl.LazyFrame, "slice", lambda rows, *told: slices.append(told) or cut(rows, *told))

    check_change(source, table, 1, 2, ("id", "s"))

    assert slices == [(707, 4)]


@pytest.mark.parametrize(("compression", "decoded"), [("snappy", ("s",)), ("gzip", ("id", "s"))])
def test_a_column_of_a_new_file_in_the_same_bytes_is_not_decoded(tmp_path, monkeypatch, compression, decoded):
    rows = [(number, 0.5, "a") for number in range(2000)]
    changed = [(number, 0.5, "b" if number == 77 else "a") for number in range(2000)]
    table = Table(tmp_path, is_partitioned=False)
    table.commit([table.add(rows, "x")])
    table.commit([table.remove("0.parquet"), table.add([(0, 0.5, "z"), *rows[1:]], "x")])
    options = Options(polars_net_rows=0)
    source = DeltaSource(MagicMock(), "t", str(tmp_path), columns=ColumnCache(options), options=options)
    check_change(source, table, 1, 2, ("id", "s"))
    write = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda *told, **more: write(*told, **more, compression=compression))
    table.commit([table.remove("1.parquet"), table.add(changed, "x")])
    finder = source._lookup.finder_of("t")
    names = []
    decode = finder._decoded
    monkeypatch.setattr(finder, "_decoded", lambda *told: names.append(tuple(told[-1])) or decode(*told))

    check_change(source, table, 2, 3, ("id", "s"))

    assert names == [decoded]
