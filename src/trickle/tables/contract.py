"""What the engine needs of a table: a versioned source to read, a target to commit to.

Every implementation passes the same contract tests. DataFrames cross this border; nothing else of Spark does.
A *change* is a DataFrame with the asked columns and one more, ``__weight`` (bigint, never null): +n for n copies of
the row that came, -n for n that went. Changes need not be netted: the engine does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from trickle.model.keys import TableKeys
    from trickle.model.reason import Reason
    from trickle.tables.redefinition import Redefinition

    Given: TypeAlias = DataFrame | pa.Table
    """Rows to be written, their columns in the order of the table's; what the driver holds is an Arrow table."""

WEIGHT: Final = "__weight"

Record: TypeAlias = str | Callable[[int, int], str]
"""The record of a commit, or a function of the rows inserted and deleted that makes it at the last moment before the commit."""


class TooManyRowsError(Exception):
    """There are more rows to write than the caller wants to keep."""


def check_count(rows: int, most: int | None) -> None:
    """Refuse more than ``most`` rows; None allows any number."""
    if most is not None and rows > most:
        raise TooManyRowsError


def record_text(record: Record, inserted: int, deleted: int) -> str:
    """Return the text of a record for the commit that is being made, which inserts and deletes so many rows."""
    return record if isinstance(record, str) else record(inserted, deleted)


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """One column of a source as the log describes it; equal facts at two versions mean the same stored column.

    ``identity`` tells a dropped and re-added column of one name from the first (column mapping's physical name).
    """

    name: str
    type_json: str
    nullable: bool
    identity: str


@dataclass(frozen=True, slots=True)
class VersionRange:
    """What the commits after ``since`` up to and including ``upto`` did to the rows of a source.

    Attributes:
        kind: ``none`` if no row changed, ``append`` if the change is append-only, else ``mixed``.
        rows: Upper bound of the changed rows, None if the log does not say.
        bytes: Bytes of the files that ``changes`` will have to read.
        masked_bytes: Of these, the bytes of files of which only some rows count: they stayed, with another deletion vector.
        broken: Why the changes or the old snapshot are not available; then the other fields mean nothing.
    """

    since: int
    upto: int
    kind: Literal["none", "append", "mixed"] = "none"
    rows: int | None = 0
    bytes: int = 0
    masked_bytes: int = 0
    broken: Reason | None = None


