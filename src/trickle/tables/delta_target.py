"""The Delta table behind a stream table: every write is one conditional commit that carries the refresh's record.

A write that changes some rows finds them by address (file and place in it), rewrites only the files that hold them, and
writes the change feed itself, so the feed shows the changed rows and not the rewritten ones.
"""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType
from pyspark.sql.window import Window

from trickle.errors import StateError
from trickle.model.reason import STATE_MISMATCH
from trickle.tables.contract import Applied, TargetState
from trickle.tables.delta_commit import APPLICATION, Transaction, commit_lock, conflict
from trickle.tables.delta_jvm import DeltaHandle
from trickle.tables.delta_log import DeltaLogFiles
from trickle.tables.delta_rewrite import Addressed, Rewrite, all_equal, repeated, some_incomparable, touched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta_jvm import Jvm

_CACHE: Final = StorageLevel.MEMORY_AND_DISK


class DeltaTarget:
    """A stream table's own Delta table."""

    def __init__(self, spark: SparkSession, name: str, path: str) -> None:
        """Bind to the table at ``path``, called ``name`` in messages; touches nothing yet."""
        self.name = name
        self.path = path
        self.spark = spark
        self.handle = DeltaHandle(spark, path)
        self.log = DeltaLogFiles(self.handle)
        self._state: TargetState | None = None
        self._number = -1
        self._generation = -1

    def __repr__(self) -> str:
        return f"DeltaTarget({self.name!r}, {self.path!r})"

    # -- where it stands -----------------------------------------------------------------------------------------

    def state(self) -> TargetState:
        """Read where the table stands. Only commits that came since the last look are read."""
        head = self.log.head()
        if self._state is None or self._generation != self.log.generation or head < self._state.version:
            self._state, self._generation = self._search(head), self.log.generation
        for commit in self.log.commits(self._state.version, head):
            self._state = self._after(self._state, commit.version)
        return self._state

    def _search(self, head: int) -> TargetState:
        """Go back from the head to our newest commit; where the log ends before one is found, there is no record."""
        start = head
        while (commit := self.log.commit(start)) is not None and APPLICATION not in commit.transactions:
            start -= 1
        state = TargetState(version=start - 1 if commit is not None else start, record=None, record_version=-1)
        self._number = -1
        for version in range(state.version + 1, head + 1):
            state = self._after(state, version)
        return state

    def _after(self, state: TargetState, version: int) -> TargetState:
        (commit,) = self.log.commits(version - 1, version)
        number = commit.transactions.get(APPLICATION)
        if number is not None:
            self._number = number
            return TargetState(version, commit.info.get("userMetadata"), version)
        foreign = (*state.foreign, commit.operation) if commit.changes_data else state.foreign
        return TargetState(version, state.record, state.record_version, foreign)

    def rows(self) -> DataFrame:
        """Give the rows at the newest version."""
        return self.handle.relation(self.log.head())

    def _fitting(self, rows: DataFrame, extra: int = 0) -> DataFrame:
        """Check that rows have the table's columns and types in order: Delta's own check is in the layers above."""
        schema = StructType.fromJson(json.loads(self.log.metadata(self.log.head())["schemaString"]))
        fields = rows.schema.fields[: len(rows.schema.fields) - extra]
        expected = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        found = [(field.name, field.dataType.simpleString()) for field in fields]
        if expected != found:
            raise StateError(
                "SCHEMA_MISMATCH",
                f"Stream table {self.name} has the columns {expected}, the rows to write have {found}.",
                hint="Drop the stream table and create it again.",
            )
        return rows

    # -- writes --------------------------------------------------------------------------------------------------

    def overwrite(self, rows: DataFrame, record: str, expected: TargetState) -> Applied:
        """Replace all rows."""
        work = _Work(self, record, expected)
        with work as transaction:
            files = transaction.files()
            written = transaction.write(self._fitting(rows))
            work.step("write")
            removes = [action.remove() for _, action in files]
            deleted = sum((file.records or 0) - file.masked for file, _ in files)
            return work.commit([*removes, *written], "Overwrite", transaction.added_rows(), deleted)

    def append(self, rows: DataFrame, record: str, expected: TargetState) -> Applied:
        """Add rows."""
        work = _Work(self, record, expected)
        with work as transaction:
            written = transaction.write(self._fitting(rows))
            work.step("write")
            return work.commit(written, "Append", transaction.added_rows(), 0)

    def touch(self, record: str, expected: TargetState) -> Applied:
        """Commit the record alone: a version without files."""
        work = _Work(self, record, expected)
        with work:
            return work.commit([], "Append", 0, 0)

    def apply_bag(self, change: DataFrame, record: str, expected: TargetState) -> Applied:
        """Delete exactly -n copies of a row, add +n copies.

        The copies to delete are numbered per row of the change, and the first n of them taken: which of several
        equal rows goes makes no difference.
        """
        work = _Work(self, record, expected)
        with work as transaction:
            names = self._fitting(change, extra=1).columns[:-1]
            signed = _numbered(change, "__w").persist(_CACHE)
            work.undo.append(signed)
            totals = signed.agg(
                fn.sum(fn.greatest(fn.col("__w"), fn.lit(0))), fn.sum(fn.least(fn.col("__w"), fn.lit(0))), fn.max("__w")
            ).first()
            came, went, most = (int(total or 0) for total in totals or (0, 0, 0))
            work.step("change")
            inserts = repeated(signed.where("__w > 0"), "__w", most).select(*_places(names)).toDF(*names)
            if went == 0:
                written = transaction.write(_compact(inserts, came)) if came else []
                work.step("write")
                return work.commit(written, "Append", came, 0)
            table = Addressed(transaction, names)
            gone = signed.where("__w < 0")
            nth = Window.partitionBy("__id").orderBy("__file", "__row")
            found = (
                table.frame.join(gone, all_equal(len(names)))
                .select("__file", "__row", "__w", fn.row_number().over(nth).alias("__nth"))
                .where(fn.col("__nth") <= -fn.col("__w"))
                .select("__file", "__row")
                .persist(_CACHE)
            )
            work.undo.append(found)
            hit = touched(found)
            work.step("find")
            if sum(hit.values()) != -went:
                raise StateError(
                    STATE_MISMATCH,
                    f"Stream table {self.name} holds {sum(hit.values())} of the {-went} rows that are to be deleted.",
                    hint="Someone changed it, or its record; a full refresh repairs it.",
                )
            actions = Rewrite(table, found, hit, inserts, came).write()
            work.step("write")
            return work.commit(actions, "Overwrite", came, -went)

    def replace_keys(
        self, rows: DataFrame, gone: DataFrame, keys: Sequence[str], record: str, expected: TargetState
    ) -> Applied:
        """Make ``rows`` the rows of their keys, drop the keys in ``gone``, leave equal rows alone."""
        work = _Work(self, record, expected)
        with work as transaction:
            names = self._fitting(rows).columns
            places = [names.index(key) for key in keys]
            new = _numbered(rows).withColumn("__gone", fn.lit(False)).persist(_CACHE)
            work.undo.append(new)
            came = new.count()
            work.step("change")
            empty = new.where("false").drop("__id", "__gone")
            dropped = gone.toDF(*(f"c{place}" for place in places)).select("*", fn.lit(True).alias("__gone"))
            wanted = new.unionByName(empty.unionByName(dropped, allowMissingColumns=True), allowMissingColumns=True)
            table = Addressed(transaction, names)
            others = [place for place in range(len(names)) if place not in places]
            same = fn.lit(False) if some_incomparable(rows, others) else all_equal(len(names), others)
            found = (
                table.frame.join(wanted, all_equal(len(names), places))
                .select("__file", "__row", "__id", (~fn.col("__gone") & same).alias("__same"))
                .persist(_CACHE)
            )
            work.undo.append(found)
            stay = found.where("__same").select("__id")
            leave = found.where("not __same").select("__file", "__row")
            hit = touched(leave)
            inserts = new.join(stay, "__id", "left_anti").select(*_places(names)).toDF(*names)
            deleted = sum(hit.values())
            inserted = came - stay.count()
            work.step("find")
            if deleted == 0:
                written = transaction.write(_compact(inserts, inserted)) if inserted else []
                work.step("write")
                return work.commit(written, "Append", inserted, 0)
            actions = Rewrite(table, leave, hit, inserts, inserted).write()
            work.step("write")
            return work.commit(actions, "Overwrite", inserted, deleted)


