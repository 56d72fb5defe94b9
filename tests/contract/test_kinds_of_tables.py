"""Tables as people have them: the driver reads their changes and finds their rows by key, and Spark agrees."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.table import forget_table
from trickle.testing.regimes import regime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("id", "n", "s", "p")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table.

    Attributes:
        columns: The types of its columns.
        properties: Of the table.
        after: Statements when it has some rows.
        expired: Delete what a log's clean-up deletes.
    """

    columns: str = "id BIGINT, n INT, s STRING, p DATE"
    layout: str = ""
    properties: str = "delta.enableChangeDataFeed = true"
    after: tuple[str, ...] = ()
    expired: bool = False


KINDS = {
    "plain": Kind(),
    "deletion vectors": Kind(properties="delta.enableDeletionVectors = true"),
    "deletion vectors, feed": Kind(properties="delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true"),
    "partitioned": Kind(layout="PARTITIONED BY (p)"),
    "partitioned by text, vectors": Kind(layout="PARTITIONED BY (s)", properties="delta.enableDeletionVectors = true"),
    "clustered": Kind(layout="CLUSTER BY (id)"),
    "mapped": Kind(properties="delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true"),
    "mapped by id, partitioned": Kind(layout="PARTITIONED BY (p)", properties="delta.columnMapping.mode = 'id'"),
    "mapped later and renamed": Kind(
        columns="id BIGINT, n INT, old STRING, p DATE",
        properties="delta.minReaderVersion = 1",
        after=(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
            "'delta.minWriterVersion' = '5')",
            "ALTER TABLE {t} RENAME COLUMN old TO s",
        ),
    ),
    "varchar, char": Kind(columns="id BIGINT, n INT, s VARCHAR(9), p DATE, c CHAR(3)"),
    "DEFAULT": Kind(
        columns="id BIGINT, n INT DEFAULT 7, s STRING DEFAULT 'x', p DATE",
        properties="delta.feature.allowColumnDefaults = 'supported'",
    ),
    "generated": Kind(columns="id BIGINT, n INT, s STRING, p DATE, y INT GENERATED ALWAYS AS (year(p))"),
    "identity": Kind(columns="id BIGINT, n INT, s STRING, p DATE, i BIGINT GENERATED ALWAYS AS IDENTITY"),
    "constraint": Kind(after=("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > -100)",)),
    "row tracking": Kind(properties="delta.enableRowTracking = true, delta.enableDeletionVectors = true"),
    "in-commit timestamps": Kind(properties="delta.enableInCommitTimestamps = true"),
    "widened": Kind(
        columns="id BIGINT, n SMALLINT, s STRING, p DATE",
        properties="delta.enableTypeWidening = true",
        after=("ALTER TABLE {t} ALTER COLUMN n TYPE INT",),
    ),
    "expired": Kind(properties="delta.checkpointInterval = 2", expired=True),
    "expired, v2 checkpoints": Kind(
        properties="delta.checkpointPolicy = 'v2', delta.checkpointInterval = 2, delta.enableDeletionVectors = true",
        layout="PARTITIONED BY (p)",
        expired=True,
    ),
}

FIRST = tuple(
    f"INSERT INTO {{t}} (id, n, {{s}}, p) SELECT id, CAST(id % 7 AS INT), nullif(concat('t', id % 4), 't3'), "
    f"nullif(date_add(DATE'2026-01-01', CAST(id % 3 AS INT)), DATE'2026-01-03') FROM range({start}, {start + 12})"
    for start in (0, 12)
)
LATER = (
    "UPDATE {t} SET n = n + 1 WHERE id % 5 = 1",
    "DELETE FROM {t} WHERE id IN (3, 14, 20)",
    "INSERT INTO {t} (id, n, s, p) VALUES (3, 1, 't1', DATE'2026-01-02'), (40, NULL, NULL, NULL), "
    "(41, 2, 'ü', DATE'9999-12-31')",
    "OPTIMIZE {t}",
    "UPDATE {t} SET s = 't9', p = DATE'2026-01-01' WHERE id < 6",
)
KEYS = (
    {"id": pa.array([1, 3, 5, 14, 40, 99], pa.int64())},
    {"n": pa.array([2, 3], pa.int32())},
    {"s": pa.array(["t1", "t9", "ü"])},
    {"s": pa.array(["t1", "t2"]), "id": pa.array([1, 5, 9, 10], pa.int64())},
    {"p": pa.array([20454], pa.int32()).cast(pa.date32())},
    {},
)
OPTIONS = {
    "searched": Options(whole_rows=0, whole_rows_asked=10**6),
    "cached": regime("columns at once"),
    "whole": Options(),
}


