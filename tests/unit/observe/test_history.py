"""The refreshes of stream tables, told from hand-made logs."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.observe.lake import NOON, PROTOCOL, Lake
from trickle.errors import SourceError
from trickle.model.definition import Took
from trickle.observe.observer import Observer
from trickle.observe.places import ListedPlaces
from trickle.tables.formats import open_log


@pytest.fixture
def totals(lake: Lake) -> Lake:
    """A table that was refreshed three times, once by an older version."""
    lake.table("orders")
    lake.stream("totals")
    lake.refresh("totals", {"orders": 0, "@1": 3}, ago=900, mode="full", reason="FIRST_REFRESH: the first one")
    lake.refresh("totals", {"orders": 1}, ago=800, metrics={"numInsertedRows": 5, "numDeletedRows": 2})
    lake.write("totals", ago=700, operation="OPTIMIZE", changes_data=False)
    took = Took(inserted=7, deleted=6, seconds=0.5, steps={"look": 0.1, "compute": 0.3})
    lake.refresh("totals", {"orders": 2}, ago=600, took=took)
    return lake


def test_refreshes_are_told_from_the_newest_back(totals):
    newest, before, first = totals.observer().history("totals")

    assert [e.version for e in (newest, before, first)] == [4, 2, 1]
    assert (newest.rows_inserted, newest.rows_deleted, newest.seconds) == (7, 6, 0.5)
    assert dict(newest.steps) == {"look": 0.1, "compute": 0.3}
    assert (before.rows_inserted, before.rows_deleted, before.seconds) == (5, 2, None)
    assert (first.mode, first.reason, first.rows_inserted) == ("full", "FIRST_REFRESH: the first one", None)
    assert dict(first.frontier) == {"orders": 0}
    assert first.started == first.committed == NOON - timedelta(seconds=900)


def test_a_record_of_another_version_is_told_as_far_as_it_goes(totals):
    file = totals.folder / "totals" / "_delta_log" / f"{2:020d}.json"
    file.write_text(file.read_text().replace("refresh_id", "fresh_id"))

    _, odd, first = totals.observer().history("totals")

    assert (odd.version, odd.mode, odd.reason, odd.rows_inserted) == (2, "unknown", "UNREADABLE_RECORD", 5)
    assert first.mode == "full"


def test_as_many_as_asked_for(totals):
    assert [entry.version for entry in totals.observer().history("totals", 2)] == [4, 2]
    assert len(totals.observer().history("totals", None)) == 3


def test_the_log_may_begin_late(totals):
    for version in (0, 1):
        (totals.folder / "totals" / "_delta_log" / f"{version:020d}.json").unlink()
    checkpoint(totals, "totals", 2)

    assert [entry.version for entry in totals.observer().history("totals")] == [4, 2]


def checkpoint(lake: Lake, name: str, version: int) -> None:
    """Write the two actions of a checkpoint that tell what a table is."""
    log = lake.folder / name / "_delta_log"
    created = Lake(lake.folder / "elsewhere")
    created.stream(name)
    lines = (created.folder / name / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    metadata = next(json.loads(line)["metaData"] for line in lines if "metaData" in line)
    pairs = pa.map_(pa.string(), pa.string())
    body = pa.struct([("id", pa.string()), ("schemaString", pa.string()), ("configuration", pairs)])
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    rows = [{**metadata, "configuration": list(metadata["configuration"].items())}, None]
    table = pa.table({"metaData": pa.array(rows, body), "protocol": pa.array([None, PROTOCOL["protocol"]], protocol)})
    pq.write_table(table, log / f"{version:020d}.checkpoint.parquet")


def test_metadata_comes_from_a_checksum_if_the_log_begins_late(totals):
    log = totals.folder / "totals" / "_delta_log"
    lines = (log / f"{0:020d}.json").read_text().splitlines()
    metadata = next(json.loads(line)["metaData"] for line in lines if "metaData" in line)
    (log / f"{4:020d}.crc").write_text(json.dumps({"metadata": metadata, **PROTOCOL}))
    (log / f"{0:020d}.json").unlink()

    assert len(totals.observer().history("totals")) == 3


def test_metadata_comes_from_a_checkpoint_of_the_second_kind(totals):
    log = totals.folder / "totals" / "_delta_log"
    lines = (log / f"{0:020d}.json").read_text()
    (log / f"{1:020d}.checkpoint.01234567-89ab-cdef-0123-456789abcdef.json").write_text(lines)
    (log / f"{0:020d}.json").unlink()

    assert len(totals.observer().history("totals")) == 3


def test_metadata_may_be_far_back(lake):
    lake.table("orders")
    for _ in range(90):
        lake.write("orders", ago=1)

    assert open_log(str(lake.folder / "orders")).identity() == "orders"


def test_a_log_that_tells_nothing_without_spark_says_so(totals):
    (totals.folder / "totals" / "_delta_log" / f"{0:020d}.json").unlink()

    with pytest.raises(SourceError, match="NEEDS_SPARK"):
        totals.observer().history("totals")


def test_a_storage_that_only_spark_reads_is_refused():
    places = ListedPlaces({"default.totals": "hdfs://host/totals"})

    (found,) = Observer(places).status()

    assert found.health == "broken"
    assert "NEEDS_SPARK" in str(found.problem)
    with pytest.raises(SourceError, match="NEEDS_SPARK"):
        Observer(places).history("totals")


def test_commits_that_a_catalog_coordinates_are_refused(totals):
    staged = totals.folder / "totals" / "_delta_log" / "_staged_commits"
    staged.mkdir()
    (staged / "5.uuid.json").write_text("{}")

    with pytest.raises(SourceError, match="NEEDS_SPARK"):
        open_log(str(totals.folder / "totals")).head()
