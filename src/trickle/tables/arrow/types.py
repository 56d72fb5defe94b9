"""The types of Arrow and polars: which of Spark's they stand for, and in which layouts Arrow has the values of one type.

What is neither in the table nor made of what is in it goes through Spark: maps, variants, strings that compare by a collation.
What is known of a type, whatever it is called here, is said in ``model/types.py``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from trickle.model.types import (
    DECIMAL,
    STRING,
    TYPES,
    UNKNOWN,
    TypeFacts,
    decimal_digits,
    facts_of,
    nested_facts,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ARROW_TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
)
"""The Arrow type that holds a type's values as Spark has them, by its name in Spark."""


def arrow_type(name: str) -> pa.DataType | None:
    """Return the Arrow type that holds a type's values as Spark has them, None if there is none.

    >>> arrow_type("decimal(10,2)"), arrow_type("array<int>"), arrow_type("map<int,int>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<element: int32>), None)
    """
    parts = parts_of(name)
    if parts is not None:
        types = [(part, arrow_type(type_)) for part, type_ in parts]
        if any(type_ is None for _, type_ in types):
            return None
        return array_of(types[0][1]) if name.startswith("array<") else pa.struct(types)
    digits = decimal_digits(name)
    return ARROW_TYPES.get(name) if digits is None else pa.decimal128(*digits)


def array_of(part: pa.DataType) -> pa.DataType:
    """Return the type of arrays, whose parts are called as files call them, and may be NULL."""
    return pa.list_(pa.field("element", part))


def as_value_types(rows: pa.Table) -> pa.Table:
    """Return rows with the types of its values, in one layout."""
    plain = pa.schema([field.with_type(value_type(field.type)) for field in rows.schema])
    return rows if plain.types == rows.schema.types else rows.cast(plain)


def arrow_facts(type_: pa.DataType) -> TypeFacts:
    """Return what is known of the Spark type that an Arrow type stands for, in whatever layout it is held."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return nested_facts([arrow_facts(type_.value_type)])
    if _is_variant(type_):
        return UNKNOWN
    if pa.types.is_struct(type_):
        return nested_facts(arrow_facts(field.type) for field in type_)
    for test, name in _NAMES:
        if test(type_):
            return DECIMAL if name == DECIMAL.name else TYPES[name]
    return UNKNOWN


def polars_facts(dtype: pl.DataType) -> TypeFacts:
    """Return what is known of the Spark type that a type of polars stands for."""
    if isinstance(dtype, pl.Datetime):
        return TYPES["timestamp_ntz" if dtype.time_zone is None else "timestamp"]
    return _BY_POLARS.get(dtype.base_type(), UNKNOWN)


def polars_digits(dtype: pl.DataType) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type of polars, None for any other.

    >>> polars_digits(pl.Decimal(15, 2))
    (15, 2)
    """
    return (dtype.precision, dtype.scale) if isinstance(dtype, pl.Decimal) else None


def computed_type(name: str) -> pa.DataType | None:
    """Return the Arrow type of values that the driver computes, as polars lays them out; None if it has none of them.

    >>> computed_type("string"), computed_type("date"), computed_type("timestamp")
    (DataType(large_string), DataType(date32[day]), None)
    """
    facts = facts_of(name)
    if not facts.is_computed:
        return None
    return pa.large_string() if facts is STRING else arrow_type(name)


_NAMES: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_integer, "bigint"),  # counts without a sign too
    (pa.types.is_decimal128, DECIMAL.name),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_date32, "date"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (lambda type_: pa.types.is_timestamp(type_) and type_.tz is not None, "timestamp"),
    (pa.types.is_timestamp, "timestamp_ntz"),
    (pa.types.is_binary, "binary"),
)

_BY_POLARS: Final[Mapping[type[pl.DataType], TypeFacts]] = MappingProxyType(
    {
        pl.Int8: TYPES["tinyint"],
        pl.Int16: TYPES["smallint"],
        pl.Int32: TYPES["int"],
        pl.Int64: TYPES["bigint"],
        pl.Decimal: DECIMAL,
        pl.String: STRING,
        pl.Date: TYPES["date"],
        pl.Boolean: TYPES["boolean"],
        pl.Float32: TYPES["float"],
        pl.Float64: TYPES["double"],
        pl.Binary: TYPES["binary"],
    }
)

WHOLE_NUMBERS: Final = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
"""Those of polars, from one byte to eight."""

SAME_BITS: Final[Mapping[Any, pa.DataType]] = MappingProxyType({pl.Float32: pa.int32(), pl.Float64: pa.int64()})
"""The whole numbers that floating-point numbers of polars are compared as, to compare their bits."""


# -- layouts


def value_type(kind: Any) -> Any:
    """Return the type that a column's values have in whatever layout they are held; parts of them may be NULL."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return array_of(value_type(kind.value_type))
    if pa.types.is_struct(kind) and not _is_variant(kind):
        return pa.struct([(field.name, value_type(field.type)) for field in kind])
    return _flat_type(kind)


def _is_variant(kind: pa.DataType) -> bool:
    """Return whether Arrow holds variants so: what tells them from a struct of the same fields, a cast would lose."""
    return pa.types.is_struct(kind) and {(f.name, f.type) for f in kind} == _VARIANT


_VARIANT: Final = {("value", pa.binary()), ("metadata", pa.binary())}


def _flat_type(kind: Any) -> Any:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if any(test(kind) for test in _TEXTS):
        return pa.string()
    return pa.binary() if any(test(kind) for test in _BINARIES) else kind


def plain_type(kind: Any) -> Any:
    """Return the type of the same values in the layout that files have: no dictionaries, no views, at any depth."""
    kind = _flat_type(kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if any(test(kind) for test in _LISTS):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    return kind


def holds_the_same(kind: Any, as_: Any) -> bool:
    """Return whether two types are of the same values, but for how wide they are and how they are laid out."""
    same = (pa.types.is_signed_integer, pa.types.is_decimal)
    return any(test(kind) and test(as_) for test in same) or value_type(kind) == value_type(as_)


def is_narrower(kind: pa.DataType, than: pa.DataType) -> bool:
    """Return whether both are of whole numbers, the first of fewer bits.

    >>> is_narrower(pa.int32(), pa.int64()), is_narrower(pa.int64(), pa.int64()), is_narrower(pa.date32(), pa.int64())
    (True, False, False)
    """
    both = pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(than)
    return bool(both and kind.bit_width < than.bit_width)


def has_parts(kind: pa.DataType) -> bool:
    """Return whether a type is that of arrays, structs or maps."""
    return bool(pa.types.is_nested(kind))


def are_structs(*kinds: pa.DataType) -> bool:
    """Return whether all are of structs."""
    return all(pa.types.is_struct(kind) for kind in kinds)


def are_timestamps(*kinds: pa.DataType) -> bool:
    """Return whether all are of timestamps, with a zone or without."""
    return all(pa.types.is_timestamp(kind) for kind in kinds)


def are_decimals(*kinds: pa.DataType) -> bool:
    """Return whether all are of decimals."""
    return all(arrow_facts(kind) is DECIMAL for kind in kinds)


def are_whole(*kinds: pa.DataType) -> bool:
    """Return whether all are of whole numbers."""
    return all(arrow_facts(kind).is_whole for kind in kinds)


_TEXTS: Final[tuple[Callable[[Any], bool], ...]] = (pa.types.is_large_string, pa.types.is_string_view)
_BINARIES: Final[tuple[Callable[[Any], bool], ...]] = (pa.types.is_large_binary, pa.types.is_binary_view)
_LISTS: Final[tuple[Callable[[Any], bool], ...]] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
