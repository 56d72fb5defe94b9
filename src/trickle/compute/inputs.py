"""The inputs of the plans of one refresh: sources, state tables and the stream table itself, at both frontiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from trickle.compile.program import SELF
from trickle.tables.arrow.rows import with_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.algebra.plan import Scan
    from trickle.compute.declared_keys import DeclaredKeys
    from trickle.compute.rows import Rows
    from trickle.model.definition import SourceVersion
    from trickle.tables.contract import SourceTable, TargetTable


def fan_out_of(source: SourceTable, version: int, column: str) -> float:
    """Return the average number of rows of a source with one value of a column, as far as its log says."""
    rows, values = source.rows(version), source.domain(version, column)
    return 1.0 if not rows or not values else max(rows / values, 1.0)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Reads sources and state tables at two frontiers; the stream table's own rows are those of now.

    Attributes:
        sources: The sources and state tables by name.
        old: The frontier before.
        new: The frontier after.
        target: The stream table itself, for plans that read its rows.
        changes: The netted changes between the frontiers, of what has any.
        declared: What declared keys tell of rows, given the changes; None to search for all of them.
    """

    sources: Mapping[str, SourceTable]
    old: Mapping[str, SourceVersion]
    new: Mapping[str, SourceVersion]
    target: TargetTable | None = None
    changes: Mapping[str, Rows] = field(default_factory=dict)
    declared: DeclaredKeys | None = None

    def snapshot(self, scan: Scan) -> DataFrame:
        """Return the rows of a scan."""
        names = tuple(c.name for c in scan.base)
        if scan.source == SELF:
            return self._itself.frame().toDF(*names)
        return self.sources[scan.source].snapshot(self._version(scan), names)

    def change(self, source: str) -> Rows:
        """Return the change of a source, its weights in the last column."""
        return self.changes[source]

    def lookup(self, scan: Scan, keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return the rows of a scan that have some keys, or all rows of a small table without keys.

        None if they are to be read from its snapshot. Rows that follow from a declared key are not searched for.
        """
        names = tuple(c.name for c in scan.base)
        if scan.source == SELF:
            rows = self._itself.small_rows(to_search=bool(keys))
            rows = None if rows is None else rows.rename_columns(list(names))
            return rows if rows is None or not keys else with_keys(rows, keys)
        known = None if self.declared is None else self.declared.known_rows(scan, keys)
        if known is None:
            return self.sources[scan.source].find(self._version(scan), names, keys)
        if known.is_all:
            return known.rows
        found = self.sources[scan.source].find(self._version(scan), names, known.keys_left)
        if found is None or known.rows is None:
            return found
        return pa.concat_tables([found, known.rows.cast(found.schema)])

    def fan_out(self, source: str, column: str) -> float:
        """Return the average number of rows of a source with one value of a column, as far as its log says."""
        return 1.0 if source == SELF else fan_out_of(self.sources[source], self.new[source].version, column)

    @property
    def _itself(self) -> TargetTable:
        if self.target is None:
            message = "a plan that reads the stream table's own rows needs the stream table"
            raise AssertionError(message)
        return self.target

    def _version(self, scan: Scan) -> int:
        return (self.old if scan.at == "old" else self.new)[scan.source].version
