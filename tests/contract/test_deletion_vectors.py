"""Deletion vectors that Spark writes are read in the driver, and those written there are read by Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from trickle.tables.delta.deletion_vectors import inline_vector, read_vectors, vector_file, vector_path
from trickle.tables.delta.source import DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.delta.deletion_vectors import Places


def make(spark: SparkSession, path: str, rows: int) -> DeltaSource:
    frame = spark.range(rows).coalesce(1).write.format("delta")
    frame.option("delta.enableDeletionVectors", "true").save(path)
    return DeltaSource(spark, "t", path)


def masked(source: DeltaSource) -> list[Places]:
    folder = source.table.folder
    assert folder is not None
    vectors = [file.body["deletionVector"] for file in source.table.files(source.head()) or ()]
    paths = [vector_path(vector) for vector in vectors]
    return read_vectors(vectors, folder, [path and source.log.address_of(path) for path in paths])


@pytest.mark.parametrize("prefix", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_vectors_of_spark_are_read(spark: SparkSession, tmp_path: Path, prefix: int) -> None:
    source = make(spark, str(tmp_path / "t"), 300_000)
    if prefix:
        spark.sql(f"ALTER TABLE delta.`{source.path}` SET TBLPROPERTIES ('delta.randomizeFilePrefixes' = 'true')")
    for where, count in (("id = 7", 1), ("id % 3 = 0", 100_001), ("id > 100 AND id < 90000", 159_934)):
        spark.sql(f"DELETE FROM delta.`{source.path}` WHERE {where}")
        (places,) = masked(source)
        assert len(places) == count
        ids = {row.id for row in spark.read.format("delta").load(source.path).collect()}  # each is its row's place
        assert places.tolist() == [id_ for id_ in range(300_000) if id_ not in ids]


@pytest.mark.parametrize("form", ["inline", "in a file"])
def test_spark_reads_the_vectors_of_the_driver(spark: SparkSession, tmp_path: Path, form: str) -> None:
    source = make(spark, str(tmp_path / "t"), 1000)
    (file,) = source.table.files(0) or ()
    folder, places = source.table.folder, np.array([0, 1, 2, 500, 999])
    assert folder is not None
    made = vector_file([np.array([3]), places])
    folder.storage.put(folder / made.name, made.data)
    vector = inline_vector(places) if form == "inline" else made.descriptors[1]
    removed = {"path": file.path, "deletionTimestamp": 1, "dataChange": True, "size": file.size, "partitionValues": {}}
    actions = [{"remove": removed}, {"add": {**file.body, "deletionVector": vector}}]
    commit = "".join(json.dumps(action) + "\n" for action in actions)
    folder.storage.put_if_absent(folder / f"_delta_log/{1:020d}.json", commit.encode())

    left = {row[0] for row in spark.read.format("delta").load(source.path).collect()}

    assert left == set(range(1000)) - set(places.tolist())
    assert [one.tolist() for one in masked(source)] == [places.tolist()]
