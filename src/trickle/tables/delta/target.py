"""The Delta table behind a stream table: every write is one conditional commit that carries the refresh's record.

A write that changes some rows finds them by address (file and place in it), rewrites only the files that hold them, and
writes the change feed itself, so the feed shows the changed rows and not the rewritten ones.
"""

from __future__ import annotations

import json
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from trickle.errors import StateError
from trickle.model.definition import DEFINITION_PROPERTY
from trickle.model.digests import first_difference
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import SCHEMA_MISMATCH, STATE_MISMATCH
from trickle.tables import looks
from trickle.tables.arrow.local import frame_of, is_local, local_frame
from trickle.tables.contract import Applied, TargetState, check_count, record_text
from trickle.tables.delta.accumulate import add_up
from trickle.tables.delta.actions import APPLICATION, FOLLOWS
from trickle.tables.delta.commit import Transaction, commit_lock, conflict, sweep
from trickle.tables.delta.driver.fit import NeedsSparkError, is_mapped
from trickle.tables.delta.driver.housekeeping import needs_conditions
from trickle.tables.delta.driver.log import DriverLog
from trickle.tables.delta.driver.writes import DriverWrites
from trickle.tables.delta.find import (
    CACHE,
    Found,
    all_equal,
    find_copies,
    find_near,
    find_rows_with_keys,
    some_incomparable,
)
from trickle.tables.delta.properties import CHANGE_FEED, set_properties
from trickle.tables.delta.rewrite import Addressed, repeated, rewrite
from trickle.tables.delta.schema import replaced, widened
from trickle.tables.delta.table import open_table
from trickle.tables.redefinition import altered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.contract import Given, Record
    from trickle.tables.delta.actions import Commit
    from trickle.tables.delta.jvm import Jvm
    from trickle.tables.redefinition import Redefinition