class _Work:
    """One write in progress: its transaction, its timings, and what to undo when it ends or fails."""

    def __init__(self, target: DeltaTarget, record: str, expected: TargetState) -> None:
        self.target = target
        self.record = record
        self.expected = expected
        self.undo: list[DataFrame] = []
        self._steps: dict[str, float] = {}

    def __enter__(self) -> Transaction:
        self._clock = perf_counter()
        self._check()
        self.transaction = Transaction(self.target.handle, self.target.name)
        return self.transaction

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for frame in self.undo:
            frame.unpersist()
        if kind is not None:
            self.transaction.abandon()

    def step(self, name: str) -> None:
        now = perf_counter()
        self._steps[name] = self._steps.get(name, 0.0) + now - self._clock
        self._clock = now

    def commit(self, actions: Sequence[Jvm], mode: str, inserted: int, deleted: int) -> Applied:
        target = self.target
        with commit_lock(target.path):
            self._check()
            version = self.transaction.commit(actions, mode, target._number + 1, self.record)
        self.step("commit")
        return Applied(version, inserted, deleted, dict(self._steps))

    def _check(self) -> None:
        now = self.target.state()
        if (now.record_version, now.foreign) != (self.expected.record_version, self.expected.foreign):
            raise conflict(self.target.name)


def _numbered(frame: DataFrame, *extra: str) -> DataFrame:
    """Name the columns by place (c0, c1 …, ``extra``), so that no user's name can meet ours, and number the rows."""
    count = len(frame.columns) - len(extra)
    return frame.toDF(*_places(range(count)), *extra).withColumn("__id", fn.monotonically_increasing_id())


def _places(names: Sequence[object] | range) -> list[str]:
    return [f"c{place}" for place in range(len(names))]


def _compact(frame: DataFrame, rows: int) -> DataFrame:
    """Write few rows to one file, not one per task."""
    return frame.coalesce(1) if rows <= 100_000 else frame
