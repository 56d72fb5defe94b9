"""Runs one case: after every round the maintained table must equal a recompute.

Everything the corpus needs of the engine goes through ``maintain``, and nothing else does.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from .rounds import generate
from .tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from .case import Case


def bag(rows: Iterable[Sequence[Any]], *, digits: int | None = None) -> Counter[tuple[Any, ...]]:
    """Count rows by value, in a form where NaN equals itself, and lists and maps can be counted."""
    return Counter(tuple(_comparable(value, digits) for value in row) for row in rows)


def _comparable(value: Any, digits: int | None) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if digits is not None and math.isfinite(value):
            return float(f"{value:.{digits}g}")
        case list() | tuple():
            return tuple(_comparable(part, digits) for part in value)
        case dict():
            return frozenset((_comparable(k, digits), _comparable(v, digits)) for k, v in value.items())
        case bytearray():
            return bytes(value)
        case _:
            return value


def differences(
    found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]], *, approximate: bool
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]] | None:
    """Give the rows that are too many and those that are missing, as bags; None if there are neither."""
    digits = 9 if approximate else None
    has, wants = bag(found, digits=digits), bag(expected, digits=digits)
    too_many, missing = has - wants, wants - has
    return (too_many, missing) if too_many or missing else None
