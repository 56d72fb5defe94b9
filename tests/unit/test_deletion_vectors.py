"""Deletion vectors as bytes: what we write is what we read, and what delta-rs reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from trickle.tables.delta.deletion_vectors import (
    decode,
    encode,
    from_base85,
    inline_vector,
    read_vectors,
    to_base85,
    vector_file,
    vector_path,
)
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.storage.schemes import Folder, folder_at

if TYPE_CHECKING:
    from trickle.tables.delta.deletion_vectors import Places

places = st.sets(st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1), st.integers(2**32 - 3, 2**32 + 3)))


def array(*some: int) -> Places:
    return np.array(some, np.int64)


def folder(path: Path) -> Folder:
    found = folder_at(str(path))
    assert found is not None
    return found


@given(places)
def test_what_is_decoded_is_what_was_encoded(some: set[int]) -> None:
    assert decode(encode(np.array(list(some), np.int64))).tolist() == sorted(some)


@given(st.binary())
def test_any_bytes_pass_through_base_85(data: bytes) -> None:
    assert from_base85(to_base85(data)) == data + b"\0" * (-len(data) % 4)


def test_the_paths_of_the_format_s_own_examples() -> None:
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    assert vector_path({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}) == f"ab/{name}"
    assert vector_path({"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"}) == name
    assert vector_path({"storageType": "p", "pathOrInlineDv": f"s3://b/{name}"}) == f"s3://b/{name}"
    assert vector_path(inline) is None
    with pytest.raises(ValueError, match="40 bytes"):  # of the form that only Delta itself reads
        decode(from_base85(inline["pathOrInlineDv"])[:40])


@given(st.lists(places, min_size=1, max_size=4))
def test_vectors_of_one_file_are_read_at_once(tmp_path_factory: pytest.TempPathFactory, some: list[set[int]]) -> None:
    vectors = [np.array(sorted(one), np.int64) for one in some]
    at = folder(tmp_path_factory.mktemp("vectors"))
    file = vector_file(vectors)
    at.storage.put(at / file.name, file.data)
    descriptors = [*file.descriptors, inline_vector(vectors[0])]
    paths = [vector_path(one) for one in descriptors]
    assert paths == [file.name] * len(vectors) + [None]

    read = read_vectors(descriptors, at, [path and at / path for path in paths])

    assert [one.tolist() for one in read] == [one.tolist() for one in (*vectors, vectors[0])]


@pytest.mark.parametrize("damage", ["gone", "cut off", "a bit flipped", "another's", "no bitmap", "of another count"])
def test_a_damaged_vector_is_left_to_spark(tmp_path: Path, damage: str) -> None:
    at = folder(tmp_path)
    file = vector_file([array(1, 2, 2**40)])
    (descriptor,) = file.descriptors
    data = bytearray(file.data)
    match damage:
        case "cut off":
            del data[-1]
        case "a bit flipped":
            data[20] ^= 1
        case "another's":
            descriptor["sizeInBytes"] -= 4
        case "no bitmap":
            descriptor = inline_vector(array(1)) | {"sizeInBytes": 4}
        case "of another count":
            descriptor["cardinality"] += 1
    if damage != "gone":
        at.storage.put(at / file.name, bytes(data))
    address = None if descriptor["storageType"] == "i" else at / file.name

    with pytest.raises(NeedsSparkError):
        read_vectors([descriptor], at, [address])


@pytest.mark.parametrize("form", ["inline", "in a file"])
def test_delta_rs_reads_what_is_written_here(tmp_path: Path, form: str) -> None:
    write_deltalake(tmp_path, pa.table({"n": range(10)}))
    (add,) = (json.loads(line)["add"] for line in _lines(tmp_path, 0) if "add" in json.loads(line))
    at, masked = folder(tmp_path), array(0, 4, 9)
    file = vector_file([array(5), masked])
    at.storage.put(at / file.name, file.data)
    vector = inline_vector(masked) if form == "inline" else file.descriptors[1]
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    actions = [
        {"protocol": protocol},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**add, "deletionVector": vector}},
    ]
    (tmp_path / f"_delta_log/{1:020d}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))

    read = pa.table(DeltaTable(tmp_path).deletion_vectors()).to_pylist()

    assert [not keep for keep in read[0]["selection_vector"]] == [place in (0, 4, 9) for place in range(10)]


def _lines(table: Path, version: int) -> list[str]:
    return (table / f"_delta_log/{version:020d}.json").read_text().splitlines()
