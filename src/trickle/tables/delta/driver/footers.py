"""Footers of Parquet files: what is known of a file before one of its columns is decoded."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from trickle.tables.arrow.types import is_narrower, value_type
from trickle.tables.cache.encoding import MAX_DIGITS, width
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.read import FILE_FIELD_ID, check_calendar, column_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trickle.tables.storage.protocol import Storage

_WIDEST: Final = 16
"""Bytes of a value, texts aside."""

_PLACE: Final = 2
"""Bytes of a place in a list of texts."""

_FOOTER_END: Final = 8
"""Bytes after the footer: its length, and what says that this is a file of Parquet."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Of a file: the types and ids of its columns, the bytes they may take when decoded, and its rows.

    If it is elsewhere, also the places of the bytes of its footer and its columns.
    """

    types: Mapping[str, Any]
    ids: Mapping[str, bytes]
    sizes: Mapping[str, int]
    rows: int
    footer: tuple[int, int] = (0, 0)
    chunks: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def parts(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """Return what of a file elsewhere is read for some columns."""
        return [self.footer, *(chunk for name in dict.fromkeys(names) for chunk in self.chunks[name])]

    def has(self, field: pa.Field) -> bool:
        """Return whether the file has a column of this type, or one whose whole numbers are just narrower."""
        kind, wanted = self.types.get(field.name), column_id(field)
        if kind is None or (wanted is not None and self.ids.get(field.name) != wanted):
            return False
        return kind == field.type or is_narrower(kind, field.type)


def read_footer(storage: Storage, file: str) -> Footer:
    """Read the footer of a file.

    Raises:
        NeedsSparkError: Only Spark can read the file, or it is gone.
    """
    try:
        place = storage.readable(file)
        with pq.ParquetFile(place) as parquet:
            check_calendar(parquet)
            types = {field.name: value_type(field.type) for field in parquet.schema_arrow}
            ids = {f.name: id_ for f in parquet.schema_arrow if (id_ := (f.metadata or {}).get(FILE_FIELD_ID))}
            facts = Footer(types, ids, _sizes(parquet.metadata), parquet.metadata.num_rows)
            if not isinstance(place, io.IOBase):
                return facts
            length = parquet.metadata.serialized_size + _FOOTER_END
            footer = place.seek(0, io.SEEK_END) - length, length
            return replace(facts, footer=footer, chunks=_chunks(parquet.metadata))
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error


def _chunks(metadata: pq.FileMetaData) -> dict[str, list[tuple[int, int]]]:
    """Return where the bytes of a file's columns are, by name."""
    chunks: dict[str, list[tuple[int, int]]] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for chunk in (group.column(place) for place in range(group.num_columns)):
            starts = chunk.data_page_offset, chunk.dictionary_page_offset
            start = min(start for start in starts if start is not None)
            chunks.setdefault(chunk.path_in_schema, []).append((start, chunk.total_compressed_size))
    return chunks


def _sizes(metadata: pq.FileMetaData) -> dict[str, int]:
    """Return the bytes that a file's columns may take when decoded, by name."""
    sizes: dict[str, int] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            chunk = group.column(place)
            name = chunk.path_in_schema  # of a column that is not nested, its name
            bytes_ = _width(chunk, metadata.schema.column(place), group.num_rows) * group.num_rows
            sizes[name] = sizes.get(name, 0) + bytes_
    return sizes


def _width(chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema, rows: int) -> int:
    """Return the bytes that a value of a column may take when it is cached."""
    facts, stored = chunk.statistics, chunk.total_uncompressed_size // max(rows, 1)
    if facts is not None and facts.has_min_max and column.precision <= MAX_DIGITS:
        with suppress(OverflowError):  # of a date that Python has none for, nothing is told
            found = width(facts.min, facts.max, max(column.scale, 0))
            if found is not None:
                return found
    # Texts that repeat are stored as places in a list, and cached so too.
    return _PLACE if stored < _PLACE else stored + _WIDEST
