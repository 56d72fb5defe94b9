"""Partition columns of a table that the driver writes: files do not have them, the log has their values for each file.

Law    rows(file) = what the file holds, each row with the values that the log has for the file
       a file that is added has rows of one partition only
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.layout import constants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trickle.tables.arrow.rows import Numbers
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.layout import Layout

Values = dict[str, str | None]

_PLACE: Final = "__trickle_row"


def split(rows: pa.Table, layout: Layout) -> Iterator[tuple[Values, pa.Table]]:
    """Return rows by partition: the values of the partition as the log has them, and the columns that files have.

    Raises:
        NeedsSparkError: Spark would write a value otherwise, or refuse it.
    """
    names = [name for name in rows.column_names if name in layout.partitions]
    if not names:
        yield {}, rows
        return
    kept = rows.drop_columns(names)
    places = rows.select(names).append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    found = places.group_by(names, use_threads=False).aggregate([(_PLACE, "list")])
    texts = {layout.names[name]: _texts(found.column(name).combine_chunks()) for name in names}
    for number, chosen in enumerate(found.column(f"{_PLACE}_list")):
        yield {name: values[number] for name, values in texts.items()}, kept.take(chosen.values)


def _texts(values: pa.Array) -> list[str | None]:
    """Return values as the log has them, if they are the same when they are read again."""
    texts: list[str | None] = pc.cast(values, pa.string()).to_pylist()
    if "" in texts or not constants(texts, values.type).equals(values):
        raise NeedsSparkError
    return texts


def placed(
    rows: pa.Table, files: Sequence[FileAction], in_file: Numbers, layout: Layout, schema: pa.Schema
) -> pa.Table:
    """Return rows of some files, with the table's names and the values that the log has for the file of each."""
    columns = []
    for field in schema:
        if field.name in layout.partitions:
            held = partition_values(files, layout, field)
            columns.append(pa.chunked_array([held.take(pa.array(in_file))], field.type))
        else:
            columns.append(rows.column(layout.names[field.name]))
    return pa.Table.from_arrays(columns, schema=schema)


def partition_values(files: Sequence[FileAction], layout: Layout, field: pa.Field) -> pa.Array:
    """Return the value of a partition column for each of some files."""
    return constants([layout.constants(file)[layout.names[field.name]] for file in files], field.type)


def with_values(files: Sequence[FileAction], layout: Layout, wanted: pa.Table) -> list[FileAction]:
    """Return the files of the partitions that some rows are in, as far as these have the columns."""
    near = list(files)
    for field in wanted.schema:
        if field.name in layout.partitions and near:
            held = pc.is_in(partition_values(near, layout, field), value_set=wanted.column(field.name).combine_chunks())
            near = [file for file, is_held in zip(near, held.to_pylist(), strict=True) if is_held]
    return near