def _expire(spark: SparkSession, path: Path) -> None:
    log = path / "_delta_log"
    last = int(json.loads((log / "_last_checkpoint").read_text())["version"])
    for version in range(last):
        (log / f"{version:020d}.json").unlink(missing_ok=True)
        (log / f"{version:020d}.crc").unlink(missing_ok=True)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


QUICK = {"mapped by id, partitioned", "expired, v2 checkpoints"}
"""Those that between them have each way in which the log completes what files hold."""


@pytest.mark.parametrize("name", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in KINDS])
def test_the_driver_finds_rows_and_reads_changes(spark, tmp_path, name):
    kind, path = KINDS[name], tmp_path / "t"
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} ({kind.columns}) USING delta {kind.layout} TBLPROPERTIES ({kind.properties})")
    for statement in (*FIRST, *kind.after):
        spark.sql(statement.format(t=table, s="old" if "old STRING" in kind.columns else "s"))
    if kind.expired:
        for _ in range(2):
            spark.sql(f"UPDATE {table} SET n = n WHERE id = 1")
        _expire(spark, path)
        forget_table(spark, str(path))
    sources = {
        how: DeltaSource(spark, how, str(path), columns=ColumnCache(options), options=options)
        for how, options in OPTIONS.items()
    }
    version = next(iter(sources.values())).head()
    for statement in (None, *LATER):
        if statement is not None:
            spark.sql(statement.format(t=table))
        before, version = version, next(iter(sources.values())).head()
        rows = {at: _bag(spark, path, at) for at in (before, version)}
        for how, source in sources.items():
            _check_change(source, before, version, rows)
            for keys in KEYS:
                for at in (version, before):
                    _check_found(source, how, at, keys, rows[at])


def _bag(spark: SparkSession, path: Path, version: int) -> Counter:
    frame = spark.read.format("delta").option("versionAsOf", version).load(str(path)).select(*COLUMNS)
    return Counter(map(tuple, frame.collect()))


def _check_change(source: DeltaSource, since: int, upto: int, rows: dict[int, Counter]) -> None:
    change = source.small_changes(source.classify(since, upto, COLUMNS), COLUMNS)
    assert change is not None
    weights: Counter = Counter()
    for row in change.to_pylist():
        weights[tuple(row[name] for name in COLUMNS)] += row[WEIGHT]
    expected = {row: n for row in rows[since] | rows[upto] if (n := rows[upto][row] - rows[since][row])}
    assert {row: n for row, n in weights.items() if n} == expected


def _check_found(source: DeltaSource, how: str, version: int, keys: dict, rows: Counter) -> None:
    for wanted in (COLUMNS, ("p", "s"), ("s", "id")):
        found = source.find(version, wanted, keys)
        assert found is not None, (how, keys)
        assert found.column_names == list(wanted)
        got = Counter(tuple(row.values()) for row in found.to_pylist())
        expected: Counter = Counter()
        for row, count in rows.items():
            values = dict(zip(COLUMNS, row, strict=True))
            if all(values[name] is not None and values[name] in array.to_pylist() for name, array in keys.items()):
                expected[tuple(values[name] for name in wanted)] += count
        assert got == expected, (how, version, keys, wanted)
