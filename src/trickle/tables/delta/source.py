"""Delta Lake tables as sources: versions from the log, changes from files, snapshots by time travel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from trickle.errors import SourceError
from trickle.model.cache import Cache
from trickle.model.definition import DEFINITION_PROPERTY, TABLE_PROPERTY
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import (
    HISTORY_EXPIRED,
    SOURCE_ALTERED,
    SOURCE_REPLACED,
    SOURCE_REWOUND,
    Reason,
)
from trickle.tables.contract import WEIGHT, ColumnFact, VersionRange
from trickle.tables.delta.actions import APPLICATION, Commit, FileAction
from trickle.tables.delta.changes import ReadingPlan, changed_rows, layers, reading_plans, removed_files
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.read import is_small_change, net_rows, read_change
from trickle.tables.delta.keys import declared_keys
from trickle.tables.delta.log import UNREADABLE_LOG, UNSUPPORTED_PROTOCOL
from trickle.tables.delta.lookup import KeyLookup
from trickle.tables.delta.schema import column_facts, first_difference
from trickle.tables.delta.table import open_table
from trickle.tables.delta.ties import left_to_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from trickle.model.keys import TableKeys
    from trickle.tables.cache.columns import ColumnCache

_Change = tuple[int, int, int, tuple[str, ...]]
"""What tells a change: the generation of the log, from which version to which, and the columns."""

_FEED_COLUMNS: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


class DeltaSource:
    """A Delta table to read, with or without a change feed and deletion vectors."""

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

        Without ``driver_io`` Spark does all reading.
        """
        self.name = name
        self.path = path
        self.options = options
        self.table = open_table(spark, path, options, name)
        self.handle = self.table.handle
        self.log = self.table.log
        self._driver_io = driver_io
        self._lookup = KeyLookup(self.table, columns, self._cheap_change, options)
        self._snapshots: Cache[tuple[int, int], DataFrame] = Cache("snapshots", options.snapshots_kept)
        self._keys: Cache[tuple[str, str], TableKeys] = Cache("declared keys", options.snapshots_kept)
        self._plans: Cache[tuple[int, int, int], ReadingPlan] = Cache("reading plans", options.reading_plans_kept)
        self._changes: Cache[_Change, pa.Table] = Cache(
            "changes",
            options.reading_plans_kept,
            max_bytes=options.change_cache_bytes,
            bytes_of=lambda change: int(change.nbytes),
        )

    def __repr__(self) -> str:
        return f"DeltaSource({self.name!r}, {self.path!r})"

    def head(self) -> int:
        """Return the newest version."""
        return self.log.head()

    def identity(self, version: int) -> str:
        """Return the table id in the metadata: a new table at the same path has another."""
        return str(self.log.metadata(version)["id"])

    def digest(self, version: int, before: int = 0) -> str | None:
        """Return what distinguishes a version from another of the same number, as in a restored backup."""
        return self.log.digest(version, before)

    @property
    def overwrites_late(self) -> bool:
        """Whether Delta's own commits have no condition there."""
        return self.log.folder is not None and self.log.folder.storage.overwrites_late

    def record(self, version: int) -> str | None:
        """Return what the refresh that made a version says of itself: that of the newest commit of ours up to it."""
        metadata = self.log.metadata(version)
        properties = metadata.get("configuration") or {}
        if DEFINITION_PROPERTY not in properties or properties.get(TABLE_PROPERTY) != metadata["id"]:
            return None
        while (commit := self.log.commit(version)) is not None:
            if APPLICATION in commit.transactions:
                text = commit.info.get("userMetadata")
                return None if text is None else str(text)
            version -= 1
        return None

    def columns(self, version: int) -> Mapping[str, ColumnFact]:
        """Return the columns at a version, by name."""
        return column_facts(self.log.metadata(version))

    def keys(self, version: int) -> TableKeys:
        """Return the keys declared of the table at a version."""
        return declared_keys(self.name, self.log.metadata(version), self._keys)

    def classify(self, since: int, upto: int, columns: Sequence[str]) -> VersionRange:
        """Determine from the log alone what the commits after ``since`` up to ``upto`` did."""
        try:
            return self._classify(since, upto, columns)
        except SourceError as error:
            if error.code in (UNREADABLE_LOG, UNSUPPORTED_PROTOCOL):
                raise
            code = HISTORY_EXPIRED if error.code == HISTORY_EXPIRED else SOURCE_REPLACED
            return VersionRange(since, upto, broken=Reason(code, f"{self.name}: {error.message}", error.hint))

    def _classify(self, since: int, upto: int, columns: Sequence[str]) -> VersionRange:
        head = self.head()
        if since > head or upto > head or upto < since:
            text = f"{self.name} is at version {head}; the change from {since} to {upto} was requested"
            return VersionRange(since, upto, broken=Reason(SOURCE_REWOUND, text))
        generation = self.log.generation
        later = self.log.commits(since, head)
        commits = later[: upto - since]
        altered = self._alteration(since, commits, columns)
        if altered is not None:
            return VersionRange(since, upto, broken=altered)
        plans = reading_plans(commits)
        needed = removed_files(later[upto - since :])  # files of the snapshot at `upto` that later commits removed
        if not plans[0].is_empty:
            needed |= removed_files(commits)
        self._read_ahead(plans[0])
        gone = self.log.missing(needed)
        plan = None if gone else self._first_readable(plans, later)
        if plan is None:
            text = f"{self.name} was vacuumed: files of versions {since} to {upto} are gone"
            if gone:
                text += f", {gone[0]} for one"
            hint = "Refresh more often than VACUUM's retention, or raise delta.deletedFileRetentionDuration."
            return VersionRange(since, upto, broken=Reason(HISTORY_EXPIRED, text, hint))
        self._plans.put((generation, since, upto), plan)
        if plan.is_empty:
            return VersionRange(since, upto)
        return VersionRange(
            since,
            upto,
            kind="append" if plan.is_append else "mixed",
            rows=changed_rows(commits, plan),
            bytes=plan.bytes,
            masked_bytes=plan.masked_bytes,
        )

    def _read_ahead(self, plan: ReadingPlan) -> None:
        """Fetch a small change that lies far away: to ask first whether its files are there takes as long."""
        folder = self.table.folder
        files = (*plan.feed, *plan.added, *plan.removed, *(after for _, after in plan.remasked))
        if folder is None or folder.storage.path(folder.address) is not None or not self._driver_io:
            return
        if 0 < sum(file.size for file in files) <= self.options.read_ahead_bytes:
            folder.storage.fetch(self.table.addresses(files))

    def _alteration(self, since: int, commits: Sequence[Commit], columns: Sequence[str]) -> Reason | None:
        """Compare the metadata at ``since`` with every later one, not only the last.

        A column that went to another type and back has files in between that cannot be read with its type now.
        """
        redefined = [commit for commit in commits if commit.metadata is not None]
        if not redefined:
            return None
        before = self.log.metadata(since)
        for commit in redefined:
            after = commit.metadata or {}
            if after["id"] != before["id"]:
                return Reason(SOURCE_REPLACED, f"{self.name} was replaced by another table at version {commit.version}")
            difference = first_difference(before, after, columns)
            if difference is not None:
                return Reason(SOURCE_ALTERED, f"{self.name}: {difference} at version {commit.version}")
        return None

    def _first_readable(self, plans: Sequence[ReadingPlan], commits: Sequence[Commit]) -> ReadingPlan | None:
        """Take the cheapest plan whose files all exist."""
        return next((plan for plan in plans if not self.log.missing(plan.at_risk(commits))), None)

    def changes(self, versions: VersionRange, columns: Sequence[str]) -> DataFrame:
        """Return the change over a version range: each row with its sign, not netted."""
        return self.read(self._plan(versions), versions, columns)

    def small_changes(self, versions: VersionRange, columns: Sequence[str]) -> pa.Table | None:
        """Return a small change as an Arrow table, read in the driver; None if Spark must read it."""
        if not self._driver_io or not self.log.is_plain or not is_small_change(versions, self.options):
            return None
        place = self.log.generation, versions.since, versions.upto
        plan = self._plan(versions)
        known = self._known_change((*place, tuple(columns)), is_append=plan.is_append)
        if known is not None:
            return known
        try:
            finder = self._lookup.finder_of(self.table.layout(versions.upto).table)
            change = read_change(self.table, plan, versions, columns, self.options, finder)
        except NeedsSparkError:
            return None
        self._changes.put((*place, tuple(columns)), change)
        return change

    def _known_change(self, wanted: _Change, *, is_append: bool) -> pa.Table | None:
        """Return a change from one that was read with these columns, or more; None if there is none."""
        *place, columns = wanted
        for key in reversed(self._changes.keys()):
            if [*key[:-1]] == place and {*columns} <= {*key[-1]} and (known := self._changes.known(key)) is not None:
                rows = known.select([*columns, WEIGHT])
                return rows if is_append or len(columns) == len(key[-1]) else net_rows(rows, rows.schema, self.options)
        return None

    def _cheap_change(self, since: int, upto: int, columns: Sequence[str], most: int) -> pa.Table | None:
        """Return a change; None if by its log it has more rows than ``most``."""
        versions = self.classify(since, upto, columns)
        if versions.broken is not None or versions.rows is None or versions.rows > most:
            return None
        return self.small_changes(versions, columns)

    def _plan(self, versions: VersionRange) -> ReadingPlan:
        key = self.log.generation, versions.since, versions.upto
        plan = self._plans.known(key)
        if plan is None:
            commits = self.log.commits(versions.since, versions.upto)
            plan = self._first_readable(reading_plans(commits), commits)
            if plan is None:
                raise SourceError(HISTORY_EXPIRED, f"Files of {self.name} that the change needs were vacuumed.")
            self._plans.put(key, plan)
        return plan

    def read(self, plan: ReadingPlan, versions: VersionRange, columns: Sequence[str]) -> DataFrame:
        """Return the rows of a reading plan with their signs."""
        with self.log.errors_named():
            snapshot = self.handle.snapshot_at(versions.upto)
        lookup = self._completer(versions.since)
        parts: list[DataFrame] = []

        def take(frame: DataFrame, weight: Column) -> None:
            parts.append(frame.select(*(frame[_quoted(name)] for name in columns), weight.cast("bigint").alias(WEIGHT)))

        plain = list(plan.remasked)
        if plan.remasked and not _FEED_COLUMNS & set(self.columns(versions.upto)):
            plain = []
            went = [(new, mask) for old, new in plan.remasked if (mask := self.handle.vector_difference(new, old))]
            came = [(old, mask) for old, new in plan.remasked if (mask := self.handle.vector_difference(old, new))]
            for pairs, sign in ((went, -1), (came, 1)):
                masks = {id(file): mask for file, mask in pairs}
                for layer in layers(file for file, _ in pairs):
                    files = [self.handle.add_file(lookup(file), masks[id(file)]) for file in layer]
                    take(self.handle.masked_rows(snapshot, files), fn.lit(sign))
        removed = (*plan.removed, *(old for old, _ in plain))
        added = (*plan.added, *(new for _, new in plain))
        for whole, sign in ((added, 1), (removed, -1)):
            for layer in layers(whole):
                adds = [self.handle.add_file(lookup(file)) for file in layer]
                take(self.handle.files(snapshot, adds), fn.lit(sign))
        if plan.feed:
            frame = self.handle.feed(snapshot, [self.handle.action("cdc", file.body) for file in plan.feed])
            came_kinds = frame["_change_type"].isin("insert", "update_postimage")
            take(frame, fn.when(came_kinds, fn.lit(1)).otherwise(fn.lit(-1)))
        if not parts:
            take(self.handle.files(snapshot, ()), fn.lit(1))
        change = parts[0]
        for part in parts[1:]:
            change = change.union(part)
        return change

    def _completer(self, since: int) -> Callable[[FileAction], FileAction]:
        """Add size and partition values that some writers leave out of a remove; the old snapshot has them."""

        def complete(file: FileAction) -> FileAction:
            if file.body.get("size") is not None and file.body.get("partitionValues") is not None:
                return file
            body: dict[str, Any] = dict(self.handle.file_body(self.handle.snapshot_at(since), file.path))
            body["deletionVector"] = file.body.get("deletionVector")
            return FileAction("add", body, file.path, file.vector, int(body["size"]), file.records)

        return complete

    def rows(self, version: int) -> int | None:
        """Count the rows at a version, None if the log does not say."""
        return self.table.count(version) if self._driver_io else None

    def domain(self, version: int, column: str) -> int | None:
        """Return how many values a column of whole numbers may have, by the statistics in the log."""
        return self.table.domain(version, column) if self._driver_io else None

    def left_to_spark(self, version: int, columns: Sequence[str]) -> Sequence[str]:
        """Say for what of a version Spark must read these columns; nothing if the driver can."""
        return left_to_spark(self.table, version, columns)

    def find(self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return the rows at a version that have some keys, read in the driver; None if Spark must find them."""
        return self._lookup.find(version, columns, keys) if self._driver_io else None

    def snapshot(self, version: int, columns: Sequence[str] = ()) -> DataFrame:  # noqa: ARG002 - the engine projects
        """Return the rows at a version as one pinned relation with all columns; the last few handles are kept."""
        return self._snapshots.get((self.log.generation, version), lambda: self._frame(version))

    def _frame(self, version: int) -> DataFrame:
        frame = self.table.frame(version) if self._driver_io else None
        if frame is not None:
            return frame
        with self.log.errors_named():
            return self.handle.relation(version)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
