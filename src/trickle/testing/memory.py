"""Tables held in Python lists: the same contract without storage, for tests and examples.

Every version keeps all its rows, so snapshots and changes are plain look-ups; a DataFrame of them is a
``LocalRelation``, which costs no Spark job.
"""

from __future__ import annotations

import uuid
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import LongType, StructField, StructType

from trickle.errors import ConflictError, StateError
from trickle.model.keys import NO_KEYS
from trickle.model.nearness import distance, is_near
from trickle.model.reason import SOURCE_ALTERED, SOURCE_REWOUND, STATE_MISMATCH, Reason
from trickle.model.types import decimal_digits, facts_of
from trickle.tables.arrow.local import arrow_table, as_schema, frame_of, local_frame, row_key
from trickle.tables.contract import WEIGHT, Applied, ColumnFact, TargetState, VersionRange, check_count, record_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from trickle.model.keys import TableKeys
    from trickle.tables.contract import Given, Record
    from trickle.tables.redefinition import Redefinition

    Row = Sequence[Any]


def _minus(rows: Sequence[Row], taken: Iterable[Row]) -> tuple[list[Row], Counter[Any]]:
    """Take rows out of a bag, one copy each; also give the keys of which there were too few."""
    wanted = Counter(row_key(row) for row in taken)
    remaining = []
    for row in rows:
        key = row_key(row)
        if wanted.get(key, 0) > 0:
            wanted[key] -= 1
        else:
            remaining.append(row)
    return remaining, +wanted


def _nearest(rows: Sequence[Row], wanted: Row) -> int | None:
    """Return the place of the row that is nearest to one, None if none is near."""
    near = [place for place, row in enumerate(rows) if is_near(row, wanted)]
    return min(near, key=lambda place: distance(rows[place], wanted), default=None)


