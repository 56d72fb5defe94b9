"""What the plans of one refresh read: the sources, and the stream table itself, at the old and the new frontier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.compile.program import SELF
from trickle.tables.arrow.rows import with_keys

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from trickle.algebra.plan import Scan
    from trickle.model.definition import SourceVersion
    from trickle.tables.contract import SourceTable, TargetTable


def fan_out_of(source: SourceTable, version: int, column: str) -> float:
    """Give how many rows of a source have one value of a column, as far as its log tells."""
    rows, values = source.rows(version), source.domain(version, column)
    return 1.0 if not rows or not values else max(rows / values, 1.0)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Reads sources and state tables at two frontiers; the stream table's own rows are those of now.

    Attributes:
        sources: The sources by name, and the state tables opened so far.
    """

    sources: Mapping[str, SourceTable]
    target: TargetTable
    old: Mapping[str, SourceVersion]
    new: Mapping[str, SourceVersion]

    def snapshot(self, scan: Scan) -> DataFrame:
        """Give the rows of a scan."""
        names = tuple(c.name for c in scan.base)
        if scan.source == SELF:
            return self.target.frame().toDF(*names)
        return self.sources[scan.source].snapshot(self._version(scan), names)

    def find(self, scan: Scan, keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Find the rows of a scan by keys; None if they are to be read from its snapshot."""
        names = tuple(c.name for c in scan.base)
        if scan.source == SELF:
            rows = self.target.small_rows(to_search=bool(keys))
            rows = None if rows is None else rows.rename_columns(list(names))
            return rows if rows is None or not keys else with_keys(rows, keys)
        return self.sources[scan.source].find(self._version(scan), names, keys)

    def fan_out(self, source: str, column: str) -> float:
        """Give how many rows of a source have one value of a column, as far as its log tells."""
        return 1.0 if source == SELF else fan_out_of(self.sources[source], self.new[source].version, column)

    def _version(self, scan: Scan) -> int:
        return (self.old if scan.at == "old" else self.new)[scan.source].version
