"""Finds rows of a Delta table by value, to delete them by address.

A small change is a local relation: then one job joins the table with it, and which addresses go is decided in the
driver. A big one stays in the cluster: the same decision is a window, and its result is persisted for the rewrite.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import reduce
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from pyspark.sql.window import Window

from trickle.model.nearness import ABSOLUTE, RELATIVE
from trickle.model.types import facts_of, is_equated, mentions_floating, parts_of
from trickle.tables.arrow.local import local_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CACHE: Final = StorageLevel.MEMORY_AND_DISK

_ADDRESS: Final = StructType([StructField("__file", StringType()), StructField("__row", LongType())])
_NUMBER: Final = StructType([StructField("__id", LongType())])


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the table to delete.

    Attributes:
        addresses: ``__file`` and ``__row`` of each.
        hit: How many of them each file holds.
        same: For keys, the numbers (``__id``) of the new rows that are there already; None if there are none.
        same_count: How many those are.
        persisted: What must be unpersisted in the end.
        met: How many copies of each numbered row (``__id``) were found, for a small change.
    """

    addresses: DataFrame
    hit: dict[str, int]
    same: DataFrame | None = None
    same_count: int = 0
    persisted: tuple[DataFrame, ...] = ()
    met: Mapping[int, int] | None = None

    @property
    def count(self) -> int:
        """Count the rows to delete."""
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
        return Found(local_frame(table.sparkSession, chosen, _ADDRESS), _per_file(chosen), met=taken)
    nth = Window.partitionBy("__id").orderBy("__file", "__row")
    first = matches.withColumn("__nth", fn.row_number().over(nth)).where(fn.col("__nth") <= -fn.col("__w"))
    addresses = first.select("__file", "__row", "__id").persist(CACHE)
    return Found(addresses, _counted(addresses), persisted=(addresses,))


@dataclass(frozen=True, slots=True)
class Near:
    """Partners of rows that were not found as they are.

    Attributes:
        found: What was found before, and the stored rows that are near to one of them.
        cancelled: How many copies go of each numbered row (``__id``) that the change itself brings.
    """

    found: Found
    cancelled: Mapping[int, int]


def find_near(table: DataFrame, signed: DataFrame, found: Found, kinds: Sequence[DataType]) -> Near:
    """Find rows near to those that are to go and were not found: equal but for near floating-point values.

    Stored rows come first; what was never stored may take back what the change itself brings.
    """
    floating = [place for place, kind in enumerate(kinds) if _floating(kind)]
    if not floating:
        return Near(found, {})
    gone = signed.where("__w < 0")
    if found.met is None:
        counts = found.addresses.groupBy("__id").agg(fn.count("*").alias("__met"))
        rest = gone.join(counts, "__id", "left").withColumn("__need", -fn.col("__w") - fn.coalesce("__met", fn.lit(0)))
        need = dict(_values(rest.where("__need > 0").select("__id", "__need")))
    else:
        need = {row: -weight - found.met.get(row, 0) for row, weight in _values(gone.select("__id", "__w"))}
        need = {row: copies for row, copies in need.items() if copies > 0}
    spark = table.sparkSession
    missing = gone.join(fn.broadcast(local_frame(spark, [(row,) for row in need], _NUMBER)), "__id").drop("__w")
    matches = table.join(fn.broadcast(missing), _all_near(kinds), "inner").join(
        found.addresses.select("__file", "__row"), ["__file", "__row"], "left_anti"
    )
    pairs = _values(matches.select("__file", "__row", "__id", _distance(kinds)))
    near = _paired([((file, row), 1, number, far) for file, row, number, far in pairs], need)
    came = signed.where("__w > 0").withColumnsRenamed({f"c{p}": f"t{p}" for p in range(len(kinds))})
    came = came.withColumnsRenamed({"__id": "__came"})
    pairs = _values(
        came.join(fn.broadcast(missing), _all_near(kinds)).select("__came", "__w", "__id", _distance(kinds))
    )
    cancelled = _paired(pairs, need)
    local = local_frame(spark, list(near), _ADDRESS)
    hit = dict(Counter(found.hit) + Counter(_per_file(list(near))))
    return Near(replace(found, addresses=found.addresses.select("__file", "__row").union(local), hit=hit), cancelled)


