"""Small changes of a Delta table read in the driver, by pyarrow: no Spark job, a few milliseconds.

What Spark would read in another way than pyarrow is left to Spark (``NeedsSparkError``): old calendars, types that only
resemble the table's, names that differ in case.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.rows import row_bits, with_places
from trickle.tables.arrow.types import are_timestamps, arrow_facts, has_parts, holds_the_same
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.driver.carried import without_carried
from trickle.tables.delta.driver.fit import NeedsSparkError, is_readable
from trickle.tables.delta.layout import COLUMN_ID, constants

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from trickle.tables.arrow.rows import Numbers
    from trickle.tables.contract import VersionRange
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.changes import ReadingPlan
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.delta.driver.find import Finder
    from trickle.tables.delta.layout import Layout
    from trickle.tables.delta.table import DeltaTable

_OLD_CALENDAR: Final = frozenset({b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"})
FILE_FIELD_ID: Final = b"PARQUET:field_id"
"""In the metadata of a field that was read from a file: the id that the file has for the column."""

_CHANGE_TYPE: Final = "_change_type"
_CAME: Final = pa.array(["insert", "update_postimage"])


def is_small_change(versions: VersionRange, options: Options = DEFAULT) -> bool:
    """Return whether a change may be read in the driver; what the log does not tell, the files do.

    So for rows that it does not count, and for the bytes of rows that a vector masks.
    """
    few = versions.rows is None or versions.rows <= options.driver_change_rows
    return few and versions.broken is None and versions.bytes - versions.masked_bytes <= options.driver_change_bytes


def read_change(
    table: DeltaTable,
    plan: ReadingPlan,
    versions: VersionRange,
    columns: Sequence[str],
    options: Options = DEFAULT,
    finder: Finder | None = None,
) -> pa.Table:
    """Return the rows of a reading plan: the columns in order, and their weights, netted unless the change is append-only.

    With a ``finder`` in the table's files, columns that are asked for again are cached, and rows that rewritten files only
    carry over are not netted.

    Raises:
        NeedsSparkError: Only Spark can read it.
    """
    layout = table.layout(versions.upto)
    fields = layout.wanted(columns)
    if not is_readable(table.log.protocol(versions.upto)) or fields is None or table.folder is None:
        raise NeedsSparkError
    if any("." in field.name for field in layout.in_files(fields)):  # a dot would name a field of a struct
        raise NeedsSparkError
    files = (*plan.added, *plan.removed, *(after for _, after in plan.remasked), *plan.feed)
    table.folder.storage.fetch(table.addresses(files))
    most = options.driver_change_rows if versions.rows is None else options.driver_change_rows_read
    reader = ChangeReader(table, layout, fields, finder, most, options)
    parts = [*reader.whole(plan.added, plan.removed), *reader.remasked(plan.remasked), *map(reader.feed, plan.feed)]
    change = pa.concat_tables(parts) if parts else reader.schema.empty_table()
    return change if plan.is_append else net_rows(change, reader.schema, options)


class ChangeReader:
    """Reads the files of one change."""

    def __init__(
        self,
        table: DeltaTable,
        layout: Layout,
        fields: Sequence[pa.Field],
        finder: Finder | None,
        most: int,
        options: Options,
    ) -> None:
        """Read columns of a table, not ``most`` rows or more."""
        loose = [pa.field(field.name, field.type) for field in fields]
        self.schema = pa.schema([*loose, pa.field(WEIGHT, pa.int64(), nullable=False)])
        self._table, self._layout, self._finder, self._options = table, layout, finder, options
        self._stored = layout.in_files(fields)
        self._in_files = [f for f in self._stored if f.name not in layout.names_of_partitions]
        self._required = {layout.names[name] for name in layout.defaulted}
        self._left = most

    def whole(self, added: Sequence[FileAction], removed: Sequence[FileAction]) -> Iterator[pa.Table]:
        """Return the rows of files that came and, with negative weights, of files that went."""
        masks = self._table.masks([*added, *removed])
        rewritten = self._rewritten(added, removed, masks) if added and removed else None
        if rewritten is not None:
            yield from rewritten
            return
        for files, sign in ((added, 1), (removed, -1)):
            for file in files:
                rows = self._file(file)
                if file.vector:
                    rows = rows.take(pa.array(_others(rows.num_rows, masks[file.key])))
                yield self._weighted(rows, sign)

    def _rewritten(
        self, added: Sequence[FileAction], removed: Sequence[FileAction], masks: Mapping[tuple[str, str], Places]
    ) -> list[pa.Table] | None:
        """Return rows of files that were replaced by others, without those that these carry over; None if it cannot."""
        if self._finder is None or not self._in_files:
            return None
        addresses = [self._address(file) for file in (*added, *removed)]
        try:
            counts = [self._finder.rows(address) for address in addresses]
            frames = self._finder.read(addresses, self._in_files) if sum(counts) <= self._left else []
        except NeedsSparkError:
            return None
        self._count(sum(counts))
        for place, file in enumerate((*added, *removed)):
            if file.vector:
                frames[place] = frames[place][_others(counts[place], masks[file.key])]
            constants = self._constants(file, frames[place].height)
            frames[place] = frames[place].with_columns(pl.Series(n, pl.from_arrow(v)) for n, v in constants.items())
        came, went = frames[: len(added)], frames[len(added) :]
        if sum(counts) > self._options.polars_net_rows:
            went, came = ([left] for left in without_carried(went, came))
        parts = []
        for sign, some in ((1, came), (-1, went)):
            rows = pl.concat(some).select(field.name for field in self._stored)
            parts.append(self._weighted(rows.to_arrow(compat_level=pl.CompatLevel.oldest()), sign))
        return parts

    def remasked(self, pairs: Sequence[tuple[FileAction, FileAction]]) -> Iterator[pa.Table]:
        """Return the rows that another deletion vector of their file masks, and those that it masks no longer."""
        masks = self._table.masks([file for pair in pairs for file in pair])
        marked = []
        for before, after in pairs:
            was, now = (masks.get(file.key, np.zeros(0, np.int64)) for file in (before, after))
            marked += [(after, -1, np.setdiff1d(now, was, assume_unique=True))]
            marked += [(after, 1, np.setdiff1d(was, now, assume_unique=True))]
        marked = [one for one in marked if len(one[2])]
        self._count(sum(len(places) for _, _, places in marked))
        if self._finder is not None and marked and self._in_files:
            with suppress(NeedsSparkError):
                yield self._taken(self._finder, marked)
                return
        if sum(file.size for file, _, _ in marked) > self._options.driver_change_bytes:
            raise NeedsSparkError
        for file, sign, places in marked:
            yield self._weighted(self._file(file).take(pa.array(places)), sign)

    def _taken(self, finder: Finder, marked: Sequence[tuple[FileAction, int, Places]]) -> pa.Table:
        """Return rows of files at places, with signs."""
        addresses = [self._address(file) for file, _, _ in marked]
        rows, order = finder.take(addresses, self._in_files, [places for _, _, places in marked])
        marked = [marked[number] for number in order]
        counts = [len(places) for _, _, places in marked]
        told = [self._constants(file, count) for (file, _, _), count in zip(marked, counts, strict=True)]
        for name in told[0]:
            rows = rows.append_column(name, pa.concat_arrays([one[name] for one in told]))
        signs = np.repeat([sign for _, sign, _ in marked], counts)
        return self._weighted(rows.select([field.name for field in self._stored]), signs)

    def feed(self, file: FileAction) -> pa.Table:
        """Return the rows of a change file, which tells their signs."""
        rows = self._file(file, feed=True)
        came = pc.is_in(rows[_CHANGE_TYPE], value_set=_CAME).to_numpy()
        return self._weighted(rows.drop_columns([_CHANGE_TYPE]), np.where(came, 1, -1))

    def _weighted(self, rows: pa.Table, signs: int | Numbers) -> pa.Table:
        weights = pa.array(np.broadcast_to(signs, rows.num_rows).astype(np.int64))
        held = zip(rows.columns, self.schema.types, strict=False)
        return pa.Table.from_arrays([*(values.cast(type_) for values, type_ in held), weights], schema=self.schema)

    def _constants(self, file: FileAction, count: int) -> dict[str, pa.Array]:
        told = self._layout.constants(file)
        fields = [field for field in self._stored if field.name in told]
        return {field.name: pa.repeat(constants([told[field.name]], field.type)[0], count) for field in fields}

    def _address(self, file: FileAction) -> str:
        address = self._table.log.address_of(file.path)
        if address is None:
            raise NeedsSparkError
        return address

    def _file(self, file: FileAction, *, feed: bool = False) -> pa.Table:
        """Return all rows of a file, or of a change file."""
        folder = self._table.folder
        if folder is None:
            raise NeedsSparkError
        rows = read_file(
            folder.storage.readable(self._address(file)),
            self._stored,
            partition=self._layout.constants(file),
            required=self._required,
            feed=feed,
            options=self._options,
        )
        self._count(rows.num_rows)
        return rows

    def _count(self, rows: int) -> None:
        self._left -= rows
        if self._left < 0:
            raise NeedsSparkError


def _others(count: int, masked: Places) -> Places:
    return np.setdiff1d(np.arange(count), masked, assume_unique=True)


def read_file(
    place: str | BinaryIO,
    fields: Sequence[pa.Field],
    *,
    partition: Mapping[str, str | None] | None = None,
    required: Collection[str] = (),
    feed: bool = False,
    options: Options = DEFAULT,
) -> pa.Table:
    """Return the rows of a Parquet file with exactly these columns; one that the file lacks is NULL, if not ``required``.

    Few rows are read by one thread: to wake others takes longer than they save.

    Raises:
        NeedsSparkError: Only Spark can read it, or it is gone.
    """
    partition = partition or {}
    try:
        with pq.ParquetFile(place, coerce_int96_timestamp_unit="us") as file:
            check_calendar(file)
            there = set(file.schema_arrow.names)
            lower = {name.lower() for name in there - {field.name for field in fields}}
            stored = [field.name for field in fields if field.name in there and field.name not in partition]
            count = file.metadata.num_rows
            wanted = [*stored, _CHANGE_TYPE] if feed else stored
            rows = file.read(wanted, use_threads=count > options.polars_net_rows)
            columns = []
            for field in fields:
                if field.name in partition:
                    columns.append(pa.repeat(constants([partition[field.name]], field.type)[0], count))
                elif field.name in there:
                    check_column(field, file.schema_arrow.field(field.name))
                    columns.append(_as(rows[field.name], field, file))
                elif field.name.lower() in lower or field.name in required or column_id(field) is not None:
                    raise NeedsSparkError
                else:
                    columns.append(pa.nulls(count, field.type))
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error
    names = [field.name for field in fields]
    if feed:
        columns.append(rows[_CHANGE_TYPE].cast(pa.string()))
        names.append(_CHANGE_TYPE)
    return pa.Table.from_arrays(columns, names=names)


def check_calendar(file: pq.ParquetFile) -> None:
    """Refuse a file whose dates may count by the old calendar.

    Raises:
        NeedsSparkError: Only Spark can read it.
    """
    marks = file.metadata.metadata or {}
    if _OLD_CALENDAR & marks.keys() or marks.get(b"org.apache.spark.version", b"4").startswith((b"1.", b"2.")):
        raise NeedsSparkError


def check_column(field: pa.Field, stored: pa.Field) -> None:
    """Refuse a column of a file that is another one under the same name.

    Raises:
        NeedsSparkError: Its id, where columns go by id, is not the field's.
    """
    wanted = column_id(field)
    if wanted is not None and (stored.metadata or {}).get(FILE_FIELD_ID) != wanted:
        raise NeedsSparkError


def column_id(field: pa.Field) -> bytes | None:
    """Return the id by which files name a column, None where they name it by its name."""
    return None if field.metadata is None else field.metadata.get(COLUMN_ID)


def _as(column: Any, field: pa.Field, file: pq.ParquetFile) -> Any:
    """Convert a column to the table's type, if that changes how its values are held and not what they are."""
    kind = column.type
    if kind == field.type:
        return column
    if are_timestamps(kind, field.type):
        zones = kind.tz is not None, field.type.tz is not None
        # The old 96-bit timestamps are instants, but have no zone in Parquet's schema.
        instant = zones == (False, True) and _physical(file, field.name) == "INT96"
        if kind.unit == "ns" or (zones[0] != zones[1] and not instant):
            raise NeedsSparkError
    elif not holds_the_same(kind, field.type):
        raise NeedsSparkError
    return column.cast(field.type)


