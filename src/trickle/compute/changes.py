"""Reads the changes of the sources of one refresh: each once, only the columns in use, netted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.algebra.plan import Plan, Scan
from trickle.algebra.walk import walk
from trickle.compute.rows import Rows
from trickle.compute.spark import SparkExecution
from trickle.rules.derive import net

if TYPE_CHECKING:
    import pyarrow as pa

    from trickle.algebra.expr import Column
    from trickle.catalyst.jvm import Jvm
    from trickle.compile.program import Program
    from trickle.model.options import Options
    from trickle.tables.contract import SourceTable, VersionRange


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one refresh.

    Attributes:
        rows: The netted change of each source.
        tables: The same as the driver has read it, None where Spark did.
        spark: Runs what Spark computes from them: in the driver if they are small together.
    """

    rows: Mapping[str, Rows]
    tables: Mapping[str, pa.Table | None]
    spark: SparkExecution

    @property
    def counts(self) -> dict[str, int]:
        """The changed rows of each source."""
        return {name: rows.count for name, rows in self.rows.items()}


def read_changes(
    jvm: Jvm,
    program: Program,
    sources: Mapping[str, SourceTable],
    ranges: Mapping[str, VersionRange],
    options: Options,
) -> Changes:
    """Read the changes of the sources that a program reads over their version ranges; those without any are left out."""
    used = program.used
    ranges = {name: versions for name, versions in ranges.items() if versions.kind != "none"}
    tables = {name: sources[name].small_changes(versions, used[name]) for name, versions in ranges.items()}
    counts = [ranges[name].rows if table is None else table.num_rows for name, table in tables.items()]
    fits = None not in counts and sum(n for n in counts if n is not None) <= options.driver_change_rows
    spark = SparkExecution(jvm, in_driver=fits, key_ranges="key_ranges" not in program.disable)
    rows = {
        name: _read_by_spark(spark, program, sources[name], name, ranges[name])
        if table is None
        else Rows.from_arrow(jvm.spark, table)
        for name, table in tables.items()
    }
    return Changes(rows, tables, spark)


def _read_by_spark(
    spark: SparkExecution, program: Program, source: SourceTable, name: str, versions: VersionRange
) -> Rows:
    columns = program.used[name]
    frame = source.changes(versions, columns)
    if spark.in_driver:
        # Few rows: one partition sums their weights without a shuffle.
        frame = frame.coalesce(1)
    scan = Scan(name, tuple(_column_of(program.plan, name, c) for c in columns), "change")
    # Rows of an append cannot cancel.
    plan: Plan = scan if versions.kind == "append" else net(scan)
    return spark.compute(spark.frame(plan, lambda _: frame))


def _column_of(plan: Plan, source: str, name: str) -> Column:
    return next(c for p in walk(plan) if isinstance(p, Scan) and p.source == source for c in p.base if c.name == name)
