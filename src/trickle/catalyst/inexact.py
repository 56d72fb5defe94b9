"""Finds aggregate functions whose last digits may differ when they are computed again from the same rows.

Floating-point addition is not associative, and Spark adds in the order in which rows happen to arrive. Such a value
may differ when computed again; it can only be stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.catalyst.jvm import items
from trickle.model.types import mentions_floating

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trickle.catalyst.jvm import Jvm

_ORDER_FREE: Final = frozenset(
    {
        *("Count", "Min", "Max", "First", "Last", "AnyValue", "MaxBy", "MinBy", "Mode", "ListAgg"),
        *("CollectList", "CollectSet", "Percentile", "PercentileCont", "PercentileDisc", "Median"),
        *("HyperLogLogPlusPlus", "CountMinSketchAgg", "BitAndAgg", "BitOrAgg", "BitXorAgg", "CollectTopK"),
    }
)
"""Functions whose result does not depend on the order of their rows, once the order of results is fixed."""

_BY_CHANCE: Final = frozenset({"ApproximatePercentile", "HistogramNumeric"})
"""Functions whose result depends on the order of rows of any type."""


def is_inexact(jvm: Jvm, exprs: Iterable[Any]) -> bool:
    """Return whether one of some expressions has such a function."""
    return any(_has_inexact(jvm, e) for e in exprs if jvm.contains(e, "AGGREGATE_EXPRESSION"))


def _has_inexact(jvm: Jvm, expr: Any) -> bool:
    if jvm.name(expr) != "AggregateExpression":
        return any(_has_inexact(jvm, c) for c in items(expr.children()))
    function = expr.aggregateFunction()
    name = jvm.name(function)
    if name in _ORDER_FREE:
        return False
    types = [function.dataType(), *(c.dataType() for c in items(function.children()))]
    return name in _BY_CHANCE or any(mentions_floating(str(t.catalogString())) for t in types)
