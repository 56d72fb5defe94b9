"""Facts about types, in one table: what Spark, Arrow, polars and the statistics of a log do with their values alike.

All code that computes, compares or looks up values outside of Spark reads this table. Spark handles a type that is not in
it, such as a collated string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    """The facts of a type.

    Attributes:
        name: As Spark's catalog writes it.
        json: As a stored schema writes it.
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
        is_counted: Values are whole numbers, or are held as such: as days since some day.
    """

    name: str
    json: str = ""
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
    is_counted: bool = False

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
        is_counted=True,
    )


_ROWS: Final = (
    _whole("tinyint", "byte", 3, 1),
    _whole("smallint", "short", 5, 2),
    _whole("int", "integer", 10, 4, is_ranged=True),
    _whole("bigint", "long", 20, 8, is_ranged=True),
    TypeFacts(
        name="string",
        json="string",
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
        is_compared=True,
        is_grouped=True,
        is_looked_up=True,
        is_computed=True,
        is_bitwise=True,
        is_held=True,
        is_partitioned=True,
        is_counted=True,
    ),
    TypeFacts(
        name="boolean",
        json="boolean",
        is_grouped=True,
        is_computed=True,
        is_bitwise=True,
        is_held=True,
        is_partitioned=True,
    ),
    TypeFacts(name="float", json="float", is_floating=True, is_held=True),
    TypeFacts(name="double", json="double", is_floating=True, is_computed=True, is_held=True),
    TypeFacts(name="timestamp", json="timestamp", is_grouped=True, is_held=True),
    TypeFacts(name="timestamp_ntz", json="timestamp_ntz", is_grouped=True, is_held=True),
    TypeFacts(name="binary", json="binary", is_held=True),
)

TYPES: Final[Mapping[str, TypeFacts]] = MappingProxyType({facts.name: facts for facts in _ROWS})
"""Every type without parameters, by its name in Spark."""

DECIMAL: Final = TypeFacts(
    name="decimal",
    json="decimal",
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

BIGINT: Final = TYPES["bigint"]
BOOLEAN: Final = TYPES["boolean"]
DATE: Final = TYPES["date"]
DOUBLE: Final = TYPES["double"]
STRING: Final = TYPES["string"]
"""Types that code asks for by name: what it does, it does with values of this type alone."""

WHOLE_NUMBERS: Final = tuple(facts for facts in _ROWS if facts.is_whole)
"""From the narrowest to the widest."""

_BY_JSON: Final = {facts.json: facts for facts in _ROWS}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def facts_of(name: str) -> TypeFacts:
    """Return the facts of a type by its name in Spark.

    >>> facts_of("bigint").is_summed, facts_of("decimal(10,2)").is_summed, facts_of("string collate UNICODE").is_compared
    (True, True, False)
    """
    if name.startswith("decimal("):
        return DECIMAL
    parts = parts_of(name)
    return TYPES.get(name, UNKNOWN) if parts is None else nested_facts(facts_of(part) for _, part in parts)


def nested_facts(parts: Iterable[TypeFacts]) -> TypeFacts:
    """Return the facts of arrays and structs, given those of their parts.

    Arrow and polars hold them, but neither compare nor group them: see ``trickle.tables.arrow.rows``.
    """
    some = list(parts)
    if not all(facts.is_held for facts in some):
        return UNKNOWN
    return TypeFacts(
        name="",
        is_floating=any(facts.is_floating for facts in some),
        is_grouped=all(facts.is_grouped for facts in some),
        is_held=True,
    )


def parts_of(name: str) -> list[tuple[str, str]] | None:
    """Return the names and types of the parts of an array or a struct; None for another type, or names of other signs.

    >>> parts_of("struct<a:array<int>,b:decimal(10,2)>"), parts_of("array<date>"), parts_of("int")
    ([('a', 'array<int>'), ('b', 'decimal(10,2)')], [('element', 'date')], None)
    """
    kind, _, inside = name.removesuffix(">").partition("<")
    if kind == "array":
        return [("element", inside)]
    if kind != "struct":
        return None
    ends = [at for at, sign in enumerate(inside) if sign == "," and not _depth(inside[:at])]
    fields = [inside[start + 1 : end].partition(":") for start, end in pairwise([-1, *ends, len(inside)])]
    return (
        [(field, type_) for field, _, type_ in fields] if all(re.fullmatch(r"\w+", f) for f, _, _ in fields) else None
    )


def _depth(text: str) -> int:
    return sum((sign in "<(") - (sign in ">)") for sign in text)


def leaves_of(name: str) -> list[str]:
    """Return the types that a type is made of in the end: of one without parts, itself.

    >>> leaves_of("array<struct<a:int,b:array<string>>>"), leaves_of("map<int,int>")
    (['int', 'string'], ['map<int,int>'])
    """
    parts = parts_of(name)
    return [name] if parts is None else [leaf for _, part in parts for leaf in leaves_of(part)]


def facts_of_json(name: str) -> TypeFacts:
    """Return the facts of a type by its name in a stored schema.

    >>> facts_of_json("long").name, facts_of_json("decimal(10,2)").name
    ('bigint', 'decimal')
    """
    return DECIMAL if decimal_digits(name) is not None else _BY_JSON.get(name, UNKNOWN)


def decimal_digits(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type, None for any other.

    >>> decimal_digits("decimal(15,2)")
    (15, 2)
    """
    found = _DECIMAL.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


_DOUBLE_DIGITS: Final = 15
"""Whole numbers of so many digits are exact as doubles."""


def is_widening(before: str, after: str) -> bool:
    """Return whether stored values of a type may be read as another, by the names of a stored schema.

    These are the changes that Delta's type widening allows.

    >>> is_widening("integer", "long"), is_widening("long", "integer"), is_widening("integer", "decimal(10,0)")
    (True, False, True)
    """
    old, new = facts_of_json(before), facts_of_json(after)
    if old.is_whole and new.is_whole:
        return old.digits < new.digits
    if new is DOUBLE:
        return old is TYPES["float"] or 0 < old.digits <= _DOUBLE_DIGITS
    if old is DATE:
        return new is TYPES["timestamp_ntz"]
    had, has = (old.digits, 0) if old.is_whole else decimal_digits(before), decimal_digits(after)
    return had is not None and has is not None and had[1] <= has[1] and had[0] - had[1] <= has[0] - has[1]


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

_NOT_EQUATED: Final = frozenset({"map", "variant"})
_COLLATION: Final = "collation"


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


def is_text(name: str) -> bool:
    """Return whether a type is that of texts, compared by their bytes or by a collation.

    >>> is_text("string collate UNICODE"), is_text("array<string>")
    (True, False)
    """
    return kinds_in(name) <= {STRING.name, _COLLATION}


def mentions_collation(name: str) -> bool:
    """Return whether a type is of texts that compare by a collation, or has a part that is.

    >>> mentions_collation("array<string collate UNICODE>"), mentions_collation("string")
    (True, False)
    """
    return _COLLATION in kinds_in(name)


def is_equated(name: str) -> bool:
    """Return whether Spark can tell if two values of a type are equal: not those of maps and variants.

    >>> is_equated("array<interval day to second>"), is_equated("struct<a:map<int,int>>")
    (True, False)
    """
    return kinds_in(name).isdisjoint(_NOT_EQUATED)