def _paired(pairs: Sequence[tuple[Any, int, int, float]], need: dict[int, int]) -> dict[Any, int]:
    """Return how many copies of each candidate go, the nearest pairs first; what is needed becomes less."""
    left: dict[Any, int] = {}
    gone: Counter[Any] = Counter()
    for candidate, copies, number, _ in sorted(pairs, key=itemgetter(3)):
        some = min(left.setdefault(candidate, copies), need[number])
        left[candidate] -= some
        need[number] -= some
        if some:
            gone[candidate] += some
    return gone


def _all_near(kinds: Sequence[DataType]) -> Column:
    tests = []
    for place, kind in enumerate(kinds):
        stored, wanted = fn.col(f"t{place}"), fn.col(f"c{place}")
        tests.append(_near(kind, stored, wanted) if _floating(kind) else stored.eqNullSafe(wanted))
    return reduce(lambda left, right: left & right, tests)


def _near(kind: DataType, a: Column, b: Column) -> Column:
    if _is_number(kind):
        a, b = a.cast("double"), b.cast("double")
        size = fn.greatest(fn.abs(a), fn.abs(b))
        is_close = fn.abs(a - b) <= fn.greatest(size * fn.lit(RELATIVE), fn.lit(ABSOLUTE))
        return a.eqNullSafe(b) | fn.coalesce(is_close & (size < fn.lit(float("inf"))), fn.lit(False))
    match kind:
        case StructType(fields=fields) if _floating(kind):
            parts = [_near(f.dataType, a.getField(f.name), b.getField(f.name)) for f in fields]
            test = (a.isNull() & b.isNull()) | (a.isNotNull() & b.isNotNull() & reduce(lambda x, y: x & y, parts))
        case ArrayType(elementType=element) if _floating(kind):
            each = fn.forall(fn.zip_with(a, b, lambda x, y: _near(element, x, y)), lambda is_near: is_near)
            both = a.isNotNull() & b.isNotNull() & (fn.size(a) == fn.size(b))
            test = (a.isNull() & b.isNull()) | (both & fn.coalesce(each, fn.lit(False)))
        case _:
            test = a.eqNullSafe(b)
    return test


def _distance(kinds: Sequence[DataType]) -> Column:
    """Return how far two near rows are apart, as far as columns of numbers tell."""
    numbers = [place for place, kind in enumerate(kinds) if _is_number(kind)]
    parts = [fn.abs(fn.col(f"t{p}").cast("double") - fn.col(f"c{p}").cast("double")) for p in numbers]
    finite = [fn.when(part < fn.lit(float("inf")), part).otherwise(fn.lit(0.0)) for part in parts]
    return reduce(lambda a, b: a + b, finite, fn.lit(0.0))


def _floating(kind: DataType) -> bool:
    return mentions_floating(kind.simpleString())


def _is_number(kind: DataType) -> bool:
    """Return whether values are floating-point numbers themselves, and not made of such."""
    name = kind.simpleString()
    return facts_of(name).is_floating and parts_of(name) is None


def find_rows_with_keys(
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
    """Return whether one of the columns has a type that Spark cannot compare: maps and variants, at any depth."""
    return not all(is_equated(frame.schema.fields[place].dataType.simpleString()) for place in places)


def _values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in frame.toArrow().columns), strict=True))


def _per_file(addresses: Sequence[tuple[str, int]]) -> dict[str, int]:
    return dict(Counter(file for file, _ in addresses))


def _counted(addresses: DataFrame) -> dict[str, int]:
    return {row[0]: row[1] for row in addresses.groupBy("__file").count().collect()}
