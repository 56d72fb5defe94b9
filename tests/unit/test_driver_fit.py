"""Which tables and columns the driver takes, and that the rest is left to Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.tables.delta.driver.fit import NeedsSparkError, is_committable, is_readable
from trickle.tables.delta.driver.read import read_file
from trickle.tables.delta.schema import arrow_field, arrow_schema

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def metadata(*, partitions: Any = (), **settings: str) -> dict[str, Any]:
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]
    configuration = {f"delta.{key.replace('__', '.')}": value for key, value in settings.items()}
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"schemaString": schema, "partitionColumns": list(partitions), "configuration": configuration}


def features(*names: str) -> dict[str, Any]:
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": list(names)}


def test_plain_tables_are_written() -> None:
    assert is_committable(PLAIN, metadata(enableChangeDataFeed="true"))
    assert is_committable(features("changeDataFeed", "timestampNtz", "deletionVectors"), metadata())
    assert arrow_schema(metadata()) == pa.schema([("a", pa.int64())])
    assert is_committable(PLAIN, metadata(columnMapping__mode="name"))
    assert is_committable(PLAIN, metadata(partitions=["a"]))
    assert is_committable(PLAIN, metadata(enableInCommitTimestamps="true"))
    assert is_committable(features("clustering", "domainMetadata"), metadata())


@pytest.mark.parametrize(
    ("protocol", "described"),
    [
        (PLAIN, metadata(columnMapping__mode="id")),
        (PLAIN, metadata(constraints__positive="a > 0")),
        (PLAIN, metadata(appendOnly="true")),
        (PLAIN, metadata(coordinatedCommits__commitCoordinator="x")),
        (features("rowTracking"), metadata()),
        (features("typeWidening"), metadata()),
        (features("icebergCompatV2"), metadata()),
        (features("catalogManaged"), metadata()),
        (features("featureOfTomorrow"), metadata()),
    ],
)
def test_tables_that_ask_more_of_a_writer_are_left_to_spark(protocol: Any, described: Any) -> None:
    assert not is_committable(protocol, described)


def test_unknown_reader_features_are_left_to_spark() -> None:
    assert is_readable({**features(), "readerFeatures": ["typeWidening", "deletionVectors"]})
    assert not is_readable({**features(), "readerFeatures": ["variantType"]})


@pytest.mark.parametrize(
    "field",
    [
        {"type": "variant"},
        {"type": "void"},
        {"type": {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}},
        {"type": {"type": "array", "elementType": "variant", "containsNull": True}},
        {
            "type": {
                "type": "struct",
                "fields": [
                    {
                        "name": "x",
                        "type": "long",
                        "nullable": True,
                        "metadata": {"delta.columnMapping.physicalName": "y"},
                    }
                ],
            }
        },
        {"type": "string", "metadata": {"__COLLATIONS": {"a": "icu.UNICODE_CI"}}},
        {"type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
        {"type": "long", "metadata": {"delta.generationExpression": "b + 1"}},
    ],
)
def test_columns_that_only_spark_holds(field: Any) -> None:
    assert arrow_field({"name": "a", "nullable": True, "metadata": {}, **field}) is None


def write(path: Any, column: pa.Array, name: str = "a", **options: Any) -> Any:
    pq.write_table(pa.table({name: column}), path, **options)
    return path


def test_old_timestamps_are_instants(tmp_path: Any) -> None:
    instants = pa.array([0, None, 10**15 + 1], pa.timestamp("us"))
    file = write(tmp_path / "f", instants, use_deprecated_int96_timestamps=True)

    rows = read_file(file, [pa.field("a", pa.timestamp("us", tz="UTC")), pa.field("new", pa.string())])

    assert rows["a"].cast(pa.int64()).to_pylist() == [0, None, 10**15 + 1]
    assert rows["new"].to_pylist() == [None] * 3


@pytest.mark.parametrize(
    ("column", "name", "kind"),
    [
        (pa.array([1], pa.timestamp("us")), "a", pa.timestamp("us", tz="UTC")),
        (pa.array([1], pa.timestamp("us", tz="UTC")), "a", pa.timestamp("us")),
        (pa.array([1.5], pa.float32()), "a", pa.float64()),
        (pa.array([1]), "a", pa.string()),
        (pa.array([1]), "A", pa.int64()),  # Spark may see the same column in another case
    ],
)
def test_files_that_hold_something_else_are_left_to_spark(tmp_path: Any, column: Any, name: str, kind: Any) -> None:
    with pytest.raises(NeedsSparkError):
        read_file(write(tmp_path / "f", column, name), [pa.field("a", kind)])


def test_files_in_an_old_calendar_or_gone_are_left_to_spark(tmp_path: Any) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(table, tmp_path / "f")

    for file in (tmp_path / "f", tmp_path / "gone"):
        with pytest.raises(NeedsSparkError):
            read_file(file, [pa.field("a", pa.int64())])
