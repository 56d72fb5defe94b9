"""Rows of a version by their keys: what its files hold, and what the log says of them besides.

Law    rows(files, keys) = the rows of each file that have the keys in its columns, without those that its deletion vector
       masks, each with the values that the log has for the file's partition columns
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.options import DEFAULT, Options
from trickle.tables.delta.deletion_vectors import unmasked
from trickle.tables.delta.driver.find import IN_FILE, IN_ROW
from trickle.tables.delta.files import near_values
from trickle.tables.delta.layout import constants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.delta.layout import Layout


def files_near(files: Sequence[FileAction], layout: Layout, keys: Mapping[str, pa.Array]) -> list[FileAction]:
    """Return the files that may hold rows with some keys, by what the log says of them.

    Raises:
        NeedsSparkError: Only Spark can read a partition column.
    """
    near = list(files)
    for name, values in keys.items():
        if name not in layout.partitions:
            near = near_values(near, layout.names[name], pc.drop_null(values))
            continue
        held = pc.is_in(_constants(near, layout, name, values.type), value_set=pc.drop_null(values))
        near = [file for file, holds in zip(near, held.to_pylist(), strict=True) if holds]
    return near


def bundled(
    near: Sequence[FileAction], settled: Sequence[FileAction], options: Options = DEFAULT
) -> list[list[FileAction]]:
    """Put small files together that are to be cached and searched as one, where many are to be searched; tiny ones sooner.

    A bundle has files that are ``settled``, of one part of their order by path, so that it stays as it is while others come
    and go; it is searched if one of its files is near.
    """
    most = options.bundled_file_bytes if len(near) > options.bundle_files else options.tiny_file_bytes
    if len(near) <= options.bundle_files and sum(file.size <= most for file in near) <= options.tiny_files:
        return [[file] for file in near]
    wanted = {file.path: file for file in near}
    bundles: list[list[FileAction]] = [[]]
    for file in sorted(settled, key=lambda file: file.path):
        if file.size > most:
            bundles.append([file])
            bundles.append([])
            continue
        bundles[-1].append(file)
        if crc32(file.path.encode()) % options.bundle_files == 0:
            bundles.append([])
    known = {file.path for file in settled}
    bundles += [[file] for file in near if file.path not in known]
    return [bundle for bundle in bundles if any(file.path in wanted for file in bundle)]


@dataclass(frozen=True, slots=True)
class Search:
    """What is asked of files for the rows of a version that have some keys, and what becomes of what they have.

    Attributes:
        files: The files to search.
        bundles: How many of them, one after the other, are cached and searched as one.
        layout: How they hold the columns.
        fields: The columns wanted.
        keys: The values wanted of some columns.
        masks: The rows of files that do not count.
    """

    files: Sequence[FileAction]
    bundles: Sequence[int]
    layout: Layout
    fields: Sequence[pa.Field]
    keys: Mapping[str, pa.Array]
    masks: Mapping[tuple[str, str], Places]

    @property
    def is_addressed(self) -> bool:
        """Whether the addresses of rows are needed: for what the log says of them."""
        return bool(self.masks or self.layout.partitions)

    @property
    def fields_in_files(self) -> list[pa.Field]:
        """The columns to read, as files have them."""
        return self.layout.in_files(field for field in self.fields if field.name not in self.layout.partitions)

    @property
    def keys_in_files(self) -> dict[str, pa.Array]:
        """The keys to search for, by the names that files have for the columns."""
        names, partitions = self.layout.names, self.layout.partitions
        return {names[name]: pc.drop_null(values) for name, values in self.keys.items() if name not in partitions}

    def completed(self, found: pa.Table) -> pa.Table:
        """Return the rows that count, with exactly the columns wanted, of those that the files have.

        Raises:
            NeedsSparkError: Only Spark can read a partition column.
        """
        schema = pa.schema([pa.field(field.name, field.type) for field in self.fields])
        if not self.is_addressed:
            return found.rename_columns(schema.names)
        in_file, places = (found.column(name).to_numpy() for name in (IN_FILE, IN_ROW))
        counts = self._counts(in_file, places)
        rows = found if counts.all() else found.filter(pa.array(counts))
        numbers, places = np.unique(in_file[counts], return_inverse=True)
        columns = []
        for field in self.fields:
            if field.name in self.layout.partitions:
                files = [self.files[number] for number in numbers]
                values = _constants(files, self.layout, field.name, field.type)
                columns.append(pa.chunked_array([values.take(pa.array(places))]))
            else:
                columns.append(rows.column(self.layout.names[field.name]))
        return pa.Table.from_arrays(columns, schema=schema)

    def _counts(self, in_file: Places, places: Places) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tell of rows by their addresses which are not masked, and in a partition that has the keys."""
        counts = np.ones(len(places), np.bool_)
        for number in np.unique(in_file) if self.masks else ():
            mask = self.masks.get(self.files[number].key)
            if mask is not None:
                at = in_file == number
                counts[at] = unmasked(places[at], mask)
        for name in self.keys.keys() & self.layout.partitions:  # a bundle has files of other values too
            wanted = pc.drop_null(self.keys[name])
            held = pc.is_in(_constants(self.files, self.layout, name, wanted.type), value_set=wanted)
            counts &= held.to_numpy(zero_copy_only=False)[in_file]
        return counts


def _constants(files: Sequence[FileAction], layout: Layout, name: str, kind: pa.DataType) -> pa.Array:
    return constants([layout.constants(file)[layout.names[name]] for file in files], kind)
