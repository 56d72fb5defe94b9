"""Rows found by key in files of which the log says more: masked rows, partition columns, names, ids, narrower numbers."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.actions import file_action
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.search import Search, bundled, files_near
from trickle.tables.delta.layout import constants, layout_of

NAMES = {"id": "col-1", "day": "col-2", "text": "col-3"}


def metadata(*, mapped: str = "none", partitioned: bool = False, id_type: str = "long") -> dict:
    kinds = {"id": id_type, "day": "date", "text": "string"}
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {}
            if mapped == "none"
            else {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": NAMES[name]},
        }
        for number, (name, kind) in enumerate(kinds.items(), 1)
    ]
    return {
        "id": "t",
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"] if partitioned else [],
        "configuration": {} if mapped == "none" else {"delta.columnMapping.mode": mapped},
    }


def _find(finder: Finder, asked: Search, addresses: list[str]) -> pa.Table:
    fields, keys = asked.fields_in_files, asked.keys_in_files
    return finder.find(addresses, fields, keys, addressed=asked.is_addressed, bundles=asked.bundles)


rows = st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.sampled_from(["a", "b", None]))
parts = st.tuples(
    st.lists(rows, min_size=1, max_size=6),
    st.sets(st.integers(0, 5)),
    st.sampled_from(["2026-01-01", "2026-01-02", None]),
    st.booleans(),
)


@settings(max_examples=150)
@given(
    files=st.lists(parts, min_size=1, max_size=5),
    mapped=st.sampled_from(["none", "name", "id"]),
    partitioned=st.booleans(),
    keys=st.sampled_from([(), ("id",), ("day",), ("id", "day"), ("text",)]),
    wanted=st.sampled_from([("id", "text"), ("day", "id"), ("day",), ("id", "day", "text")]),
    options=st.sampled_from(
        [{}, {"column_cache_asks": 1}, {"column_cache_asks": 1, "bundle_files": 2, "index_looks": 1}]
    ),
)
def test_the_rows_with_the_keys_are_found(files, mapped, partitioned, keys, wanted, options):
    options = Options(**options)
    names = dict(NAMES) if mapped != "none" else {name: name for name in NAMES}
    layout = layout_of(metadata(mapped=mapped, partitioned=partitioned))
    dates = {text: None if text is None else date.fromisoformat(text) for *_, text, _ in files}
    expected: Counter = Counter()
    values = {"id": pa.array([1, 3, 5, 2**40], pa.int64()), "day": pa.array([date(2026, 1, 2)], pa.date32())}
    values["text"] = pa.array(["b"])
    sets = {name: set(array.to_pylist()) for name, array in values.items()}
    with TemporaryDirectory() as folder:
        actions, addresses, masks = [], {}, {}
        for number, (some, masked, day, is_narrow) in enumerate(files):
            columns = {
                "id": pa.array([id_ for id_, _ in some], pa.int32() if is_narrow else pa.int64()),
                "text": pa.array([text for _, text in some], pa.string()),
            }
            if not partitioned:
                columns["day"] = pa.array([dates[day]] * len(some), pa.date32())
            fields = [
                pa.field(names[name], array.type, metadata={"PARQUET:field_id": str([*NAMES].index(name) + 1)})
                for name, array in columns.items()
            ]
            path = f"{number}.parquet"
            pq.write_table(pa.Table.from_arrays([*columns.values()], schema=pa.schema(fields)), Path(folder) / path)
            body = {"path": path, "size": 1, "partitionValues": {names["day"]: day} if partitioned else {}}
            masked = {place for place in masked if place < len(some)}
            if masked:
                vector = {"storageType": "i", "pathOrInlineDv": str(number), "cardinality": len(masked)}
                body["deletionVector"] = vector
            action = file_action("add", body)
            if masked:
                masks[action.key] = np.array(sorted(masked))
            actions.append(action)
            addresses[path] = str(Path(folder) / path)
            for place, (id_, text) in enumerate(some):
                row = {"id": id_, "day": dates[day], "text": text}
                if place not in masked and all(row[name] is not None and row[name] in sets[name] for name in keys):
                    expected[tuple(row[name] for name in wanted)] += 1
        finder = Finder(ColumnCache(options), options)
        chosen = {name: values[name] for name in keys}
        for _ in range(3):
            near = files_near(actions, layout, chosen)
            bundles = bundled(near, actions, options)
            searched = [file for bundle in bundles for file in bundle]
            some = {file.key: masks[file.key] for file in searched if file.key in masks}
            asked = Search(searched, [*map(len, bundles)], layout, layout.wanted(wanted), chosen, some)
            found = asked.completed(_find(finder, asked, [addresses[file.path] for file in searched]))
            assert found.column_names == list(wanted)
            assert found.schema.field(0).type == layout.fields[wanted[0]].type
            got = Counter(tuple(row[name] for name in wanted) for row in found.to_pylist())
            assert got == expected


def test_a_column_that_goes_by_another_id_is_left_to_spark(tmp_path):
    field = pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "9"})
    pq.write_table(pa.Table.from_arrays([pa.array([1])], schema=pa.schema([field])), tmp_path / "f.parquet")
    layout = layout_of(metadata(mapped="id"))
    file = file_action("add", {"path": "f.parquet", "size": 1})

    asked = Search([file], [1], layout, layout.wanted(["id"]), {"id": pa.array([1])}, {})
    with pytest.raises(NeedsSparkError):
        _find(Finder(), asked, [str(tmp_path / "f.parquet")])


def test_files_of_a_bundle_may_have_columns_that_others_lack(tmp_path):
    addresses = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for number, address in enumerate(addresses):
        more = {"new": [1]} if number == 1 else {}
        pq.write_table(pa.table({"id": [number], "text": ["a"], **more}), address)
    options = Options(column_cache_asks=1)
    finder = Finder(ColumnCache(options), options)
    fields = [pa.field("id", pa.int64())]

    for wanted in ([0, 2], [1]):
        found = finder.find(addresses, fields, {"id": pa.array(wanted)}, bundles=[3])
        assert found.column("id").to_pylist() == wanted


@pytest.mark.parametrize(
    ("text", "kind"),
    [("+10000-01-01", pa.date32()), ("-0001-01-01", pa.date32()), ("1.005", pa.decimal128(10, 2)), (" 1", pa.int32())],
)
def test_a_partition_that_is_not_written_as_usual_is_left_to_spark(text, kind):
    with pytest.raises(NeedsSparkError):
        constants([None, text], kind)


def test_partitions_are_read_from_their_texts():
    assert constants(["0000-01-01", None, "", "1970-01-02"], pa.date32()).cast(pa.int32()).to_pylist() == [
        *(-719528, None, None, 1)
    ]
    assert constants(["1.5", "0E-10"], pa.decimal128(38, 10)).to_pylist() == [Decimal("1.5"), Decimal(0)]
    assert constants(["", None, "a"], pa.string()).to_pylist() == ["", None, "a"]  # as Spark reads them
    assert constants([None, ""], pa.float64()).to_pylist() == [None, None]


def test_a_file_without_partition_values_is_left_to_spark():
    layout = layout_of(metadata(partitioned=True))

    for values in ({"day": None}, {}):
        assert layout.constants(file_action("remove", {"path": "f", "partitionValues": values})) == {"day": None}
    with pytest.raises(NeedsSparkError):
        layout.constants(file_action("remove", {"path": "f"}))


def test_bundles_stay_as_files_come_and_go():
    settled = [file_action("add", {"path": f"part-{number:05d}", "size": 1}) for number in range(400)]
    options = Options(bundle_files=16)
    before = {tuple(file.path for file in bundle) for bundle in bundled(settled, settled, options)}

    new = [file_action("add", {"path": f"new-{number}", "size": 1}) for number in range(3)]
    left = settled[:200] + settled[201:]
    after = {tuple(file.path for file in bundle) for bundle in bundled([*left, *new], left, options)}

    assert 10 < len(before) < 60
    assert len(before - after) == 1
    assert {("new-0",), ("new-1",), ("new-2",)} <= after


def test_tiny_files_are_bundled_sooner():
    tiny = [file_action("add", {"path": f"part-{number:05d}", "size": 1000}) for number in range(20)]
    others = [file_action("add", {"path": f"big-{number}", "size": 2 * 1024**2}) for number in range(4)]
    options = Options(bundle_files=64)

    assert [len(bundle) for bundle in bundled([*others, *tiny[:4]], [*others, *tiny], options)] == [1] * 8
    found = bundled([*others, *tiny], [*others, *tiny], options)

    assert sorted(file.path for bundle in found for file in bundle) == sorted(f.path for f in [*others, *tiny])
    assert len(found) < 8
    assert all(len(bundle) == 1 for bundle in found if any(file in others for file in bundle))
