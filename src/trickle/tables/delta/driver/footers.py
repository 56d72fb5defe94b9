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
    """Of a file: the types and ids of its columns, the bytes they may take when decoded, its rows and those of its row groups.

    Also the places of the bytes of its columns, how these are coded, and, if it is elsewhere, the place of its footer.
    """

    types: Mapping[str, Any]
    ids: Mapping[str, bytes]
    sizes: Mapping[str, int]
    rows: int
    groups: Sequence[int] = ()
    footer: tuple[int, int] = (0, 0)
    chunks: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    codes: Mapping[str, Sequence[tuple[object, ...]]] = field(default_factory=dict)

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
            names = [field.name for field in parquet.schema_arrow for _ in range(_leaves(field.type))]
            metadata = parquet.metadata
            groups = tuple(metadata.row_group(place).num_rows for place in range(metadata.num_row_groups))
            chunks, codes = _chunks(metadata, names)
            facts = Footer(types, ids, _sizes(metadata, names), metadata.num_rows, groups, chunks=chunks, codes=codes)
            if not isinstance(place, io.IOBase):
                return facts
            length = metadata.serialized_size + _FOOTER_END
            footer = place.seek(0, io.SEEK_END) - length, length
            return replace(facts, footer=footer)
    except (FileNotFoundError, pa.ArrowException) as error:
        raise NeedsSparkError from error


def _leaves(kind: pa.DataType) -> int:
    """Return how many columns of Parquet a column is."""
    return sum(_leaves(kind.field(place).type) for place in range(kind.num_fields)) if kind.num_fields else 1


def _chunks(
    metadata: pq.FileMetaData, names: Sequence[str]
) -> tuple[dict[str, list[tuple[int, int]]], dict[str, list[tuple[object, ...]]]]:
    """Return where the bytes of a file's columns are, by name, and how they are coded.

    ``names`` are those of the columns of Parquet.
    """
    chunks: dict[str, list[tuple[int, int]]] = {}
    codes: dict[str, list[tuple[object, ...]]] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for place, name in enumerate(names):
            chunk, levels = group.column(place), metadata.schema.column(place).max_definition_level
            starts = chunk.data_page_offset, chunk.dictionary_page_offset
            start = min(start for start in starts if start is not None)
            chunks.setdefault(name, []).append((start, chunk.total_compressed_size))
            pages = chunk.data_page_offset - start
            codes.setdefault(name, []).append((chunk.compression, chunk.num_values, levels, pages))
    return chunks, codes


def _sizes(metadata: pq.FileMetaData, names: Sequence[str]) -> dict[str, int]:
    """Return the bytes that a file's columns may take when decoded, by name."""
    sizes: dict[str, int] = {}
    for group in (metadata.row_group(place) for place in range(metadata.num_row_groups)):
        for place, name in enumerate(names):
            chunk, column = group.column(place), metadata.schema.column(place)
            rows = chunk.num_values if column.max_repetition_level else group.num_rows
            bytes_ = _width(chunk, column, rows) * rows
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