class DeltaTarget:
    """A stream table's own Delta table."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        path: str,
        *,
        driver_io: bool = True,
        columns: ColumnCache | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Bind to the table at ``path``, called ``name`` in messages; touches nothing yet.

        Without ``driver_io`` Spark does all reading and writing. Columns of a big table that are searched again and again
        are cached in ``columns``.
        """
        self.name = name
        self.path = path
        self.spark = spark
        self.options = options
        self.table = open_table(spark, path, options, name)
        self.handle = self.table.handle
        self.log = self.table.log
        self.driver = DriverWrites(self, columns) if driver_io else None
        self._state: TargetState | None = None
        self._number = -1
        self._generation = -1

    def __repr__(self) -> str:
        return f"DeltaTarget({self.name!r}, {self.path!r})"

    # -- where it stands -----------------------------------------------------------------------------------------

    def state(self) -> TargetState:
        """Read where the table stands. Only commits that came since the last look are read."""
        # Under the log's lock, so that two threads do not add the same commits to what is known.
        with self.log.lock:
            head = self.log.head()
            if self._state is None or self._generation != self.log.generation or head < self._state.version:
                self._state, self._generation = self._search(head), self.log.generation
            for commit in self.log.commits(self._state.version, head):
                self._state = self._after(self._state, commit.version)
            return replace(self._state, definition=self._definition(head))

    def _definition(self, head: int) -> str | None:
        found = (self.log.metadata(head).get("configuration") or {}).get(DEFINITION_PROPERTY)
        return None if found is None else str(found)

    def _search(self, head: int) -> TargetState:
        """Search back from the head for our newest commit; if the log ends before, there is no record."""
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
            return TargetState(version, commit.info.get("userMetadata"), version, overwritten=self._overwritten(commit))
        external = (*state.external, commit.operation) if commit.changes_data else state.external
        return replace(state, version=version, external=external)

    def _overwritten(self, commit: Commit) -> int | None:
        """Return the version that a commit of ours was built on, and that is another by now."""
        follows, below = commit.info.get(FOLLOWS), commit.version - 1
        back = first_difference(str(follows), self.log.digest(below)) if follows else None
        return None if back is None else below - back

    def records(self, most: int) -> Iterator[tuple[int, str]]:
        """Yield version and record of our commits, the newest first; the log may end before ``most`` versions."""
        head = self.log.head()
        for version in range(head, max(head - most, -1), -1):
            commit = self.log.commit(version)
            if commit is None:
                return
            if APPLICATION in commit.transactions and (text := commit.info.get("userMetadata")) is not None:
                yield version, str(text)

    def check(self, expected: TargetState) -> int:
        """Return the newest version, if the table is where a refresh expects it."""
        now = self.state()
        stands = now.record_version, now.external, now.definition, now.overwritten
        if stands != (expected.record_version, expected.external, expected.definition, expected.overwritten):
            raise conflict(self.name)
        return now.version

    @property
    def next_number(self) -> int:
        """Return the number that the next transaction of ours carries."""
        return self._number + 1

    def frame(self, version: int | None = None) -> DataFrame:
        """Return the rows at a version, None being the newest."""
        version = self.log.head() if version is None else version
        plain = self.table.frame(version) if self.driver is not None else None
        return self.handle.relation(version) if plain is None else plain

    def count(self, version: int) -> int:
        """Count the rows at a version; the log tells, if it has statistics."""
        known = self.table.count(version)
        return self.frame(version).count() if known is None else known

    def small_rows(self, *, to_search: bool = False) -> pa.Table | None:
        """Return the rows at the newest version, None if they may be too many for the driver or only Spark can read them."""
        if self.driver is None:
            return None
        return self.driver.rows(self.options.commit_rows if to_search else self.options.whole_rows)

    def _fitting(self, rows: DataFrame, extra: int = 0) -> DataFrame:
        """Check that rows have the table's columns and types in order: Delta's own check is in the layers above."""
        schema = StructType.fromJson(json.loads(self.log.metadata(self.log.head())["schemaString"]))
        fields = rows.schema.fields[: len(rows.schema.fields) - extra]
        expected = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        found = [(field.name, field.dataType.simpleString()) for field in fields]
        if expected != found:
            raise StateError(
                SCHEMA_MISMATCH,
                f"Stream table {self.name} has the columns {expected}, the rows to write have {found}.",
                hint="refresh(full=True) gives it the columns that its query returns now.",
            )
        return rows

    def _wider(self, rows: DataFrame) -> Mapping[str, Any] | None:
        """Return the table's metadata with the types of rows that are to replace all others, if some are just wider."""
        metadata = self.log.metadata(self.log.head())
        stored = json.loads(metadata["schemaString"])
        schema = widened(stored, json.loads(rows.schema.json()))
        return None if schema is None or schema == stored else {**metadata, "schemaString": json.dumps(schema)}

    def _redefined(self, rows: DataFrame, redefine: Redefinition) -> Mapping[str, Any]:
        """Return the table's metadata with the columns of other rows, and other properties."""
        metadata = self.log.metadata(self.log.head())
        before_it = metadata.get("configuration") or {}
        if redefine.instead_of not in (None, before_it.get(DEFINITION_PROPERTY)):
            raise altered(self.name)
        settings = {**before_it, **redefine.properties}
        before = json.loads(metadata["schemaString"])
        after = replaced(before, json.loads(rows.schema.json()))
        if is_mapped(metadata) and {f["name"] for f in before["fields"]} - {f["name"] for f in after["fields"]}:
            # Delta refuses to drop a mapped column and to write rows in one commit while there is a change feed.
            settings[CHANGE_FEED] = "false"
        return {
            **metadata,
            "schemaString": json.dumps(after),
            "partitionColumns": list(redefine.partition_by),
            "configuration": {key: value for key, value in settings.items() if value is not None},
        }

    # -- writes --------------------------------------------------------------------------------------------------

    def overwrite(
        self,
        rows: Given,
        record: Record,
        expected: TargetState,
        most: int | None = None,
        redefine: Redefinition | None = None,
    ) -> Applied:
        """Replace all rows, if they are no more than some."""
        if redefine is None and self.driver and (done := self.driver.overwrite(rows, record, expected, most)):
            return done
        rows = frame_of(self.spark, rows)
        work = _Work(self, record, expected)
        with work as transaction:
            # What others change of the table from here on is a conflict.
            new = self._wider(rows) if redefine is None else self._redefined(rows, redefine)
            files = transaction.files()
            if new is not None:
                transaction.redefine(new)
            written = transaction.write(rows if new is not None else self._fitting(rows))
            work.step("write")
            check_count(transaction.added_rows(), most)
            removes = [action.remove() for _, action in files]
            deleted = sum((file.records or 0) - file.masked for file, _ in files)
            done = work.commit([*removes, *written], "Overwrite", transaction.added_rows(), deleted)
        if new is not None and new["configuration"].get(CHANGE_FEED) == "false":
            set_properties(self.spark, self.name, {CHANGE_FEED: "true"})
        return done

    def append(self, rows: Given, record: Record, expected: TargetState) -> Applied:
        """Add rows."""
        if self.driver and (done := self.driver.append(rows, record, expected)):
            return done
        rows = frame_of(self.spark, rows)
        work = _Work(self, record, expected)
        with work as transaction:
            written = transaction.write(self._fitting(rows))
            work.step("write")
            return work.commit(written, "Append", transaction.added_rows(), 0)

    def touch(self, record: Record, expected: TargetState) -> Applied:
        """Commit the record alone: a version without files."""
        if self.driver and (done := self.driver.touch(record, expected)):
            return done
        work = _Work(self, record, expected)
        with work:
            return work.commit([], "Append", 0, 0)

    def apply_bag(self, change: Given, record: Record, expected: TargetState) -> Applied:
        """Delete exactly -n copies of a row, add +n copies."""
        if self.driver and (done := self.driver.apply_bag(change, record, expected)):
            return done
        change = frame_of(self.spark, change)
        work = _Work(self, record, expected)
        with work as transaction:
            names = self._fitting(change, extra=1).columns[:-1]
            signed, local = work.held(_numbered(change, "__w"), change)
            came, went, most = _totals(signed, local=local)
            work.step("change")
            inserts = repeated(signed.where("__w > 0"), "__w", most).select(*_places(names)).toDF(*names)
            if went == 0:
                return self._only_add(work, inserts, came)
            table = Addressed(transaction, names)
            found = find_copies(table.frame, signed.where("__w < 0"), len(names), local=local)
            work.undo.extend(found.persisted)
            if found.count != went:
                kinds = [field.dataType for field in change.schema.fields[:-1]]
                near = find_near(table.frame, signed, found, kinds)
                found, less = near.found, sum(near.cancelled.values())
                came, went = came - less, went - less
                if less:
                    inserts = _without(signed, near.cancelled, most).select(*_places(names)).toDF(*names)
            work.step("find")
            if found.count != went:
                raise StateError(
                    STATE_MISMATCH,
                    f"Stream table {self.name} holds {found.count} of the {went} rows that are to be deleted.",
                    hint="Someone changed it, or its record; a full refresh repairs it.",
                )
            return self._rewrite(work, table, found, inserts, came)

    def replace_keys(
        self, rows: Given, touched: Given, keys: Sequence[str], record: Record, expected: TargetState
    ) -> Applied:
        """Make ``rows`` the rows of the touched keys, leave equal rows alone."""
        if self.driver and (done := self.driver.replace_keys(rows, touched, keys, record, expected)):
            return done
        rows, touched = frame_of(self.spark, rows), frame_of(self.spark, touched)
        work = _Work(self, record, expected)
        with work as transaction:
            names = self._fitting(rows).columns
            places = [names.index(key) for key in keys]
            new, local = work.held(_numbered(rows).withColumn("__gone", fn.lit(False)), rows)
            came = len(rows.select(fn.lit(1)).collect()) if local else new.count()
            work.step("change")
            wanted = new.unionByName(_gone(new, touched, places), allowMissingColumns=True)
            table = Addressed(transaction, names)
            others = [place for place in range(len(names)) if place not in places]
            same = fn.lit(False) if some_incomparable(rows, others) else all_equal(len(names), others)
            found = find_rows_with_keys(table.frame, wanted, len(names), places, same, local=local)
            work.undo.extend(found.persisted)
            work.step("find")
            if found.same is not None:
                new = new.join(found.same, "__id", "left_anti")
            inserts = new.select(*_places(names)).toDF(*names)
            inserted = came - found.same_count
            if found.count == 0:
                return self._only_add(work, inserts, inserted)
            return self._rewrite(work, table, found, inserts, inserted)

    def accumulate(
        self, delta: Given, keys: Sequence[str], record: Record, expected: TargetState, count: str
    ) -> Applied:
        """Add ``delta`` to the stored rows of its keys; a row whose count becomes 0 goes."""
        if self.driver and (done := self.driver.accumulate(delta, keys, record, expected, count)):
            return done
        delta = frame_of(self.spark, delta)
        # Whatever comes between this look and the commit makes the commit fail.
        sums = add_up(self.name, self.frame(), self._fitting(delta), keys, count)
        try:
            if sums.rows is None:
                return self.touch(record, expected)
            return self.replace_keys(sums.rows, sums.touched, keys, record, expected)
        finally:
            sums.persisted.unpersist()

    def _only_add(self, work: _Work, inserts: DataFrame, count: int) -> Applied:
        written = (
            work.transaction.write(inserts.coalesce(1) if count <= self.options.one_file_rows else inserts)
            if count
            else []
        )
        work.step("write")
        return work.commit(written, "Append", count, 0)

    def _rewrite(self, work: _Work, table: Addressed, found: Found, inserts: DataFrame, count: int) -> Applied:
        actions = rewrite(table, found, inserts, count, self.options)
        work.step("write")
        return work.commit(actions, "Overwrite", count, found.count)


