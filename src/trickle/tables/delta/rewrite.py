"""Rewrites the files of a Delta table without some of their rows, given by address."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import functions as fn

from trickle.model.options import DEFAULT, Options

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.commit import Transaction
    from trickle.tables.delta.find import Found
    from trickle.tables.delta.jvm import Jvm


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

    def some(self, addresses: Collection[str]) -> tuple[DataFrame, list[Jvm], int]:
        """Return the rows of the files at these addresses, Delta's actions for the files, and their bytes."""
        by_name: dict[str, list[tuple[FileAction, Jvm]]] = {}
        for file, action in self._files:
            by_name.setdefault(unquote(file.path).rpartition("/")[2], []).append((file, action))
        chosen = []
        for address in map(unquote, addresses):  # a URI; the log has paths relative to the table, or whole URIs
            near = by_name.get(address.rpartition("/")[2], ())
            chosen += [(file, action) for file, action in near if address.endswith(unquote(file.path))]
        if len(chosen) != len(addresses):
            message = f"{len(addresses)} files hold rows to delete, {len(chosen)} of them are in the table"
            raise AssertionError(message)
        actions = [action for _, action in chosen]
        return self._read(actions), actions, sum(file.size for file, _ in chosen)


def rewrite(table: Addressed, found: Found, inserts: DataFrame, inserted: int, options: Options = DEFAULT) -> list[Jvm]:
    """Rewrite the files with found rows, without these and with ``inserts``; return the actions that swap them.

    Where the table keeps a change feed, the deleted and inserted rows are written to it too (``_change_type`` set), so
    that it tells the change and not the rewrite.
    """
    held, actions, size = table.some(found.hit)
    leaving = found.addresses.withColumn("__leaves", fn.lit(True))
    marked = held.join(leaving, ["__file", "__row"], "left")
    places = [f"t{at}" for at in range(len(table.names))]
    if table.transaction.has_feed:
        feed_columns = (*table.names, "_change_type")
        rows = marked.select(*places, fn.when(fn.col("__leaves"), fn.lit("delete"))).toDF(*feed_columns)
        if inserted:
            kinds = fn.explode(fn.array(fn.lit(None).cast("string"), fn.lit("insert")))
            rows = rows.union(inserts.select("*", kinds).toDF(*feed_columns))
    else:
        rows = marked.where(fn.col("__leaves").isNull()).select(*places).toDF(*table.names)
        if inserted:
            rows = rows.union(inserts)
    # Small files cost every later read more than they save now.
    if size <= options.one_file_bytes and inserted <= options.one_file_rows:
        rows = rows.coalesce(1)
    written = table.transaction.write(rows)
    return [*(action.remove() for action in actions), *written]


def repeated(frame: DataFrame, weight: str, most: int) -> DataFrame:
    """Repeat each row as often as its weight says."""
    if most <= 1:
        return frame
    return frame.withColumn("__copy", fn.explode(fn.expr(f"array_repeat(0, cast({weight} as int))")))


def quoted(name: str) -> str:
    """Quote a column name, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
