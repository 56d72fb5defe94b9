"""Columns that Arrow and Spark hold in the same way: a Delta type's name to its Arrow type, or nothing.

What is not in the table goes through Spark: nested values, variants, strings that compare by a collation, and columns
whose metadata gives them a meaning of its own (char, varchar, generated, identity, widened).
"""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIMPLE: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
)
_DECIMAL: Final = re.compile(r"decimal\((\d+),(-?\d+)\)")
_MEANINGLESS: Final = frozenset({"comment"})
"""Keys of a field's metadata that do not bear on its values."""


def arrow_field(field: Mapping[str, Any]) -> pa.Field | None:
    """Give the Arrow field of a field of a Delta schema, None if only Spark can hold it.

    >>> arrow_field({"name": "n", "type": "decimal(10,2)", "nullable": True, "metadata": {}}).type
    Decimal128Type(decimal128(10, 2))
    """
    kind = field["type"]
    if not isinstance(kind, str) or set(field.get("metadata") or ()) - _MEANINGLESS:
        return None
    found = _SIMPLE.get(kind)
    if found is None:
        match = _DECIMAL.fullmatch(kind)
        if match is None or int(match[2]) < 0:
            return None
        found = pa.decimal128(int(match[1]), int(match[2]))
    return pa.field(field["name"], found, nullable=bool(field["nullable"]))


def arrow_fields(metadata: Mapping[str, Any]) -> dict[str, pa.Field | None]:
    """Give the columns of a ``metaData`` action by name, None for those that only Spark can hold."""
    return {field["name"]: arrow_field(field) for field in json.loads(metadata["schemaString"])["fields"]}


def arrow_schema(metadata: Mapping[str, Any]) -> pa.Schema | None:
    """Give a table's whole schema, None if a column is one that only Spark can hold."""
    fields = list(arrow_fields(metadata).values())
    return None if any(field is None for field in fields) else pa.schema(fields)