class MemorySource:
    """A versioned source in memory. ``commit`` makes the next version; version 0 is what it was made with."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        schema: StructType | str,
        rows: Iterable[Row] = (),
        *,
        driver_io: bool = True,
    ) -> None:
        """Start at version 0 with these rows (tuples in the schema's order); without the driver Spark nets changes."""
        self.name = name
        self.path = f"memory:{name}"
        self._driver_io = driver_io
        self.spark = spark
        self.schema = as_schema(schema)
        self.declared = NO_KEYS
        self._id = str(uuid.uuid4())
        self._versions: list[list[Row]] = [list(rows)]
        self._schemas: list[StructType] = [self.schema]
        self._steps: list[tuple[list[Row], list[Row]]] = [([], [])]
        self._frames: dict[tuple[int | str, ...], DataFrame] = {}

    def commit(
        self, inserts: Iterable[Row] = (), deletes: Iterable[Row] = (), *, schema: StructType | None = None
    ) -> int:
        """Make the next version by taking ``deletes`` (one copy each) out and putting ``inserts`` in; return its number.

        Raises:
            StateError: ``STATE_MISMATCH``, a row to delete is not there.
        """
        went, came = list(deletes), list(inserts)
        remaining, absent = _minus(self._versions[-1], went) if went else (self._versions[-1], Counter[Any]())
        if absent:
            raise StateError(STATE_MISMATCH, f"{self.name} has no row {next(iter(absent))} to delete.")
        self._versions.append([*remaining, *came])
        self._steps.append((came, went))
        self._schemas.append(schema if schema is not None else self._schemas[-1])
        return self.head()

    def head(self) -> int:
        """Return the newest version."""
        return len(self._versions) - 1

    def identity(self, version: int) -> str:  # noqa: ARG002 - the table is never another
        """Return the id that this object alone has."""
        return self._id

    overwrites_late = False

    def digest(self, version: int, before: int = 0) -> str | None:  # noqa: ARG002 - a version is never another
        """Return nothing: identity and version are enough."""
        return None

    def record(self, version: int) -> str | None:  # noqa: ARG002 - of no version
        """Return nothing: sources in memory are base tables."""
        return None

    def columns(self, version: int) -> Mapping[str, ColumnFact]:
        """Return the columns at a version, by name."""
        return {
            field.name: ColumnFact(field.name, field.dataType.json(), field.nullable, field.name)
            for field in self._schemas[version].fields
        }

    def keys(self, version: int) -> TableKeys:  # noqa: ARG002 - declared once, for all versions
        """Return the keys declared of the table."""
        return self.declared

    def classify(self, since: int, upto: int, columns: Sequence[str]) -> VersionRange:
        """Say what the commits after ``since`` up to ``upto`` did."""
        if not 0 <= since <= upto <= self.head():
            text = f"{self.name} is at version {self.head()}; the change from {since} to {upto} was requested"
            return VersionRange(since, upto, broken=Reason(SOURCE_REWOUND, text))
        before, after = self.columns(since), self.columns(upto)
        for name in columns:
            if before.get(name) != after.get(name):
                reason = Reason(SOURCE_ALTERED, f"{self.name}: column `{name}` is not what it was at version {since}")
                return VersionRange(since, upto, broken=reason)
        steps = self._steps[since + 1 : upto + 1]
        rows = sum(len(came) + len(went) for came, went in steps)
        if rows == 0:
            return VersionRange(since, upto)
        return VersionRange(since, upto, kind="mixed" if any(went for _, went in steps) else "append", rows=rows)

    def changes(self, versions: VersionRange, columns: Sequence[str]) -> DataFrame:
        """Return the change over a version range that is not broken."""
        return local_frame(self.spark, *self._signed(versions, columns))

    def small_changes(self, versions: VersionRange, columns: Sequence[str]) -> pa.Table | None:
        """Return the netted change over a version range that is not broken; None without the driver."""
        if not self._driver_io:
            return None
        rows, schema = self._signed(versions, columns)
        netted: dict[Any, list[Any]] = {}
        for row in rows:
            netted.setdefault(row_key(row[:-1]), [row, 0])[1] += row[-1]
        return arrow_table([(*row[:-1], weight) for row, weight in netted.values() if weight], schema)

    def _signed(self, versions: VersionRange, columns: Sequence[str]) -> tuple[list[Row], StructType]:
        schema = self._schemas[versions.upto]
        places = [schema.names.index(name) for name in columns]
        signed: list[Row] = [
            (*(row[place] for place in places), weight)
            for came, went in self._steps[versions.since + 1 : versions.upto + 1]
            for rows, weight in ((came, 1), (went, -1))
            for row in rows
        ]
        fields = [*(schema.fields[place] for place in places), StructField(WEIGHT, LongType(), False)]
        return signed, StructType(fields)

    def rows(self, version: int) -> int | None:
        """Count the rows at a version."""
        return len(self._versions[version])

    def domain(self, version: int, column: str) -> int | None:  # noqa: ARG002 - nothing is kept of values
        """Tell nothing."""
        return None

    def left_to_spark(self, version: int, columns: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 - of any version
        """Say that Spark must read it without the driver."""
        return [] if self._driver_io else ["driver_io is off"]

    def find(self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return the rows at a version that have some keys; None without the driver."""
        if not self._driver_io:
            return None
        schema = self._schemas[version]
        wanted = [(schema.names.index(name), set(values.to_pylist())) for name, values in keys.items()]
        places = [schema.names.index(name) for name in columns]
        found = [
            tuple(row[place] for place in places)
            for row in self._versions[version]
            if all(row[place] is not None and row[place] in values for place, values in wanted)
        ]
        return arrow_table(found, StructType([schema.fields[place] for place in places]))

    def snapshot(self, version: int, columns: Sequence[str] = ()) -> DataFrame:
        """Return the rows at a version with these columns alone, or all: whoever reads others has not asked for them."""
        frame = self._frames.get((version, *columns))
        if frame is None:
            schema = self._schemas[version]
            names = list(columns) or schema.names
            places = [schema.names.index(name) for name in names]
            rows = [tuple(row[place] for place in places) for row in self._versions[version]]
            frame = local_frame(self.spark, rows, StructType([schema.fields[place] for place in places]))
            self._frames[version, *columns] = frame
        return frame


class MemoryTarget:
    """A stream table's rows and records in memory."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        schema: StructType | str,
        rows: Iterable[Row] = (),
        mirror: MemorySource | None = None,
    ) -> None:
        """Start at version 0 with these rows and no record; a mirror repeats the commits."""
        self.name = name
        self.path = f"memory:{name}"
        self.spark = spark
        self.schema = as_schema(schema)
        self._rows: list[Row] = list(rows)
        self._record: str | None = None
        self._record_version = -1
        self._version = 0
        self._external: tuple[str, ...] = ()
        self._mirror = mirror

    def rows(self) -> list[Row]:
        """Return the rows, in no order."""
        return list(self._rows)

    def frame(self, version: int | None = None) -> DataFrame:  # noqa: ARG002 - only the newest is there
        """Return the rows as a DataFrame."""
        return local_frame(self.spark, self._rows, self.schema)

    def count(self, version: int) -> int:  # noqa: ARG002
        """Count the rows."""
        return len(self._rows)

    def small_rows(self, *, to_search: bool = False) -> pa.Table:  # noqa: ARG002
        """Return the rows as an Arrow table."""
        return arrow_table(self._rows, self.schema)

    def state(self) -> TargetState:
        """Read where the table stands."""
        return TargetState(self._version, self._record, self._record_version, self._external)

    def records(self, most: int) -> Iterator[tuple[int, str]]:
        """Yield the newest record: only that is kept."""
        if self._record is not None and most > self._version - self._record_version:
            yield self._record_version, self._record

    def overwrite(
        self,
        rows: Given,
        record: Record,
        expected: TargetState,
        most: int | None = None,
        redefine: Redefinition | None = None,
    ) -> Applied:
        """Replace all rows, if they are no more than some; its columns stay what they are."""
        if redefine is not None:
            message = "a table in memory has no definition that could be replaced"
            raise NotImplementedError(message)
        new = self._values(rows)
        check_count(len(new), most)
        return self._commit(new, len(self._rows), None, record, expected)

    def append(self, rows: Given, record: Record, expected: TargetState) -> Applied:
        """Add rows."""
        came = self._values(rows)
        return self._commit([*self._rows, *came], 0, len(came), record, expected)

    def apply_bag(self, change: Given, record: Record, expected: TargetState) -> Applied:
        """Delete -n copies, add +n copies; a row that is not there that often is ``STATE_MISMATCH``."""
        came: list[Row] = []
        went: list[Row] = []
        for *row, weight in self._values(change):
            (came if weight > 0 else went).extend([row] * abs(weight))
        remaining, absent = _minus(self._rows, went) if went else (self._rows, Counter[Any]())
        gone = len(self._rows) - len(remaining)
        for key in absent.elements():
            missing = next(r for r in went if row_key(r) == key)
            # Stored rows first; what was never stored may take back what the change itself brings.
            if (place := _nearest(remaining, missing)) is not None:
                remaining = [*remaining[:place], *remaining[place + 1 :]]
                gone += 1
            elif (place := _nearest(came, missing)) is not None:
                came = [*came[:place], *came[place + 1 :]]
            else:
                raise StateError(STATE_MISMATCH, f"{self.name} lacks a copy of {key} that is to go.")
        return self._commit([*remaining, *came], gone, len(came), record, expected)

    def replace_keys(
        self, rows: Given, touched: Given, keys: Sequence[str], record: Record, expected: TargetState
    ) -> Applied:
        """Make ``rows`` the rows of the touched keys, leave equal rows alone."""
        return self._replace(self._values(rows), self._values(touched), keys, record, expected)

    def _replace(
        self, rows: Sequence[Row], touched: Iterable[Row], keys: Sequence[str], record: Record, expected: TargetState
    ) -> Applied:
        key_of = self._key_of(keys)
        new = {key_of(row): row for row in rows}
        dropped = {row_key(row) for row in touched} if keys else {()}
        remaining: list[Row] = []
        deleted = 0
        for row in self._rows:
            key = key_of(row)
            if key in new and row_key(row) == row_key(new[key]):
                del new[key]
                remaining.append(row)
            elif key in new or key in dropped:
                deleted += 1
            else:
                remaining.append(row)
        return self._commit([*remaining, *new.values()], deleted, len(new), record, expected)

    def accumulate(
        self, delta: Given, keys: Sequence[str], record: Record, expected: TargetState, count: str
    ) -> Applied:
        """Add the delta to the rows of its keys; a row whose count becomes 0 goes."""
        key_of, at = self._key_of(keys), self.schema.names.index(count)
        stored = {key_of(row): row for row in self._rows}
        values = [place for place, name in enumerate(self.schema.names) if name not in keys]
        touched, after = [], []
        for row in self._values(delta):
            if not any(row[place] for place in values):
                continue
            old = stored.get(key_of(row))
            new = [item + old[place] if old is not None and place in values else item for place, item in enumerate(row)]
            if new[at] < 0:
                raise StateError(STATE_MISMATCH, f"{self.name} counts fewer rows of {key_of(row)} than are to go.")
            for place in values:
                self._check_fits(new[place], place)
            touched.append([row[self.schema.names.index(name)] for name in keys])
            if new[at] or not keys:
                after.append(new)
        if not touched:
            return self.touch(record, expected)
        return self._replace(after, touched, keys, record, expected)

    def _values(self, rows: Given) -> list[Row]:
        return _collect(frame_of(self.spark, rows))

    def _key_of(self, keys: Sequence[str]) -> Callable[[Row], Any]:
        places = [self.schema.names.index(name) for name in keys]
        return lambda row: row_key([row[place] for place in places])

    def _check_fits(self, value: Any, place: int) -> None:
        kind = self.schema.fields[place].dataType
        digits, bytes_ = decimal_digits(kind.simpleString()), facts_of(kind.simpleString()).bytes
        limit = Decimal(10) ** (digits[0] - digits[1]) if digits else 2 ** (8 * (bytes_ or 1024) - 1)
        if not -limit <= value < limit or (value == -limit and digits):
            raise StateError("SUM_OVERFLOW", f"{self.name}: a sum does not fit {kind.simpleString()}.")

    def touch(self, record: Record, expected: TargetState) -> Applied:
        """Commit the record alone."""
        return self._commit(self._rows, 0, 0, record, expected)

    def tamper(self, rows: Iterable[Row], operation: str = "WRITE") -> None:
        """Change the rows behind the stream table's back, as another writer would."""
        self._rows = list(rows)
        self._version += 1
        self._external = (*self._external, operation)

    def _commit(
        self, rows: list[Row], deleted: int, inserted: int | None, record: Record, expected: TargetState
    ) -> Applied:
        if (expected.record_version, expected.external) != (self._record_version, self._external):
            raise ConflictError(
                "CONCURRENT_REFRESH", f"{self.name} was changed meanwhile.", hint="Refresh again: it starts anew."
            )
        if self._mirror is not None:
            self._mirror.commit(_minus(rows, self._rows)[0], _minus(self._rows, rows)[0])
        self._rows = rows
        self._version += 1
        inserted = len(rows) if inserted is None else inserted
        self._record, self._record_version = record_text(record, inserted, deleted), self._version
        self._external = ()
        return Applied(self._version, inserted, deleted)


class MemoryStateTables:
    """The state tables of one stream table in memory: each a target whose commits a source repeats."""

    def __init__(self, spark: SparkSession) -> None:
        """Start with none."""
        self.spark = spark
        self._known: dict[str, tuple[MemoryTarget, MemorySource]] = {}

    def get(self, name: str) -> tuple[MemoryTarget, MemorySource] | None:
        """Return a state table, to write and to read; None if there is none."""
        return self._known.get(name)

    def open(self, name: str, like: Callable[[], DataFrame]) -> tuple[MemoryTarget, MemorySource]:
        """Return a state table, to write and to read; made empty if there is none."""
        if name not in self._known:
            schema = nullable(like())
            source = MemorySource(self.spark, name, schema)
            self._known[name] = MemoryTarget(self.spark, name, schema, mirror=source), source
        return self._known[name]

    def forget(self, name: str) -> None:
        """Delete a state table."""
        self._known.pop(name, None)

    def location(self, name: str) -> None:
        """Have no place."""

    def damage(self, name: str, like: Callable[[], DataFrame]) -> str | None:  # noqa: ARG002 - nothing can happen to it
        """Tell that nothing is wrong."""
        return None

    def forget_other_generations(self) -> None:
        """Do nothing: there are none."""

    def clean(self, name: str, version: int) -> None:
        """Keep all versions: there is no storage to spare."""


def nullable(frame: DataFrame) -> StructType:
    """Return the columns of a DataFrame, all nullable: rows to come may have NULLs where these have none."""
    return StructType([StructField(f.name, f.dataType) for f in frame.schema.fields])


def _collect(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.collect()]
