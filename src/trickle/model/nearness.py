"""When two floating-point values count as one: they differ by at most one part in a billion.

A sum of doubles depends on the order of addition. If a row with such a value must be deleted and no stored row equals it,
the nearest row that is equal in all other columns is deleted. ``verify`` compares in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

RELATIVE: Final = 1e-9
ABSOLUTE: Final = 1e-12
"""Values that differ by no more than this are near, whatever their size."""


def is_near(a: Any, b: Any) -> bool:
    """Return whether two values are equal, except that floating-point numbers in them may differ a little.

    >>> is_near((1, 0.1 + 0.2), (1, 0.3)), is_near(1.0, 1.000001), is_near(float("nan"), float("nan"))
    (True, False, True)
    """
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_near(a[key], b[key]) for key in a)
    if _is_sequence(a) and _is_sequence(b):
        return len(a) == len(b) and all(is_near(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def distance(a: Any, b: Any) -> float:
    """Return the distance of two near values: the sum over the floating-point numbers in them."""
    if isinstance(a, float) and isinstance(b, float):
        return 0.0 if a == b or math.isnan(a) else abs(a - b)
    if _is_sequence(a) and _is_sequence(b):
        return sum(distance(x, y) for x, y in zip(a, b, strict=True))
    return 0.0


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
