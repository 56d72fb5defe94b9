"""Rewriting the files of a Delta table without some of their rows, named by address."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from trickle.tables.delta_commit import Transaction
    from trickle.tables.delta_jvm import Jvm

_ONE_FILE_BYTES: Final = 32 * 1024 * 1024
"""Rewrites smaller than this make one file: small files cost every later read more than they save here."""


class Addressed:
    """The rows of a transaction's snapshot with their addresses: columns t0, t1 … , ``__file``, ``__row``."""

    def __init__(self, transaction: Transaction, names: Sequence[str]) -> None:
        """List the table's files; ``names`` are its columns in the order to give them."""
        self.transaction = transaction
        self.names = names
        self._files = transaction.files()
        self.frame = self._read([action for _, action in self._files])

    def _read(self, actions: Sequence[Jvm]) -> DataFrame:
        frame = self.transaction.handle.addressed_files(self.transaction.snapshot, actions)
        place = frame.metadataColumn("_metadata")
        columns = [frame[quoted(name)].alias(f"t{at}") for at, name in enumerate(self.names)]
        return frame.select(
            *columns, place.getField("file_path").alias("__file"), place.getField("row_index").alias("__row")
        )

    def some(self, addresses: set[str]) -> tuple[DataFrame, list[Jvm], int]:
        """Give the rows of the files at these addresses, Delta's actions for the files, and their bytes."""
        chosen = {}
        for file, action in self._files:
            for address in addresses:
                if unquote(address).endswith("/" + unquote(file.path)) or unquote(address) == unquote(file.path):
                    chosen[file.path] = (file, action)
        if len(chosen) != len(addresses):
            message = f"{len(addresses)} files hold rows to delete, {len(chosen)} of them are in the table"
            raise AssertionError(message)
        actions = [action for _, action in chosen.values()]
        return self._read(actions), actions, sum(file.size for file, _ in chosen.values())


class Rewrite:
    """Takes rows out of files and puts rows in, writing the change feed where the table has it."""

    def __init__(
        self, table: Addressed, leaving: DataFrame, hit: Mapping[str, int], inserts: DataFrame, inserted: int
    ) -> None:
        """Plan to take out the rows at ``leaving`` (``__file``, ``__row``), which are in the files ``hit``."""
        self._table = table
        self._leaving = leaving
        self._hit = hit
        self._inserts = inserts
        self._inserted = inserted

    def write(self) -> list[Jvm]:
        """Write the files; gives the actions that put them in place of the old ones."""
        table = self._table
        held, actions, size = table.some(set(self._hit))
        marked = held.join(self._leaving.withColumn("__leaves", fn.lit(True)), ["__file", "__row"], "left")
        places = [f"t{at}" for at in range(len(table.names))]
        if table.transaction.has_feed:
            kind = fn.when(fn.col("__leaves"), fn.lit("delete"))
            rows = marked.select(*places, kind).toDF(*table.names, "_change_type")
            if self._inserted:
                none = fn.lit(None).cast("string")
                come = self._inserts.select("*", none).toDF(*table.names, "_change_type")
                told = self._inserts.select("*", fn.lit("insert")).toDF(*table.names, "_change_type")
                rows = rows.union(come).union(told)
        else:
            rows = marked.where(fn.col("__leaves").isNull()).select(*places).toDF(*table.names)
            if self._inserted:
                rows = rows.union(self._inserts)
        if size <= _ONE_FILE_BYTES and self._inserted <= 100_000:
            rows = rows.coalesce(1)
        written = table.transaction.write(rows)
        return [*(action.remove() for action in actions), *written]


def touched(addresses: DataFrame) -> dict[str, int]:
    """Count addresses per file."""
    return {row[0]: row[1] for row in addresses.groupBy("__file").count().collect()}


def all_equal(width: int, places: Sequence[int] | None = None) -> Column:
    """Compare the table's columns t0, t1 … with the change's c0, c1 …, null-safe; at no place at all it is true."""
    chosen = range(width) if places is None else places
    tests = [fn.col(f"t{place}").eqNullSafe(fn.col(f"c{place}")) for place in chosen]
    return reduce(lambda left, right: left & right, tests, fn.lit(True)) if tests else fn.lit(True)


def repeated(frame: DataFrame, weight: str, most: int) -> DataFrame:
    """Give each row as often as its weight says."""
    if most <= 1:
        return frame
    return frame.withColumn("__copy", fn.explode(fn.expr(f"array_repeat(0, cast({weight} as int))")))


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


def quoted(name: str) -> str:
    """Quote a column name, whatever signs are in it."""
    return "`" + name.replace("`", "``") + "`"
