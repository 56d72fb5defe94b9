"""The same tables in every implementation: what the contract tests run over."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from trickle.model.options import DEFAULT, Options
from trickle.model.table_options import NO_OPTIONS, TableOptions
from trickle.tables.arrow.local import local_frame, row_key
from trickle.tables.delta.create import make_target
from trickle.tables.delta.source import DeltaSource
from trickle.testing.hadoop import mount
from trickle.testing.memory import MemorySource, MemoryTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.contract import Applied, SourceTable, TargetTable

    Rows = Sequence[tuple[Any, ...]]


def bag(frame: DataFrame) -> Counter[Any]:
    """The rows of a DataFrame as a multiset."""
    return Counter(row_key(tuple(row)) for row in frame.collect())


def net_arrow(change: pa.Table) -> dict[Any, int]:
    """The same for a change in the driver."""
    weights: Counter[Any] = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in change.columns), strict=True):
        weights[row_key(row)] += weight
    return {row: weight for row, weight in weights.items() if weight}


def net(change: DataFrame) -> dict[Any, int]:
    """A change netted: rows to weights, zeros left out."""
    weights: Counter[Any] = Counter()
    for *row, weight in change.collect():
        weights[row_key(row)] += weight
    return {row: weight for row, weight in weights.items() if weight}


@dataclass
class Implementation:
    """How one table format makes a source, changes it, and makes a target."""

    source: Callable[..., SourceTable]
    commit: Callable[[SourceTable, Rows, Rows], int]
    target: Callable[[str, Rows], TargetTable]
    rows: Callable[[TargetTable], Counter[Any]]
    tamper: Callable[[TargetTable], None]
    in_driver: bool = False
    reads_in_driver: bool = True

    def check_io(self, applied: Applied) -> None:
        """Assert that a small write to a plain table was done by whom this implementation tests."""
        assert ("driver" in applied.steps) == self.in_driver, applied


def memory_implementation(spark: SparkSession, _folder: Path) -> Implementation:
    def commit(source: SourceTable, inserts: Rows, deletes: Rows) -> int:
        assert isinstance(source, MemorySource)
        return source.commit(inserts, deletes)

    def target(schema: str, rows: Rows) -> TargetTable:
        made = MemoryTarget(spark, "target", schema)
        made.overwrite(local_frame(spark, rows, schema), "created", made.state())
        return made

    def tamper(target: TargetTable) -> None:
        assert isinstance(target, MemoryTarget)
        target.tamper([], "DELETE")

    return Implementation(
        source=lambda name, schema, rows, **_: MemorySource(spark, name, schema, rows),
        commit=commit,
        target=target,
        rows=lambda target: Counter(row_key(row) for row in target.rows()),
        tamper=tamper,
    )


def delta_implementation(
    spark: SparkSession, folder: Path, *, driver_io: bool, options: Options = DEFAULT, bucket: str | None = None
) -> Implementation:
    """Delta tables: in a folder, or in a bucket of S3 or another place that is given by its URI."""
    made = options
    names: list[str] = []
    place = f"{bucket}/{uuid.uuid4()}" if bucket else str(folder)

    def source(name: str, schema: str, rows: Rows, *, options: Options = DEFAULT) -> SourceTable:
        path = f"{place}/{name}"
        local_frame(spark, rows, schema).write.format("delta").save(path)
        return DeltaSource(spark, name, path, driver_io=driver_io, options=options)

    def commit(source: SourceTable, inserts: Rows, deletes: Rows) -> int:
        """Write the new contents over the old in one commit, as a rewritten source would."""
        assert isinstance(source, DeltaSource)
        frame = source.snapshot(source.head())
        rows = [tuple(row) for row in frame.collect()]
        for row in deletes:
            rows.remove(row)
        new = local_frame(spark, [*rows, *inserts] if deletes else inserts, frame.schema)
        new.write.format("delta").mode("overwrite" if deletes else "append").save(source.path)
        return source.head()

    def target(schema: str, rows: Rows) -> TargetTable:
        name = f"contract_{folder.name.replace('-', '_')}_{len(names)}"
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        names.append(name)
        frame = local_frame(spark, rows, schema)
        return make_target(
            spark,
            name,
            frame,
            lambda target: target.append(frame, "created", target.state()),
            driver_io=driver_io,
            options=made,
            table=TableOptions(location=f"{place}/{name}") if bucket else NO_OPTIONS,
        )

    return Implementation(
        source=source,
        commit=commit,
        target=target,
        rows=lambda target: bag(target.frame()),
        tamper=lambda target: spark.sql(f"DELETE FROM {target.name}") and None,
        in_driver=driver_io,
        reads_in_driver=driver_io,
    )


def mounted_implementation(spark: SparkSession, folder: Path) -> Implementation:
    """Delta tables on a file system of Hadoop, in a folder that stays: the catalog looks at a table that it forgets."""
    place = folder.with_name(f"{folder.name}-mounted")
    place.mkdir()
    return delta_implementation(spark, folder, driver_io=True, bucket=mount(spark, place.as_uri()))


IMPLEMENTATIONS: Mapping[str, Callable[[SparkSession, Path], Implementation]] = {
    "memory": memory_implementation,
    "delta-spark": partial(delta_implementation, driver_io=False),
    "delta-driver": partial(delta_implementation, driver_io=True),
    "delta-vectors": partial(delta_implementation, driver_io=True, options=Options(vector_rows=0)),
    "delta-s3": partial(delta_implementation, driver_io=True, bucket="s3a://lake"),
    "delta-viewfs": mounted_implementation,
}
"""Every implementation that the suite runs over: a new format is a row here."""


_LONG = {"delta-viewfs": pytest.mark.slow}
"""Spark takes seconds for what it takes tenths for on a disk; ``tests/spark/test_hadoop.py`` has a part of it."""

_LONG_ON_S3 = frozenset(
    {
        "test_a_source_tells_its_history_exactly",
        "test_a_bag_change_counts_copies",
        "test_keys_are_replaced_null_safe_and_unchanged_rows_stay",
    }
)
"""What takes longer there than all others together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(item, "originalname", "") in _LONG_ON_S3 and "delta-s3" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=[pytest.param(name, marks=_LONG.get(name, ())) for name in IMPLEMENTATIONS])
def tables(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, warehouse_folder: Path
) -> Iterator[Implementation]:
    """Every implementation in turn."""
    if request.param == "delta-s3":
        request.getfixturevalue("s3")
    yield IMPLEMENTATIONS[request.param](spark, tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)
