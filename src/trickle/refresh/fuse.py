"""A fuse against absurd changes: one that is too big is not applied, but waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.errors import SuspendedError
from trickle.model.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.model.table_options import TableOptions


class FuseBlownError(SuspendedError):
    """A change is too big; nothing was committed.

    Attributes:
        at: The versions of the sources that the change goes up to.
    """

    def __init__(self, table: str, why: str, at: Mapping[str, int]) -> None:
        """Say why."""
        hint = (
            f"Look at the sources. Then resume({table!r}, apply=True) applies it, full=True recomputes, "
            "skip=True passes over it."
        )
        super().__init__("FUSE_BLOWN", f"stream table '{table}' was not refreshed: {why}.", hint=hint)
        self.at = dict(at)


@dataclass(frozen=True, slots=True)
class Fuse:
    """How many rows one refresh may insert and delete in all.

    Attributes:
        max_rows: As a number; None for any.
        max_ratio: As a share of the stored rows; None for any. Of an empty table every change is one.
    """

    max_rows: int | None = None
    max_ratio: float | None = None

    def why_blown(self, changed: int, stored: int) -> str | None:
        """Say why so many rows are too many, None if they are not.

        >>> Fuse(max_ratio=0.5).why_blown(6, 10)
        'it would insert and delete 6 rows, more than 0.5 times the 10 stored ones (max_change_ratio)'
        >>> Fuse(max_ratio=0.5).why_blown(5, 10)
        """
        what = f"it would insert and delete {changed} rows, more than"
        if self.max_rows is not None and changed > self.max_rows:
            return f"{what} {self.max_rows} (max_change_rows)"
        if self.max_ratio is not None and stored and changed > self.max_ratio * stored:
            return f"{what} {self.max_ratio:g} times the {stored} stored ones (max_change_ratio)"
        return None


def fuse_of(options: TableOptions) -> Fuse | None:
    """Return the fuse of a stream table, None if it has none."""
    if options.max_change_rows is None and options.max_change_ratio is None:
        return None
    return Fuse(options.max_change_rows, options.max_change_ratio)


def count_differences(new: DataFrame, stored: DataFrame) -> int:
    """Count the rows that are in one of two bags and not in the other."""
    from pyspark.sql import functions as F

    columns = [quote(name) for name in new.columns]
    both = new.select(*columns, F.lit(1).alias("__weight")).union(stored.select(*columns, F.lit(-1).alias("__weight")))
    counted = both.groupBy(*columns).agg(F.sum("__weight").alias("__weight"))
    row = counted.agg(F.sum(F.abs("__weight"))).first()
    return int((row[0] if row else None) or 0)
