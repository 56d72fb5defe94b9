"""Finding rows of a Delta table by value, to delete them by address.

A small change is a local relation: then one job joins the table with it, and which addresses go is decided in the
driver. A big one stays in the cluster: the same decision is a window, and its result is kept for the rewrite.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType, VariantType
from pyspark.sql.window import Window

from trickle.tables.rows import local_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CACHE: Final = StorageLevel.MEMORY_AND_DISK

_ADDRESS: Final = StructType([StructField("__file", StringType()), StructField("__row", LongType())])
_NUMBER: Final = StructType([StructField("__id", LongType())])


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the table that are to go.

    Attributes:
        addresses: ``__file`` and ``__row`` of each.
        hit: How many of them each file holds.
        same: For keys, the numbers (``__id``) of the new rows that are there already; None if there are none.
        same_count: How many those are.
        kept: What must be unpersisted in the end.
    """

    addresses: DataFrame
    hit: dict[str, int]
    same: DataFrame | None = None
    same_count: int = 0
    kept: tuple[DataFrame, ...] = ()

    @property
    def count(self) -> int:
        """Count the rows that are to go."""
        return sum(self.hit.values())


def find_copies(table: DataFrame, gone: DataFrame, width: int, *, local: bool) -> Found:
    """Find -``__w`` copies of every row of ``gone`` (c0, c1 …, ``__w``, ``__id``), or as many as there are.

    Copies are numbered per row and the first ones taken: which of several equal rows goes makes no difference.
    """
    side = fn.broadcast(gone) if local else gone
    matches = table.join(side, all_equal(width)).select("__file", "__row", "__id", "__w")
    if local:
        taken: Counter[int] = Counter()
        chosen = []
        for file, row, number, weight in _values(matches):
            if taken[number] < -weight:
                taken[number] += 1
                chosen.append((file, row))
        return Found(local_frame(table.sparkSession, chosen, _ADDRESS), _per_file(chosen))
    nth = Window.partitionBy("__id").orderBy("__file", "__row")
    first = matches.withColumn("__nth", fn.row_number().over(nth)).where(fn.col("__nth") <= -fn.col("__w"))
    addresses = first.select("__file", "__row").persist(CACHE)
    return Found(addresses, _counted(addresses), kept=(addresses,))


def find_keys(
    table: DataFrame, wanted: DataFrame, width: int, keys: Sequence[int], same: Column, *, local: bool
) -> Found:
    """Find the rows that have a key of ``wanted`` (c0, c1 …, ``__id``, ``__gone``), except those that are as wanted."""
    side = fn.broadcast(wanted) if local else wanted
    matches = table.join(side, all_equal(width, keys)).select(
        "__file", "__row", "__id", (~fn.col("__gone") & same).alias("__same")
    )
    if local:
        stay, leave = [], []
        for file, row, number, is_same in _values(matches):
            if is_same:
                stay.append((number,))
            else:
                leave.append((file, row))
        spark = table.sparkSession
        there = local_frame(spark, stay, _NUMBER) if stay else None
        return Found(local_frame(spark, leave, _ADDRESS), _per_file(leave), there, len(stay))
    matches = matches.persist(CACHE)
    there = matches.where("__same").select("__id")
    addresses = matches.where("not __same").select("__file", "__row")
    return Found(addresses, _counted(addresses), there, there.count(), (matches,))


def all_equal(width: int, places: Sequence[int] | None = None) -> Column:
    """Compare the table's columns t0, t1 … with the change's c0, c1 …, null-safe; at no place at all it is true."""
    chosen = range(width) if places is None else places
    tests = [fn.col(f"t{place}").eqNullSafe(fn.col(f"c{place}")) for place in chosen]
    return reduce(lambda left, right: left & right, tests) if tests else fn.lit(True)


def some_incomparable(frame: DataFrame, places: Sequence[int]) -> bool:
    """Tell whether one of the columns has a type that Spark cannot compare: maps and variants, at any depth."""
    return any(_incomparable(frame.schema.fields[place].dataType) for place in places)


def _incomparable(kind: DataType) -> bool:
    match kind:
        case MapType() | VariantType():
            return True
        case ArrayType(elementType=element):
            return _incomparable(element)
        case StructType(fields=fields):
            return any(_incomparable(field.dataType) for field in fields)
        case _:
            return False


def _values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in frame.toArrow().columns), strict=True))


def _per_file(addresses: Sequence[tuple[str, int]]) -> dict[str, int]:
    return dict(Counter(file for file, _ in addresses))


def _counted(addresses: DataFrame) -> dict[str, int]:
    return {row[0]: row[1] for row in addresses.groupBy("__file").count().collect()}
