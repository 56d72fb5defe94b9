"""Ranks within partitions, of rows in the driver: ROW_NUMBER, RANK and DENSE_RANK."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from trickle.algebra.expr import Call, Col, Opaque
from trickle.algebra.types import type_of
from trickle.compute.driver.expressions import Expressions, NotHereError, column_name
from trickle.compute.driver.groups import sort_keys
from trickle.model.types import facts_of

if TYPE_CHECKING:
    from trickle.algebra.plan import Window

_NUMBER, _RANK = "row_in_partition", "rank_in_partition"


def ranked_rows(plan: Window, rows: pl.DataFrame, expressions: Expressions) -> pl.DataFrame:
    """Return the rows with their ranks; equal in the order are rows that are equal in every key of it."""
    partition = []
    for expr in plan.partition:
        if not isinstance(expr, Col) or not facts_of(type_of(plan.child, expr.column)).is_compared:
            raise NotHereError
        partition.append(column_name(expr.column))
    keys = sort_keys(plan.order, plan.child, expressions)
    if not keys.columns:
        raise NotHereError
    ordered = keys.ranked(rows).sort(
        keys.columns, descending=keys.descending, nulls_last=keys.nulls_last, maintain_order=True
    )
    columns = list(dict.fromkeys((*partition, *keys.columns)))
    number = _within(pl.int_range(1, pl.len() + 1, dtype=pl.Int32), partition)
    ordered = ordered.with_columns(number.alias(_NUMBER))
    ordered = ordered.with_columns(pl.col(_NUMBER).min().over(columns).alias(_RANK))
    made = []
    for output in plan.functions:
        found = expressions.look_into(output.expr) if isinstance(output.expr, Opaque) else output.expr
        if not isinstance(found, Call) or found.name not in _FUNCTIONS:
            raise NotHereError
        made.append(_FUNCTIONS[found.name](partition).alias(column_name(output.column)))
    return ordered.with_columns(made).select(column_name(c) for c in plan.columns)


def _within(expr: pl.Expr, partition: Sequence[str]) -> pl.Expr:
    return expr.over(partition) if partition else expr


_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[str]], pl.Expr]]] = {
    "row_number": lambda _: pl.col(_NUMBER),
    "rank": lambda _: pl.col(_RANK),
    "dense_rank": lambda partition: _within((pl.col(_NUMBER) == pl.col(_RANK)).cum_sum(), partition).cast(pl.Int32),
}
