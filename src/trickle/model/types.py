"""Facts about types, in one table: what Spark, Arrow, polars and the statistics of a log do with their values alike.

All code that computes, compares or looks up values outside of Spark reads this table. Spark handles a type that is not in
it, such as a collated string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    """The facts of a type.

    Attributes:
        name: As Spark's catalog writes it.
        json: As a stored schema writes it.
        catalyst: The class of Spark's type.
        digits: Of whole numbers, the decimal digits that hold them all; 0 for any other type.
        bytes: Of whole numbers, their width.
        is_floating: Values are sums in some order: equal ones may differ in their last digits, in sign of zero, in NaN.
        is_compared: Values are equal, and ordered, in Arrow and polars as in Spark.
        is_grouped: Values that are equal to Spark make one group in Arrow and polars.
        is_looked_up: Rows are found by such values in files as by Spark; a type's values in files are then of that type.
        is_summed: Sums are exact, or seen to overflow.
        is_computed: The driver has constants and casts of it.
        is_ranged: The least and greatest of some values may bound a scan, as constants.
        is_bitwise: Values are equal to polars exactly when they are the same to the bit.
        is_held: Values come back from polars as they went there.
        is_bounded: A log's statistics, which are JSON, hold the minimum and the maximum exactly.
        is_partitioned: Arrow reads values from the text of a partition as Spark does.
    """

    name: str
    json: str = ""
    catalyst: str = ""
    digits: int = 0
    bytes: int = 0
    is_floating: bool = False
    is_compared: bool = False
    is_grouped: bool = False
    is_looked_up: bool = False
    is_summed: bool = False
    is_computed: bool = False
    is_ranged: bool = False
    is_bitwise: bool = False
    is_held: bool = False
    is_bounded: bool = False
    is_partitioned: bool = False

    @property
    def is_exact(self) -> bool:
        """True if a value computed twice is the same."""
        return self.name != "" and not self.is_floating

    @property
    def is_whole(self) -> bool:
        """True for integers."""
        return self.digits > 0


def _whole(name: str, json: str, digits: int, width: int, *, is_ranged: bool = False) -> TypeFacts:
    return TypeFacts(
        name=name,
        json=json,
        catalyst=f"{json.capitalize()}Type$",
        digits=digits,
        bytes=width,
        is_compared=True,
        is_grouped=True,
        is_looked_up=True,
        is_summed=True,
        is_computed=True,
        is_ranged=is_ranged,
        is_bitwise=True,
        is_held=True,
        is_bounded=True,
        is_partitioned=True,
    )


_ROWS: Final = (
    _whole("tinyint", "byte", 3, 1),
    _whole("smallint", "short", 5, 2),
    _whole("int", "integer", 10, 4, is_ranged=True),
    _whole("bigint", "long", 20, 8, is_ranged=True),
    TypeFacts(
        name="string",
        json="string",
        catalyst="StringType$",
        is_compared=True,
        is_grouped=True,
        is_looked_up=True,
        is_computed=True,
        is_ranged=True,
        is_bitwise=True,
        is_held=True,
        is_partitioned=True,
    ),
    TypeFacts(
        name="date",
        json="date",
        catalyst="DateType$",
        is_compared=True,
        is_grouped=True,
        is_looked_up=True,
        is_computed=True,
        is_bitwise=True,
        is_held=True,
        is_partitioned=True,
    ),
    TypeFacts(
        name="boolean",
        json="boolean",
        catalyst="BooleanType$",
        is_grouped=True,
        is_computed=True,
        is_bitwise=True,
        is_held=True,
        is_partitioned=True,
    ),
    TypeFacts(name="float", json="float", catalyst="FloatType$", is_floating=True, is_held=True),
    TypeFacts(name="double", json="double", catalyst="DoubleType$", is_floating=True, is_computed=True, is_held=True),
    TypeFacts(name="timestamp", json="timestamp", catalyst="TimestampType$", is_grouped=True, is_held=True),
    TypeFacts(name="timestamp_ntz", json="timestamp_ntz", catalyst="TimestampNTZType$", is_grouped=True, is_held=True),
    TypeFacts(name="binary", json="binary", catalyst="BinaryType$", is_held=True),
)

TYPES: Final[Mapping[str, TypeFacts]] = MappingProxyType({facts.name: facts for facts in _ROWS})
"""Every type without parameters, by its name in Spark."""

DECIMAL: Final = TypeFacts(
    name="decimal",
    json="decimal",
    catalyst="DecimalType",
    is_compared=True,
    is_grouped=True,
    is_summed=True,
    is_computed=True,
    is_bitwise=True,
    is_held=True,
    is_partitioned=True,
)
"""Decimals of any precision and scale."""

UNKNOWN: Final = TypeFacts(name="")
"""Any type that only Spark knows."""

WHOLE_NUMBERS: Final = tuple(facts for facts in _ROWS if facts.is_whole)
"""From the narrowest to the widest."""


def facts_of(name: str) -> TypeFacts:
    """Return the facts of a type by its name in Spark.

    >>> facts_of("bigint").is_summed, facts_of("decimal(10,2)").is_summed, facts_of("string collate UNICODE").is_compared
    (True, True, False)
    """
    if name.startswith("decimal("):
        return DECIMAL
    return TYPES.get(name, UNKNOWN)


NOT_STORED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "map": ("rows with maps cannot be compared", "Turn it into an array of entries with map_entries()."),
        "variant": (
            "rows with variants cannot be compared",
            "Extract fields with variant_get(), or cast it to a string.",
        ),
        "void": ("the type of NULL is not known", "Give it a type: CAST(NULL AS …)."),
        "interval": ("tables hold no intervals", "Store it as a number or a string."),
        "time": ("tables hold no times of day", "Store it as a string: CAST(… AS STRING)."),
        "collation": ("tables hold no texts with a collation", "Show it with COLLATE UTF8_BINARY."),
        "udt": ("user-defined types cannot be compared", "Convert it to a plain type."),
    }
)
"""The kinds of type that no result or state table can have: why, and what to do instead."""


def kinds_in(name: str) -> frozenset[str]:
    """Return the kinds of type that a type is made of, by its name in Spark.

    The names of fields are not among them, unless one has a comma in it: then what follows counts, but nothing is missed.

    >>> sorted(kinds_in("struct<time:array<float>,c:string collate UNICODE>")), sorted(kinds_in("interval day to second"))
    (['array', 'collation', 'float', 'struct'], ['interval'])
    """
    return frozenset(kind_of(word.rpartition(":")[2]) for word in re.split(r"[<>,]", name)) - {""}


def kind_of(word: str) -> str:
    """Return the kind of a type without parts.

    >>> kind_of("decimal(10"), kind_of("time(6)"), kind_of("interval year"), kind_of("string collate UNICODE")
    ('decimal', 'time', 'interval', 'collation')
    """
    if " collate " in word:
        return "collation"
    return "interval" if "interval" in word else word.partition("(")[0].strip()


def is_stored(name: str) -> bool:
    """Return whether a table can hold values of a type, and rows with them can be compared.

    >>> is_stored("array<bigint>"), is_stored("array<void>")
    (True, False)
    """
    return kinds_in(name).isdisjoint(NOT_STORED)


def mentions_floating(name: str) -> bool:
    """Return whether a type is floating, or has a part that is.

    >>> mentions_floating("array<struct<x:float>>"), mentions_floating("struct<double:bigint>")
    (True, False)
    """
    return any(facts_of(kind).is_floating for kind in kinds_in(name))
