"""Joins of rows in the driver: by key through polars, by other conditions over pairs, as long as the pairs are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from trickle.algebra.expr import Col
from trickle.algebra.plan import Join, OuterJoin, SemiJoin
from trickle.algebra.types import type_of
from trickle.compute.driver.expressions import Expressions, NotHereError, column_name, run
from trickle.compute.driver.nested import is_numbered, numbers
from trickle.model.types import facts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEFT, _RIGHT = "left_row", "right_row"


def join_rows(join: Join, left: pl.DataFrame, right: pl.DataFrame, expressions: Expressions) -> pl.LazyFrame:
    """Return the rows of a join of any kind, to be computed with what is done to them."""
    names = [column_name(c) for c in join.columns]
    left, right = _with_numbers(join, left, right)
    if isinstance(join, SemiJoin):
        if join.keys and not join.residual and join.flag is None:
            how: Literal["semi", "anti"] = "semi" if join.kind == "semi" else "anti"
            return left.lazy().join(right.lazy(), how=how, **_keys(join, left, right)).select(names)
        numbered = left.with_row_index(_LEFT)
        is_met = pl.col(_LEFT).is_in(_met(join, numbered, right, expressions).implode())
        if join.flag is not None:
            return numbered.lazy().with_columns(is_met.alias(column_name(join.flag))).select(names)
        return numbered.lazy().filter(is_met if join.kind == "semi" else ~is_met).select(names)
    if not isinstance(join, OuterJoin):
        return _pairs(join, left, right, expressions).select(names)
    left, right = left.with_row_index(_LEFT), right.with_row_index(_RIGHT)
    pairs = run(_pairs(join, left, right, expressions))
    parts = [pairs]
    if join.kind in ("left", "full"):
        parts.append(_unmet(left, _LEFT, pairs))
    if join.kind in ("right", "full"):
        parts.append(_unmet(right, _RIGHT, pairs))
    return pl.concat(parts, how="diagonal").lazy().select(names)


def _unmet(rows: pl.DataFrame, number: str, pairs: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(~pl.col(number).is_in(pairs.get_column(number).implode()))


def _met(join: SemiJoin, left: pl.DataFrame, right: pl.DataFrame, expressions: Expressions) -> pl.Series:
    """Return the numbers of the left rows that meet a right row."""
    if join.residual:
        return run(_pairs(join, left, right, expressions).select(_LEFT)).get_column(_LEFT)
    if not join.keys:
        return left.get_column(_LEFT) if right.height else left.get_column(_LEFT).clear()
    return left.join(right, how="semi", **_keys(join, left, right)).get_column(_LEFT)


def _pairs(join: Join, left: pl.DataFrame, right: pl.DataFrame, expressions: Expressions) -> pl.LazyFrame:
    """Return the pairs that meet all conditions."""
    if join.keys:
        options = _keys(join, left, right)
        if left.height * right.height > expressions.options.driver_pairs:
            ours, theirs = options["left_on"], options["right_on"]
            fan_out = right.select(theirs).group_by(theirs).len("n")
            _check_few(left.select(ours).join(fan_out, **options).select(pl.col("n").sum()).item(), expressions)
        pairs = left.lazy().join(right.lazy(), how="inner", coalesce=False, **options)
    else:
        _check_few(left.height * right.height, expressions)
        pairs = left.lazy().join(right.lazy(), how="cross")
    return expressions.passing(join.residual, pairs)


def _check_few(pairs: int, expressions: Expressions) -> None:
    if pairs > expressions.options.driver_pairs:
        raise NotHereError


def _keys(join: Join, left: pl.DataFrame, right: pl.DataFrame) -> dict[str, Any]:
    """Translate the equalities of a join to polars, if they mean the same there."""
    ours = _names(join, "left")
    theirs = _names(join, "right")
    pairs = zip(ours, theirs, strict=True)
    if any(left[a].dtype != right[b].dtype for a, b in pairs) or len({k.null_safe for k in join.keys}) != 1:
        raise NotHereError
    return {"left_on": ours, "right_on": theirs, "nulls_equal": join.keys[0].null_safe}


def _with_numbers(join: Join, left: pl.DataFrame, right: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the numbers that stand in for keys that are arrays and structs."""
    for place, key in enumerate(join.keys):
        if not isinstance(key.left, Col) or not isinstance(key.right, Col):
            raise NotHereError
        if is_numbered(type_of(join.left, key.left.column)):
            ours, theirs = (
                left.get_column(column_name(key.left.column)),
                right.get_column(column_name(key.right.column)),
            )
            if ours.dtype != theirs.dtype:
                raise NotHereError
            ours, theirs = numbers(ours, theirs)
            left, right = left.with_columns(ours.alias(f"key{place}")), right.with_columns(theirs.alias(f"key{place}"))
    return left, right


def _names(join: Join, side: str) -> Sequence[str]:
    names = []
    for place, key in enumerate(join.keys):
        expr = getattr(key, side)
        type_ = type_of(getattr(join, side), expr.column) if isinstance(expr, Col) else ""
        if not isinstance(expr, Col) or not (facts_of(type_).is_compared or is_numbered(type_)):
            raise NotHereError
        names.append(f"key{place}" if is_numbered(type_) else column_name(expr.column))
    return names
