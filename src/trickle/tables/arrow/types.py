"""Types that Arrow and Spark hold in the same way: the name of Spark's to Arrow's, or nothing.

What is not in the table goes through Spark: nested values, variants, strings that compare by a collation.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trickle.algebra.types import decimal_digits
from trickle.model.types import DECIMAL, TYPES, UNKNOWN, TypeFacts

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

    >>> arrow_type("decimal(10,2)"), arrow_type("array<int>")
    (Decimal128Type(decimal128(10, 2)), None)
    """
    digits = decimal_digits(name)
    return ARROW_TYPES.get(name) if digits is None else pa.decimal128(*digits)


def arrow_facts(type_: pa.DataType) -> TypeFacts:
    """Return what is known of the Spark type that an Arrow type stands for, in whatever layout it is held."""
    for test, name in _NAMES:
        if test(type_):
            return DECIMAL if name == DECIMAL.name else TYPES[name]
    return UNKNOWN


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