def _physical(file: pq.ParquetFile, name: str) -> str:
    columns = [file.schema.column(at) for at in range(len(file.schema))]
    return next(str(column.physical_type) for column in columns if column.path == name)


def net_rows(change: pa.Table, schema: pa.Schema, options: Options = DEFAULT) -> pa.Table:
    """Sum the weights of rows that are the same to the bit, and leave the zeros out."""
    names = [f"c{place}" for place in range(change.num_columns - 1)]
    if not names:
        total = pc.sum(change[WEIGHT]).as_py() or 0
        return pa.Table.from_arrays([pa.array([total] if total else [], pa.int64())], schema=schema)
    if any(map(has_parts, schema.types)):
        return _net_nested(change)
    change = change.rename_columns([*names, "w"])
    if change.num_rows > options.polars_net_rows and all(arrow_facts(type_).is_bitwise for type_ in schema.types):
        rows = pl.DataFrame(pl.from_arrow(change)).lazy().group_by(names).agg(pl.col("w").sum())
        summed = rows.filter(pl.col("w") != 0).collect().to_arrow(compat_level=pl.CompatLevel.oldest())
        return pa.Table.from_arrays(summed.columns, names=schema.names).cast(schema)
    summed = change.group_by(names, use_threads=False).aggregate([("w", "sum")])
    summed = summed.filter(pc.not_equal(summed["w_sum"], 0)).select([*names, "w_sum"])
    return pa.Table.from_arrays(summed.columns, schema=schema)


def _net_nested(change: pa.Table) -> pa.Table:
    """Net rows with arrays or structs, which nothing groups: by the numbers of equal rows."""
    numbers = row_bits(change.drop_columns([WEIGHT]))
    _, places, groups = np.unique(numbers, return_index=True, return_inverse=True)
    sums = np.zeros(len(places), np.int64)
    np.add.at(sums, groups, change[WEIGHT].to_numpy())
    left = np.flatnonzero(sums)
    rows = with_places(change, places[left])
    return rows.set_column(rows.num_columns - 1, change.schema.field(WEIGHT), pa.array(sums[left]))
