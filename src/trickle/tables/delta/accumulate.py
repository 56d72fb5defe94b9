"""Adding a change to stored sums, by Spark: the rows that the touched keys have afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from trickle.errors import StateError
from trickle.model.reason import STATE_MISMATCH, SUM_OVERFLOW
from trickle.tables.delta.find import CACHE, all_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class StoredSums:
    """The stored rows after an addition.

    Attributes:
        rows: The rows of the touched keys, None if nothing is touched.
        touched: The touched keys.
        persisted: What must be unpersisted in the end.
    """

    rows: DataFrame | None
    touched: DataFrame
    persisted: DataFrame


def add_up(name: str, stored: DataFrame, delta: DataFrame, keys: Sequence[str], count: str) -> StoredSums:
    """Add ``delta`` to the rows of its keys.

    Raises:
        StateError: ``STATE_MISMATCH``, a count became negative; ``SUM_OVERFLOW``, a sum does not fit its type.
    """
    names = delta.columns
    places = [names.index(key) for key in keys]
    values = [place for place in range(len(names)) if place not in places]
    old = stored.toDF(*(f"t{place}" for place in range(len(names))))
    new = delta.toDF(*(f"c{place}" for place in range(len(names))))
    new = new.where(_any(fn.col(f"c{place}") != 0 for place in values))
    held = old.join(new, all_equal(len(names), places), "left_semi").toDF(*new.columns)

    def total(place: int) -> Column:
        # By the aggregate: `+` of two decimals of 38 digits drops digits after the point to make room before it.
        # NULL is a sum that does not fit, whether the session raises on overflow or not.
        return fn.try_sum(f"c{place}").try_cast(delta.schema.fields[place].dataType).alias(f"c{place}")

    grouped = new.union(held).groupBy(*(f"c{place}" for place in places))
    sums = grouped.agg(fn.count(fn.lit(1)).alias("__rows"), *(total(place) for place in values)).where("__rows > 0")
    sums = sums.select(*(fn.col(f"c{place}").alias(f"s{place}") for place in range(len(names)))).persist(CACHE)
    at = f"s{names.index(count)}"
    over = _any(fn.col(f"s{place}").isNull() for place in values)
    row = sums.agg(fn.count(fn.lit(1)), fn.min(at), fn.max(over)).first()
    found, lowest, overflows = row if row is not None else (0, None, None)
    if overflows or (lowest is not None and lowest < 0):
        sums.unpersist()
    if overflows:
        raise StateError(
            SUM_OVERFLOW, f"Stream table {name}: a sum does not fit its type.", hint="Give it a wider one with CAST."
        )
    if lowest is not None and lowest < 0:
        raise StateError(
            STATE_MISMATCH,
            f"Stream table {name} holds fewer input rows than are to be taken away.",
            hint="Someone changed it, or its record; a full refresh repairs it.",
        )
    touched = sums.select(*(fn.col(f"s{place}") for place in places)).toDF(*keys)
    rows = sums.where(fn.col(at) != 0) if keys else sums
    return StoredSums(rows.toDF(*names) if found else None, touched, sums)


def _any(tests: object) -> Column:
    return reduce(lambda left, right: left | right, tests, fn.lit(False))  # type: ignore[call-overload, no-any-return]