class SourceTable(Protocol):
    """A versioned table that is read.

    Attributes:
        name: What the definition that reads it calls it.
        path: Where it lies; two sources at one place are one table.
    """

    name: str
    path: str

    def head(self) -> int:
        """Return the newest version; cheap enough to call for a hundred tables a second."""
        ...

    def identity(self, version: int) -> str:
        """Return the id of the table; a recreated table has a different one."""
        ...

    def digest(self, version: int, before: int = 0) -> str | None:
        """Return what distinguishes a version from another of the same table and number, None if it is no longer known.

        It tells of so many commits ``before`` it, too, where a commit may be there in part (``model/digests.py``).
        """
        ...

    @property
    def overwrites_late(self) -> bool:
        """Whether a commit that comes late may overwrite one that others were built on; then digests tell of some before."""
        ...

    def record(self, version: int) -> str | None:
        """Return what the refresh that made a version of a stream table says of itself; None for any other table."""
        ...

    def columns(self, version: int) -> Mapping[str, ColumnFact]:
        """Return the columns at a version, by name."""
        ...

    def keys(self, version: int) -> TableKeys:
        """Return the declared keys of the table at a version, with the column names of that version."""
        ...

    def classify(self, since: int, upto: int, columns: Sequence[str]) -> VersionRange:
        """Determine from the log alone what happened to these columns' rows; see ``VersionRange.broken``.

        Raises:
            SourceError: The log cannot be read as it is, so that a snapshot would not have all rows either.
        """
        ...

    def changes(self, versions: VersionRange, columns: Sequence[str]) -> DataFrame:
        """Return the change over a version range that is not broken."""
        ...

    def small_changes(self, versions: VersionRange, columns: Sequence[str]) -> pa.Table | None:
        """Return the same as an Arrow table in the driver, its ``__weight`` the last column.

        None if the change is not small, or only Spark can read it. A version range that is not an append is netted by the bits
        of its rows; netting it again by Spark's equality may still sum some.
        """
        ...

    def rows(self, version: int) -> int | None:
        """Count the rows at a version, None if the log does not say."""
        ...

    def domain(self, version: int, column: str) -> int | None:
        """Return how many values a column of whole numbers may have, from its least and greatest; None if unknown."""
        ...

    def left_to_spark(self, version: int, columns: Sequence[str]) -> Sequence[str]:
        """Say for what of a version Spark must read these columns; nothing if the driver can."""
        ...

    def find(self, version: int, columns: Sequence[str], keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return the rows at a version whose value of each column in ``keys`` is one of these, as an Arrow table.

        Without keys: all rows, if the table is small. None if they may be too many for the driver, or only Spark can
        find them. NULL is never found by a key.
        """
        ...

    def snapshot(self, version: int, columns: Sequence[str]) -> DataFrame:
        """Return the rows at a version, with these columns at least: others may be missing.

        The handle may be kept and used again while the version is the same.
        """
        ...


@dataclass(frozen=True, slots=True)
class TargetState:
    """The current state of a stream table's own table.

    Attributes:
        version: The newest version.
        record: The JSON text that Trickle's newest commit carries, None if there is none.
        record_version: The version of that commit.
        external: Operations by others after it that changed rows (``("DELETE", "WRITE")``); compaction does not count.
        definition: The definition that the table carries at this version, as it is stored; None for a state table.
        overwritten: The version below that commit which another writer has overwritten since; None if none is known.
    """

    version: int
    record: str | None
    record_version: int
    external: tuple[str, ...] = ()
    definition: str | None = None
    overwritten: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What a commit did."""

    version: int
    rows_inserted: int
    rows_deleted: int
    steps: Mapping[str, float] = field(default_factory=dict)


class TargetTable(Protocol):
    """The table behind a stream table. Every write is one commit that carries ``record``.

    A write is made only if no other Trickle commit came after the one in ``expected``
    (``ConflictError [CONCURRENT_REFRESH]`` otherwise), and leaves nothing behind if it fails.
    """

    name: str
    path: str

    def state(self) -> TargetState:
        """Read the current state."""
        ...

    def records(self, most: int) -> Iterator[tuple[int, str]]:
        """Yield the version and the record of each of Trickle's commits, the newest first, among the last ``most`` versions."""
        ...

    def frame(self, version: int | None = None) -> DataFrame:
        """Return the rows at a version, None being the newest."""
        ...

    def count(self, version: int) -> int:
        """Count the rows at a version."""
        ...

    def small_rows(self, *, to_search: bool = False) -> pa.Table | None:
        """Return the rows at the newest version, None if they may be too many for the driver or only Spark can read them.

        With ``to_search`` only a few of the rows are needed, so there may be more of them.
        """
        ...

    def overwrite(
        self,
        rows: Given,
        record: Record,
        expected: TargetState,
        most: int | None = None,
        redefine: Redefinition | None = None,
    ) -> Applied:
        """Replace all rows, and in the same commit what the table is.

        Raises:
            TooManyRowsError: There are more than ``most``; nothing was committed.
        """
        ...

    def append(self, rows: Given, record: Record, expected: TargetState) -> Applied:
        """Add rows."""
        ...

    def apply_bag(self, change: Given, record: Record, expected: TargetState) -> Applied:
        """Apply a netted change: delete exactly -n copies of a row, add +n copies.

        Raises:
            StateError: ``STATE_MISMATCH``, a row to delete is not there that many times.
        """
        ...

    def replace_keys(
        self, rows: Given, touched: Given, keys: Sequence[str], record: Record, expected: TargetState
    ) -> Applied:
        """Make ``rows`` (unique by ``keys``, null-safe) exactly the table's rows of the touched keys.

        ``touched`` has the key columns only, and every key of ``rows``; a key may be there several times. Rows that
        are already there unchanged are not rewritten. Without keys ``rows`` replaces the whole table.
        """
        ...

    def accumulate(
        self, delta: Given, keys: Sequence[str], record: Record, expected: TargetState, count: str
    ) -> Applied:
        """Add ``delta`` to the stored rows of its keys, and insert the keys that are not there.

        ``delta`` has the table's columns and is unique by ``keys``, null-safe; every other column is a number, never
        NULL, and is added within its type. ``count`` is the one that counts input rows: a row whose count becomes 0
        goes, unless there are no keys. A row of zeros changes nothing.

        Raises:
            StateError: ``STATE_MISMATCH``, a count became negative; ``SUM_OVERFLOW``, a sum does not fit its type.
        """
        ...

    def touch(self, record: Record, expected: TargetState) -> Applied:
        """Commit the record alone."""
        ...


class StateStore(Protocol):
    """The tables behind the state tables of one stream table."""

    def get(self, name: str) -> tuple[TargetTable, SourceTable] | None:
        """Return a state table, to write and to read; None if there is none."""
        ...

    def open(self, name: str, like: Callable[[], DataFrame]) -> tuple[TargetTable, SourceTable]:
        """Return a state table, to write and to read; made empty with the columns of ``like()`` if there is none."""
        ...

    def forget(self, name: str) -> None:
        """Delete a state table."""
        ...

    def location(self, name: str) -> str | None:
        """Return the place of a state table, None if there is none."""
        ...

    def damage(self, name: str, like: Callable[[], DataFrame]) -> str | None:
        """Say why a state table cannot be used, None if nothing is wrong with it as far as can be seen."""
        ...

    def forget_other_generations(self) -> None:
        """Delete the state tables of queries that this one replaced."""
        ...

    def clean(self, name: str, version: int) -> None:
        """Delete the files that only versions before this one need."""
        ...
