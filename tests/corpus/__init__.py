"""The corpus: one titled case per construct of Spark SQL, by family."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from . import (
    aggregate_functions,
    aggregates,
    composition,
    dataframes,
    doubles,
    generators,
    group_functions,
    joins,
    lateral,
    recursion,
    refused,
    set_operations,
    subqueries,
    top_k,
    user_aggregates,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .case import Case

FAMILIES: Final[Mapping[str, tuple[Case, ...]]] = MappingProxyType(
    {
        "LATERAL and generators": (*lateral.CASES, *generators.CASES),
        "Aggregates": (*aggregate_functions.CASES, *aggregates.CASES, *user_aggregates.CASES),
        "Windows": windows.CASES,
        "Subqueries": subqueries.CASES,
        "Joins": joins.CASES,
        "Set operations": set_operations.CASES,
        "Top-k": top_k.CASES,
        "Recursion": recursion.CASES,
        "Composition": (*composition.CASES, *dataframes.CASES, *group_functions.CASES),
        "Sums of doubles": doubles.CASES,
        "Refused": refused.CASES,
    }
)

ALL: Final[tuple[Case, ...]] = tuple(case for cases in FAMILIES.values() for case in cases)
MAINTAINED: Final[tuple[Case, ...]] = tuple(case for case in ALL if case.refused is None)
REFUSED: Final[tuple[Case, ...]] = tuple(case for case in ALL if case.refused is not None)


def every(nth: int, first: int = 0) -> tuple[Case, ...]:
    """Return every nth case of each family: some of each, to be run in minutes."""
    return tuple(case for cases in FAMILIES.values() for case in cases[first::nth] if case.refused is None)