class _Work:
    """One write in progress: its transaction, its timings, and what to undo when it ends or fails."""

    def __init__(self, target: DeltaTarget, record: Record, expected: TargetState) -> None:
        self.target = target
        self.record = record
        self.expected = expected
        self.undo: list[DataFrame] = []
        self._log: DriverLog | None = None
        self._steps: dict[str, float] = {}

    def __enter__(self) -> Transaction:
        self._clock = perf_counter()
        looks.look_again()  # Delta commits without a condition on S3
        self.target.check(self.expected)
        self.transaction = Transaction(self.target.table, self.target.name)
        return self.transaction

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for frame in self.undo:
            frame.unpersist()
        if kind is not None and not (self._log and self._log.may_be_committed):
            self.transaction.abandon()

    def held(self, frame: DataFrame, given: DataFrame) -> tuple[DataFrame, bool]:
        """Persist rows that are used several times; a change given as a local relation stays as it is."""
        if is_local(given):
            return frame, True
        persisted = frame.persist(CACHE)
        self.undo.append(persisted)
        return persisted, False

    def step(self, name: str) -> None:
        now = perf_counter()
        self._steps[name] = self._steps.get(name, 0.0) + now - self._clock
        self._clock = now

    def commit(self, actions: Sequence[Jvm], mode: str, inserted: int, deleted: int) -> Applied:
        target = self.target
        is_small = len(actions) <= target.options.commit_actions and not self.transaction.is_redefined
        new = self.transaction.redefinition()
        self._log = self._own_log(new) if is_small or needs_conditions(target.path) else None
        if self._log is not None:
            lines = [*new, *(json.loads(str(action.json())) for action in actions)]
            metrics = {**self.transaction.metrics(), "numInsertedRows": inserted, "numDeletedRows": deleted}
            version = self._log.commit(lines, mode, self.record, metrics)
        else:
            with commit_lock(target.path):
                looks.look_again()
                target.check(self.expected)
                said = record_text(self.record, inserted, deleted)
                version = self.transaction.commit(actions, mode, target.next_number, said)
                looks.look_again()
            sweep(target.table, version)
        self.step("commit")
        return Applied(version, inserted, deleted, dict(self._steps))

    def _own_log(self, new: Sequence[dict[str, Any]]) -> DriverLog | None:
        """Return the log if the driver may commit: Delta's own commit costs a Spark job and more.

        ``new`` is what the commit makes of the table itself.
        """
        if self.target.driver is None:
            return None
        try:
            log = DriverLog(self.target, self.expected)
        except NeedsSparkError:
            return None
        # Delta knows whether a commit in between, which moved no rows, matters.
        return log if log.read == self.transaction.version and log.admits(new) else None


