"""One write transaction in the driver: what it reads, the files it writes, its commit."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trickle.model.cache import CacheSize, register
from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.local import frame_of, local_rows
from trickle.tables.arrow.rows import with_places
from trickle.tables.contract import Applied
from trickle.tables.delta.actions import file_action
from trickle.tables.delta.deletion_vectors import unmasked
from trickle.tables.delta.driver.fit import NeedsSparkError, has_feed
from trickle.tables.delta.driver.log import DriverLog
from trickle.tables.delta.driver.masking import (
    files_with,
    is_masked,
    mask_actions,
    read_masks,
    search_keys,
    small_files,
    with_more,
    with_vectors,
)
from trickle.tables.delta.driver.partitions import placed, split, with_values
from trickle.tables.delta.driver.read import read_file
from trickle.tables.delta.driver.write import FileWriter, removal
from trickle.tables.delta.layout import layout_of
from trickle.tables.delta.schema import arrow_schema, file_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trickle.tables.arrow.edit import Edit
    from trickle.tables.contract import Given, Record, TargetState
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.delta.driver.find import Finder
    from trickle.tables.delta.driver.masking import Key
    from trickle.tables.delta.driver.write import Action
    from trickle.tables.delta.target import DeltaTarget


class StoredRows:
    """The rows of a table's files, by path, known from earlier reads and writes: those of its newest version, if they are few.

    And which of them are masked. A file never changes, so that what one thread knows serves all. The mappings are never changed
    but put in place at once.
    """

    name = "stored rows"

    def __init__(self, options: Options = DEFAULT) -> None:
        """Start without files."""
        self.of_files: Mapping[str, pa.Table] = {}
        self.masks: Mapping[tuple[str, str], Places] = {}
        self.finder: Finder | None = None
        self._options = options
        register(self)

    def keep_files(self, of_files: Mapping[str, pa.Table]) -> None:
        """Keep the rows of these files, and of no others."""
        self.of_files = of_files

    def keep_masks(self, masks: Mapping[tuple[str, str], Places]) -> None:
        """Keep these masks, and no others."""
        self.masks = masks

    def search_with(self, finder: Finder) -> None:
        """Take what looks for rows where they are too many to be known."""
        self.finder = finder

    def size(self) -> CacheSize:
        """Return how much it holds."""
        files, masks = self.of_files, self.masks
        held = sum(rows.nbytes for rows in files.values()) + sum(places.nbytes for places in masks.values())
        return CacheSize(1, len(files) + len(masks), held, 0, self._options.commit_bytes)


class DriverTransaction:
    """One write in progress on the newest version; ``close`` deletes what it wrote unless it was committed."""

    def __init__(self, target: DeltaTarget, known: StoredRows, record: Record, expected: TargetState) -> None:
        """Look at the table; ``known`` are the rows of its files known from earlier, and will be those known then.

        Raises:
            ConflictError: Another refresh came first.
            NeedsSparkError: The table is not one that the driver writes.
        """
        self._clock = perf_counter()
        self.target = target
        self.options = target.options
        self.known = known
        self.record = record
        self.log = DriverLog(target, expected)
        schema = arrow_schema(self.log.metadata)
        if schema is None:
            raise NeedsSparkError
        self.schema = schema
        self.layout = layout_of(self.log.metadata)
        self.file_schema = file_schema(self.log.metadata, schema)
        self.folder = self.log.folder
        self.writer = FileWriter(self.folder)
        self._fresh: dict[str, pa.Table] = {}
        self._remembers = False

    # -- reading

    def given(self, given: Given, schema: pa.Schema | None = None) -> pa.Table:
        """Return rows that are in the driver, if they fit the schema (the table's own, if None)."""
        wanted = schema or self.schema
        rows = given if isinstance(given, pa.Table) else None
        if rows is None or rows.schema.types != wanted.types:
            # Spark's own way to Arrow gives the types of its tables.
            rows = local_rows(frame_of(self.target.spark, given), most=self.options.commit_rows)
        if rows is None or rows.num_rows > self.options.commit_rows or rows.schema.types != wanted.types:
            raise NeedsSparkError
        # The weight goes by its place; the others by name and place, as Spark demands.
        if rows.column_names[: len(self.schema)] != wanted.names[: len(self.schema)]:
            raise NeedsSparkError
        if any(column.null_count and not field.nullable for field, column in zip(wanted, rows.columns, strict=True)):
            raise NeedsSparkError
        return pa.Table.from_arrays(rows.columns, schema=wanted)

    def files(self) -> list[FileAction]:
        """List the table's files."""
        found = self.target.table.files(self.log.read)
        if found is None:
            raise NeedsSparkError
        return found

    def stored(self, files: Sequence[FileAction]) -> list[pa.Table]:
        """Return the rows of the table's files; those of files not seen before are read."""
        counts = [file.records for file in files]
        size = sum(file.size for file in files)
        if None in counts or size > self.options.commit_bytes:
            raise NeedsSparkError
        if sum(count for count in counts if count is not None) > self.options.commit_rows:
            raise NeedsSparkError
        self._remembers = True  # of a table that is only appended to, no rows are needed again
        before = self.known.of_files
        now = {file.path: self._rows_of(file, before) for file in files}
        self.known.keep_files(now)
        masks = self._masks(files)
        return [_without(now[file.path], masks.get(file.key)) for file in files]

    def _rows_of(self, file: FileAction, known: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows of a file, masked ones too."""
        rows = known.get(file.path)
        if rows is None or rows.schema != self.schema:
            place, constants = self.folder.storage.readable(self._address(file.path)), self.layout.constants(file)
            rows = read_file(place, list(self.file_schema), partition=constants, options=self.options)
            rows = pa.Table.from_arrays(rows.columns, schema=self.schema)
        return rows

    def _masks(self, files: Sequence[FileAction]) -> dict[tuple[str, str], Places]:
        """Return the places of the masked rows of files that have some."""
        masks = read_masks(files, self.known.masks, self.folder, self.target.log.address_of)
        self.known.keep_masks(masks)
        return masks

    def _address(self, path: str) -> str:
        address = self.target.log.address_of(path)
        if address is None:
            raise NeedsSparkError
        return address

    # -- writing

    def only_add(self, rows: pa.Table) -> Applied:
        """Add rows, or nothing but the record."""
        return self._commit(self._add(rows), "Append", rows.num_rows, 0)

    def replace_all(self, rows: pa.Table) -> Applied:
        """Replace all rows; readers of the change feed see this from the files."""
        files = self.files()
        actions = [*map(removal, files), *self._add(rows)]
        deleted = sum((file.records or 0) - file.masked for file in files)
        return self._commit(actions, "Overwrite", rows.num_rows, deleted)

    def apply(self, edit_of: Callable[[pa.Table], Edit], wanted: pa.Table) -> Applied:
        """Delete rows and insert others, as an edit of the stored rows says.

        The edit deletes only rows that equal one of ``wanted`` in its columns. It is told at least all of these.
        """
        files = self.files()
        masks = is_masked(self.log.metadata, files, self.options)
        if wanted.num_columns and (masks or not self._may_hold(files)):
            return self._find(files, edit_of, wanted, masks=masks)
        return self._rewrite(files, edit_of)

    def _may_hold(self, files: Sequence[FileAction]) -> bool:
        """Return whether the rows of files may be in the driver at once."""
        few = sum(file.records or 0 for file in files) <= self.options.commit_rows
        return few and sum(file.size for file in files) <= self.options.commit_bytes

    def _find(
        self, files: Sequence[FileAction], edit_of: Callable[[pa.Table], Edit], wanted: pa.Table, *, masks: bool
    ) -> Applied:
        """Find the rows to delete by their values, and mask them or rewrite their files."""
        counts = [file.records for file in files if file.records is not None]
        if len(counts) < len(files) or self.known.finder is None:
            raise NeedsSparkError
        names, partitions = self.layout.names, self.layout.partitions
        searched = wanted.select([name for name in wanted.column_names if name not in partitions])
        stored_as = searched.rename_columns([names[name] for name in searched.column_names])
        domain = partial(self.target.table.domain, self.log.read)
        keys = search_keys(stored_as, sum(counts), domain, self.options) if wanted.num_rows else {}
        if wanted.num_rows and not keys:
            return self._rewrite(files, edit_of)
        near = files_with(with_values(files, self.layout, wanted), keys) if keys else []
        if sum(file.size for file in near) > self.options.lookup_file_bytes:
            raise NeedsSparkError
        in_files = [
            field for field, own in zip(self.file_schema, self.schema, strict=True) if own.name not in partitions
        ]
        found = self.known.finder.locate([self._address(file.path) for file in near], in_files, keys)
        masked = dict(self._masks(files))
        is_there = np.ones(len(found.places), np.bool_)
        for number, file in enumerate(near):
            if (mask := masked.get(file.key)) is not None:
                mine = found.files == number
                is_there[mine] = unmasked(found.places[mine], mask)
        stored = placed(found.rows, near, found.files, self.layout, self.schema).filter(pa.array(is_there))
        edit = edit_of(stored)
        inserts = pa.Table.from_arrays(edit.inserts.columns, schema=self.schema)
        if not len(edit.leaving):
            return self.only_add(inserts)
        in_file, places = found.files[is_there][edit.leaving], found.places[is_there][edit.leaving]
        hit = []
        for number in np.flatnonzero(np.bincount(in_file)).tolist():
            hit.append(near[number])
            masked[near[number].key] = with_more(masked.get(near[number].key), places[in_file == number])
        actions = self._mask(files, hit, masked, inserts) if masks else self._replace(hit, masked, inserts)
        if has_feed(self.log.metadata):
            change = _change_rows(with_places(stored, edit.leaving), inserts)
            actions.extend(self._feed(change))
        return self._commit(actions, "Overwrite", inserts.num_rows, len(edit.leaving))

    def _mask(
        self, files: Sequence[FileAction], hit: Sequence[FileAction], masked: Mapping[Key, Places], inserts: pa.Table
    ) -> list[Action]:
        """Write the vectors of files; small files that nobody merged are written anew with the inserts."""
        folded = small_files(files, self.options)
        left = [_without(self._rows_of(file, {}), masked.get(file.key)) for file in folded]
        rows = pa.concat_tables([*left, inserts])
        others = [file for file in hit if file not in folded]
        return [
            *self.log.allow(with_vectors(self.log.protocol, self.log.metadata)),
            *map(removal, folded),
            *mask_actions(others, masked, self.writer, self.options),
            *self._add(rows),
        ]

    def _replace(self, hit: Sequence[FileAction], masked: Mapping[Key, Places], inserts: pa.Table) -> list[Action]:
        """Write files anew, one by one, without their masked rows: so they keep their size."""
        if not self._may_hold(hit):
            raise NeedsSparkError
        left = (_without(self._rows_of(file, {}), masked[file.key]) for file in hit)
        return [*map(removal, hit), *(action for rows in (*left, inserts) for action in self._add(rows))]

    def _rewrite(self, files: Sequence[FileAction], edit_of: Callable[[pa.Table], Edit]) -> Applied:
        """Rewrite the files with deleted rows, without these rows and with the inserted ones."""
        parts = self.stored(files)
        stored = pa.concat_tables([self.schema.empty_table(), *parts])
        edit = edit_of(stored)
        inserts = pa.Table.from_arrays(edit.inserts.columns, schema=self.schema)
        if not len(edit.leaving):
            return self.only_add(inserts)
        staying = np.ones(stored.num_rows, np.bool_)
        staying[edit.leaving] = False
        ends = np.cumsum([part.num_rows for part in parts])
        hit = set(np.searchsorted(ends, edit.leaving, side="right").tolist())
        if len(files) > self.options.commit_files:
            hit = set(range(len(files)))
        staying_parts = [
            part.filter(pa.array(staying[end - part.num_rows : end]))
            for place, (part, end) in enumerate(zip(parts, ends, strict=True))
            if place in hit
        ]
        rows = pa.concat_tables([*staying_parts, inserts])
        actions = [*(removal(files[place]) for place in sorted(hit)), *self._add(rows)]
        if has_feed(self.log.metadata):
            change = _change_rows(with_places(stored, edit.leaving), inserts)
            actions.extend(self._feed(change))
        return self._commit(actions, "Overwrite", inserts.num_rows, len(edit.leaving))

    def _add(self, rows: pa.Table) -> list[Action]:
        """Write rows, one file for each partition; returns the actions that add them."""
        actions = []
        for values, part in split(rows, self.layout) if rows.num_rows else ():
            pieces = max((column.num_chunks for column in part.columns), default=0)
            part = part.combine_chunks() if pieces > self.options.commit_chunks else part
            action = self.writer.add(self._as_in_files(part), values)
            self._fresh[str(action["add"]["path"])] = self._whole(part, action)
            actions.append(action)
        return actions

    def _whole(self, part: pa.Table, action: Action) -> pa.Table:
        """Return the rows of an added file with its partition columns."""
        if not self.layout.partitions:
            return part
        file = file_action("add", action["add"])
        stored = self._as_in_files(part)
        return placed(stored, [file], np.zeros(part.num_rows, np.int64), self.layout, self.schema)

    def _feed(self, change: pa.Table) -> list[Action]:
        """Write rows of the change feed; returns the actions that name their files."""
        return [self.writer.feed(self._as_in_files(part), values) for values, part in split(change, self.layout)]

    def _as_in_files(self, rows: pa.Table) -> pa.Table:
        """Return rows, perhaps with more columns than the table's, under the names that files have for them."""
        fields = {own.name: field for own, field in zip(self.schema, self.file_schema, strict=True)}
        return pa.Table.from_arrays(rows.columns, schema=pa.schema([fields.get(f.name, f) for f in rows.schema]))

    def _commit(self, actions: Sequence[Action], mode: str, inserted: int, deleted: int) -> Applied:
        metrics = {
            "numFiles": sum("add" in action for action in actions),
            "numOutputBytes": self.writer.bytes,
            "numOutputRows": sum(rows.num_rows for rows in self._fresh.values()),
            "numInsertedRows": inserted,
            "numDeletedRows": deleted,
        }
        self.writer.wait()
        version = self.log.commit(actions, mode, self.record, metrics)
        if self._remembers:
            self.known.keep_files({**self.known.of_files, **self._fresh})
        return Applied(version, inserted, deleted, {"driver": perf_counter() - self._clock})

    def close(self) -> None:
        """Delete the written files if no commit can refer to them."""
        if not self.log.may_be_committed:
            self.writer.abandon()


def _without(rows: pa.Table, masked: Places | None) -> pa.Table:
    if masked is None:
        return rows
    left = np.ones(rows.num_rows, np.bool_)
    left[masked] = False
    return rows.filter(pa.array(left))


def _change_rows(gone: pa.Table, came: pa.Table) -> pa.Table:
    """Return the rows of the change feed."""
    kinds = pa.array(["delete"] * gone.num_rows + ["insert"] * came.num_rows, pa.string())
    return pa.concat_tables([gone, came]).append_column("_change_type", kinds)
