"""Commits of other metadata on S3: each under a condition, so that of many writers none overwrites another."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.errors import ConflictError
from trickle.tables.delta.driver.housekeeping import commit_first, commit_metadata
from trickle.tables.delta.log import DeltaLogFiles, commit_file
from trickle.tables.delta.table_log import NoSpark
from trickle.tables.storage import schemes, settings
from trickle.tables.storage.schemes import Folder, folder_at
from trickle.testing.s3 import s3_server

METADATA = {
    "id": "orders",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": [],
    "configuration": {},
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 4}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as server:
        server.make_bucket("metadata")
        settings.use_settings({**server.settings, "spark.master": "local"})
        yield "s3a://metadata"
        settings._given.clear()
        schemes._opened.pop("s3a://metadata", None)


@pytest.fixture
def folder(bucket: str) -> Folder:
    made = folder_at(f"{bucket}/{uuid.uuid4()}")
    assert made is not None
    return made


def open_table(folder: Folder) -> Any:
    """A table as another process would see it."""
    log = DeltaLogFiles(NoSpark(folder.address), name="orders")
    return SimpleNamespace(log=log, folder=folder, location=folder.address)


def with_property(key: str) -> Any:
    def change(before: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, "configuration": {**before["configuration"], key: "set"}}

    return change


def properties(folder: Folder) -> set[str]:
    log = open_table(folder).log
    return set(log.metadata(log.head())["configuration"])


def test_many_writers_lose_no_property(folder: Folder) -> None:
    commit_first(folder, PROTOCOL, METADATA)

    def write(number: int) -> bool:
        return commit_metadata(open_table(folder), with_property(f"p{number}"), "SET TBLPROPERTIES", {})

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(8))) == [True] * 8

    assert properties(folder) == {f"p{number}" for number in range(8)}
    assert open_table(folder).log.head() == 8


def test_metadata_that_is_the_same_makes_no_commit(folder: Folder) -> None:
    commit_first(folder, PROTOCOL, METADATA)
    table = open_table(folder)

    for _ in range(2):
        assert commit_metadata(table, with_property("p"), "SET TBLPROPERTIES", {})

    assert table.log.head() == 1


def test_who_comes_second_does_not_make_a_table_anew(folder: Folder) -> None:
    for identity in ("first", "second"):
        assert commit_first(folder, PROTOCOL, {**METADATA, "id": identity})

    assert open_table(folder).log.metadata(0)["id"] == "first"


@pytest.mark.parametrize(
    "protocol", [{"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}]
)
def test_a_table_of_unknown_features_is_left_to_delta(folder: Folder, protocol: Mapping[str, Any]) -> None:
    commit_first(folder, protocol, METADATA)

    assert not commit_metadata(open_table(folder), with_property("p"), "SET TBLPROPERTIES", {})


def test_stamps_go_on(folder: Folder) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    commit_first(folder, protocol, {**METADATA, "configuration": {"delta.enableInCommitTimestamps": "true"}})
    first = folder.storage.get(commit_file(folder, 0))
    later = 10**14  # of a clock that is ahead
    folder.storage.put(
        commit_file(folder, 0), first.replace(b'"operation"', b'"inCommitTimestamp":%d,"operation"' % later)
    )
    table = open_table(folder)

    assert commit_metadata(table, with_property("p"), "SET TBLPROPERTIES", {})

    assert table.log.commit(1).info["inCommitTimestamp"] == later + 1


def test_writers_that_never_get_through_are_a_conflict(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_first(folder, PROTOCOL, METADATA)

    def taken(address: str, data: bytes) -> None:
        raise FileExistsError(address)

    monkeypatch.setattr(folder.storage, "put_if_absent", taken)

    with pytest.raises(ConflictError):
        commit_metadata(open_table(folder), with_property("p"), "SET TBLPROPERTIES", {})
