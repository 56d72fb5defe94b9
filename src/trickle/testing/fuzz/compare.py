"""Compares bags of rows; doubles to the tolerance that ``verify`` documents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

#: What `verify` takes as equal.
RELATIVE = 1e-9
ABSOLUTE = 1e-12


def differences(found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    """Return the rows that are too many and those that are missing."""
    has, wants = Counter(map(_frozen, found)), Counter(map(_frozen, expected))
    extra, missing = list((has - wants).elements()), list((wants - has).elements())
    for row in list(extra):
        near = next((other for other in missing if _close(row, other)), None)
        if near is not None:
            extra.remove(row)
            missing.remove(near)
    return extra, missing


def _frozen(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(map(_frozen, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return value


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(a) is type(b) and bool(a == b)
