"""How the files of a Delta table hold its columns: under which names, and which of them the log has instead.

Mapped columns have other names in files and statistics than in the table; partition columns are not in the files at all: the
log has their value for each file. Everything else bears on writers only, and is read as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trickle.model.types import STRING
from trickle.tables.arrow.types import arrow_facts
from trickle.tables.delta.driver.fit import NeedsSparkError, mapping_mode
from trickle.tables.delta.schema import FILE_ID, FILE_NAME, arrow_field

if TYPE_CHECKING:
    from trickle.tables.delta.actions import FileAction

COLUMN_ID: Final = b"trickle.column_id"
"""In a field's metadata: the id by which files name the column, where not its name but the id tells it."""

_DEFAULT: Final = "EXISTS_DEFAULT"
_WIDENED: Final = "delta.typeChanges"
_WRITERS_ONLY: Final = frozenset(
    {
        *("CURRENT_DEFAULT", _DEFAULT, _WIDENED, "__CHAR_VARCHAR_TYPE_STRING"),
        *("delta.generationExpression", "delta.invariants"),
        *(f"delta.identity.{name}" for name in ("start", "step", "highWaterMark", "allowExplicitInsert")),
    }
)
"""Keys of a field's metadata that bear on what writers write, or on files that are seen to lack the column.

The padding of CHAR is part of the query: Spark's analyser adds it above the scan.
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a version.

    Attributes:
        table: The table's id.
        fields: As Arrow has them, by name; None for one that only Spark can hold.
        names: The names by which files and statistics call the columns.
        partitions: The columns that are in the log, not in files.
        defaulted: The columns that are not NULL where a file lacks them.
    """

    table: str
    fields: Mapping[str, pa.Field | None]
    names: Mapping[str, str]
    partitions: frozenset[str]
    defaulted: frozenset[str]

    def wanted(self, columns: Iterable[str]) -> list[pa.Field] | None:
        """Return columns as Arrow has them, None if only Spark can hold one."""
        found = [self.fields.get(name) for name in columns]
        return None if any(field is None for field in found) else found

    @property
    def names_of_partitions(self) -> frozenset[str]:
        """The names that files would have for the partition columns."""
        return frozenset(self.names[name] for name in self.partitions)

    def in_files(self, fields: Iterable[pa.Field]) -> list[pa.Field]:
        """Return columns under the names that files have for them."""
        return [field.with_name(self.names[field.name]) for field in fields]

    def constants(self, file: FileAction) -> Mapping[str, str | None]:
        """Return the values of the partition columns in a file, as texts, by the names that files would have for them.

        Raises:
            NeedsSparkError: Some writers leave them out of a remove.
        """
        if not self.partitions:
            return {}
        values = file.body.get("partitionValues")
        if values is None:
            raise NeedsSparkError
        # A remove may leave NULL out.
        return {self.names[name]: values.get(self.names[name]) for name in self.partitions}


def layout_of(metadata: Mapping[str, Any]) -> Layout:
    """Return the layout that a ``metaData`` action describes."""
    stored = json.loads(metadata["schemaString"])["fields"]
    mode = mapping_mode(metadata)
    fields, names, defaulted = {}, {}, set()
    for one in stored:
        name, described = one["name"], one.get("metadata") or {}
        field = arrow_field(one, _WRITERS_ONLY)
        if field is not None and mode == "id":
            field = field.with_metadata({COLUMN_ID: str(described.get(FILE_ID)).encode()})
        fields[name] = field
        names[name] = name if mode == "none" else described.get(FILE_NAME, name)
        if described.get(_DEFAULT) is not None:
            defaulted.add(name)
    partitions = frozenset(metadata.get("partitionColumns") or ())
    return Layout(str(metadata["id"]), fields, names, partitions, frozenset(defaulted))


def constants(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Return the values of a partition column in some files; the log has them as texts.

    An empty text is NULL, but a text if the column is one: so Spark reads it. Spark never writes it, delta-rs does.

    Raises:
        NeedsSparkError: Instants are written in the writer's zone; other types, and what is not written as it usually is,
            as Spark alone reads them.
    """
    if arrow_facts(kind) is not STRING:
        texts = [text or None for text in texts]
    values = pa.array(texts, pa.string())
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    if not arrow_facts(kind).is_partitioned:
        raise NeedsSparkError
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        raise NeedsSparkError from error
