"""Rows of a version by their keys: what its files hold, and what the log says of them besides.

Law    rows(files, keys) = the rows of each file that have the keys in its columns, without those that its deletion vector
       masks, each with the values that the log has for the file's partition columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.options import DEFAULT, Options
from trickle.tables.delta.deletion_vectors import unmasked
from trickle.tables.delta.files import near_values
from trickle.tables.delta.layout import constants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.delta.driver.find import Finder
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
    """Put small files together that are to be cached and searched as one, where many are to be searched.

    A bundle has files that are ``settled``, of one part of their order by path, so that it stays as it is while others come
    and go; it is searched if one of its files is near.
    """
    if len(near) <= options.bundle_files:
        return [[file] for file in near]
    wanted = {file.path: file for file in near}
    bundles: list[list[FileAction]] = [[]]
    for file in sorted(settled, key=lambda file: file.path):
        if file.size > options.bundled_file_bytes:
            bundles.append([file])
            bundles.append([])
            continue
        bundles[-1].append(file)
        if crc32(file.path.encode()) % options.bundle_files == 0:
            bundles.append([])
    known = {file.path for file in settled}
    bundles += [[file] for file in near if file.path not in known]
    return [bundle for bundle in bundles if any(file.path in wanted for file in bundle)]


def search(
    finder: Finder,
    files: Sequence[FileAction],
    addresses: Sequence[str],
    layout: Layout,
    fields: Sequence[pa.Field],
    keys: Mapping[str, pa.Array],
    masks: Mapping[tuple[str, str], Places],
    bundles: Sequence[int] = (),
) -> pa.Table:
    """Return the rows of files, which are near the keys, that have one of each column's, with exactly these columns.

    ``bundles`` says how many files, one after the other, are cached and searched as one.

    Raises:
        NeedsSparkError: As ``Finder.find`` does.
    """
    names = [field.name for field in fields]
    stored = layout.in_files(field for field in fields if field.name not in layout.partitions)
    searched = {layout.names[name]: values for name, values in keys.items() if name not in layout.partitions}
    if not masks and not layout.partitions:
        return finder.find(addresses, stored, searched, bundles=bundles).rename_columns(names)
    searched = {name: pc.drop_null(values) for name, values in searched.items()}
    found = finder.locate(addresses, stored, searched, bundles)
    rows, in_file = found.rows, found.files
    counts = _unmasked(files, masks, in_file, found.places)
    for name in keys.keys() & layout.partitions:  # a bundle has files of other values too
        values = _constants(files, layout, name, keys[name].type)
        counts &= pc.is_in(values, value_set=pc.drop_null(keys[name])).to_numpy(zero_copy_only=False)[in_file]
    if not counts.all():
        rows, in_file = rows.filter(pa.array(counts)), in_file[counts]
    numbers, places = np.unique(in_file, return_inverse=True)
    columns = []
    for field in fields:
        if field.name in layout.partitions:
            values = _constants([files[number] for number in numbers], layout, field.name, field.type)
            columns.append(pa.chunked_array([values.take(pa.array(places))]))
        else:
            columns.append(rows.column(layout.names[field.name]))
    return pa.Table.from_arrays(columns, schema=pa.schema([pa.field(field.name, field.type) for field in fields]))


def _constants(files: Sequence[FileAction], layout: Layout, name: str, kind: pa.DataType) -> pa.Array:
    return constants([layout.constants(file)[layout.names[name]] for file in files], kind)


def _unmasked(
    files: Sequence[FileAction], masks: Mapping[tuple[str, str], Places], in_file: Places, places: Places
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell of rows by their addresses which are not masked."""
    count = np.ones(len(places), np.bool_)
    for number in np.unique(in_file):
        mask = masks.get(files[number].key)
        if mask is not None:
            at = in_file == number
            count[at] = unmasked(places[at], mask)
    return count