def _numbered(frame: DataFrame, *extra: str) -> DataFrame:
    """Name the columns by place (c0, c1 …, ``extra``), so that no user's name can meet ours, and number the rows."""
    count = len(frame.columns) - len(extra)
    return frame.toDF(*_places(range(count)), *extra).withColumn("__id", fn.monotonically_increasing_id())


def _gone(new: DataFrame, touched: DataFrame, places: Sequence[int]) -> DataFrame:
    """Return the touched keys that no new row has, each once; without keys that is one, if there is no new row."""
    one = new.sparkSession.range(1).select(fn.lit(True).alias("__gone"))
    if places:
        one = touched.toDF(*(f"c{place}" for place in places)).dropDuplicates().withColumn("__gone", fn.lit(True))
    present = new.select(*(fn.col(f"c{place}").alias(f"t{place}") for place in places))
    gone = one.join(present, all_equal(0, places), "left_anti")
    return new.where("false").drop("__id", "__gone").unionByName(gone, allowMissingColumns=True)


def _without(signed: DataFrame, cancelled: Mapping[int, int], most: int) -> DataFrame:
    """Return the inserted rows, less some copies of those with some numbers."""
    less = local_frame(signed.sparkSession, list(cancelled.items()), "__id BIGINT, __less BIGINT")
    left = signed.where("__w > 0").join(fn.broadcast(less), "__id", "left")
    left = left.withColumn("__w", fn.col("__w") - fn.coalesce("__less", fn.lit(0))).where("__w > 0")
    return repeated(left, "__w", most)


def _places(names: Sequence[object] | range) -> list[str]:
    return [f"c{place}" for place in range(len(names))]


def _totals(signed: DataFrame, *, local: bool) -> tuple[int, int, int]:
    """Count the copies that come and that go, and give the highest weight."""
    if local:  # a local relation is read without a job
        weights = [row[0] for row in signed.select("__w").collect()]
        return sum(w for w in weights if w > 0), -sum(w for w in weights if w < 0), max(weights, default=0)
    come, go = fn.greatest(fn.col("__w"), fn.lit(0)), fn.least(fn.col("__w"), fn.lit(0))
    row = signed.agg(fn.sum(come), -fn.sum(go), fn.max("__w")).first()
    came, went, most = (int(total or 0) for total in row or (0, 0, 0))
    return came, went, most
