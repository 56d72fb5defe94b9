"""Computes in the driver what reads nothing but rows at hand: joins, unions and filters of some thousand rows.

A Spark job costs tenths of a second however few its rows are, most of it for planning, and a change plan over eight tables
has two dozen leaves. Here their joins take milliseconds, and Spark is handed one result. Only what means the same in both
is done here: equality and order of whole numbers, strings, dates and decimals, and the arithmetic of weights. Columns of
other types are carried along untouched; where they are looked into, the work is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.expr import WEIGHT, Call, Col, Column, Expr, KeyPair, Opaque
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    InnerJoin,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    Shared,
    Union,
    When,
)
from trickle.algebra.walk import rebuild
from trickle.catalyst.simple import is_compared
from trickle.refresh.driver_values import NotHereError, Simple, Values, column_name, largest

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ROWS: Final = 1_000_000
"""A join that gives more rows than this is left to the cluster."""

_KEYS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date"})

_GROUPED: Final = frozenset({"boolean", "timestamp", "timestamp_ntz"})
_BOUND: Final = 10**38
"""Sums of decimals stay below this."""

Table = Callable[[Plan], "pa.Table | None"]
"""Gives the rows of a leaf, None if they are not in the driver."""

Keep = Callable[[Plan, pa.Table], Plan]
"""Gives the leaf that stands for a plan whose rows are computed."""


class AtHand:
    """One walk over a plan."""

    def __init__(self, table: Table, simple: Simple, keep: Keep) -> None:
        """Start.

        Args:
            table: Gives the rows of a leaf.
            simple: Gives a condition in the engine's own expressions, where it has such a form.
            keep: Takes what was computed.
        """
        self._table = table
        self._values = Values(simple)
        self._keep = keep
        self._frames: dict[int, pl.DataFrame | None] = {}
        self._done: dict[int, Plan] = {}

    def visit(self, plan: Plan, *, whole: bool = True) -> Plan:
        """Put results in the place of the largest parts that can be computed here.

        A part without a join or a union saves Spark nothing, unless it is the whole.
        """
        done = self._done.get(id(plan))
        if done is None:
            done = self._done[id(plan)] = self._visit(plan, whole=whole)
        return done

    def _visit(self, plan: Plan, *, whole: bool) -> Plan:
        if _is_leaf(plan) or isinstance(plan, Loop):
            return plan
        if whole or _has_work(plan):
            with suppress(NotHereError):
                return self._keep(plan, _as_arrow(plan, self._rows(plan)))
        return rebuild(plan, tuple(self.visit(p, whole=False) for p in plan.inputs))

    # -- rows, under the columns' ids as names

    def _rows(self, plan: Plan) -> pl.DataFrame:
        if id(plan) not in self._frames:
            self._frames[id(plan)] = None
            try:
                self._frames[id(plan)] = self._compute(plan)
            except (pl.exceptions.PolarsError, pa.ArrowException) as error:
                raise NotHereError from error
        known = self._frames[id(plan)]
        if known is None:
            raise NotHereError
        return known

    def _compute(self, plan: Plan) -> pl.DataFrame:
        match plan:
            case _ if _is_leaf(plan):
                return self._leaf(plan)
            case Project():
                return self._project(plan, self._rows(plan.child))
            case Filter():
                return self._rows(plan.child).filter(self._values.condition(plan.condition))
            case InnerJoin(keys=keys) if keys:
                joined = _join(plan, self._rows(plan.left), self._rows(plan.right), "inner")
                conditions = [self._values.condition(r) for r in plan.residual]
                return joined.filter(conditions) if conditions else joined
            case SemiJoin(keys=keys, residual=()) if keys:
                return self._semi_join(plan)
            case OuterJoin(keys=keys, residual=()) if keys:
                return _join(plan, self._rows(plan.left), self._rows(plan.right), plan.kind)
            case Union():
                return self._union(plan)
            case Repeat():
                return _repeat(self._rows(plan.child))
            case When():
                return self._rows(plan.child)
            case Aggregate():
                return self._aggregate(plan, self._rows(plan.child))
        raise NotHereError

    def _leaf(self, plan: Plan) -> pl.DataFrame:
        table = self._table(plan)
        if table is None:
            raise NotHereError
        by_name = isinstance(plan, Scan)
        arrays = [table.column(c.name if by_name else i) for i, c in enumerate(plan.columns)]
        if not all(_is_carried(a.type) for a in arrays):
            raise NotHereError
        frame = pl.from_arrow(pa.table(arrays, names=[column_name(c) for c in plan.columns]))
        if not isinstance(frame, pl.DataFrame):
            raise NotHereError
        return frame

    def _semi_join(self, plan: SemiJoin) -> pl.DataFrame:
        left, right = self._rows(plan.left), self._rows(plan.right)
        if plan.flag is None:
            return _join(plan, left, right, plan.kind)
        numbered = left.with_row_index("n")
        found = _join(plan, numbered, right, "semi").get_column("n")
        flag = pl.col("n").is_in(found.implode()).alias(column_name(plan.flag))
        return numbered.with_columns(flag).select(column_name(c) for c in plan.columns)

    def _project(self, plan: Project, rows: pl.DataFrame) -> pl.DataFrame:
        made = [
            self._values.value(o.expr, rows, o.column.type).alias(column_name(o.column))
            for o in plan.outputs
            if not o.is_passthrough
        ]
        return rows.with_columns(made).select(column_name(c) for c in plan.columns)

    def _aggregate(self, plan: Aggregate, rows: pl.DataFrame) -> pl.DataFrame:
        """Sum numbers by group: what changes add to a state, a change netted, duplicates removed."""
        if not all(_is_group(plan, k) for k in plan.keys):
            raise NotHereError
        names = [f"k{i}" for i in range(len(plan.keys))]
        keys = {n: self._values.value(k, rows) for n, k in zip(names, plan.keys, strict=True)}
        sums: dict[str, Any] = {}
        chosen: list[str] = []
        for output in plan.outputs:
            match output.expr:
                case key if key in plan.keys:
                    chosen.append(names[plan.keys.index(key)])
                case Call("sum", (value,), distinct=False, where=where):
                    chosen.append(f"s{len(sums)}")
                    sums[chosen[-1]] = self._summed(value, where, rows)
                case _:
                    raise NotHereError
        columns = {**{n: k.to_arrow(compat_level=pl.CompatLevel.oldest()) for n, k in keys.items()}, **sums}
        table = pa.table(columns) if columns else None
        if table is None:
            raise NotHereError
        grouped = table.group_by(names, use_threads=False).aggregate([(n, "sum") for n in sums])
        grouped = grouped.rename_columns([c.removesuffix("_sum") for c in grouped.column_names])
        for n, values in sums.items():
            if getattr(values.type, "scale", None) == 0:
                # Whole numbers are summed as decimals, which do not wrap around.
                grouped = grouped.set_column(grouped.column_names.index(n), n, grouped.column(n).cast(pa.int64()))
        frame = pl.DataFrame(pl.from_arrow(grouped))
        return frame.select(pl.col(n).alias(column_name(o.column)) for n, o in zip(chosen, plan.outputs, strict=True))

    def _summed(self, value: Expr, where: Expr | None, rows: pl.DataFrame) -> Any:
        numbers = self._values.number(value, rows)
        if isinstance(numbers, pa.Scalar):
            numbers = pa.repeat(numbers, rows.height)
        if where is not None:
            numbers = pc.if_else(self._values.mask(where, rows), numbers, pa.scalar(None, numbers.type))
        if pa.types.is_integer(numbers.type):
            return numbers.cast(pa.decimal128(38, 0))
        if not pa.types.is_decimal(numbers.type) or numbers.type.scale == 0:
            raise NotHereError
        if largest(numbers) * rows.height >= _BOUND:
            raise NotHereError
        return numbers

    def _union(self, plan: Union) -> pl.DataFrame:
        names = [column_name(c) for c in plan.columns]
        frames = []
        for child in plan.children:
            rows = self._rows(child).select(column_name(c) for c in child.columns)
            frames.append(rows.rename(dict(zip(rows.columns, names, strict=True))))
        if any(f.dtypes != frames[0].dtypes for f in frames):
            raise NotHereError
        return pl.concat(frames)


# -- plans


def _is_leaf(plan: Plan) -> bool:
    return isinstance(plan, Shared | Iterate | LoopRef | Scan)


def _has_work(plan: Plan) -> bool:
    """Tell whether a part has a join or a union, its results at hand aside."""
    if _is_leaf(plan):
        return False
    return isinstance(plan, Join | Union) or any(_has_work(p) for p in plan.inputs)


def _type_of(plan: Plan, column: Column) -> str:
    """Give the type of a plan's column; a column of the engine's own has that of what it holds."""
    if column.type:
        return column.type
    match plan:
        case Project(outputs=outputs) | Aggregate(outputs=outputs):
            expr = next(o.expr for o in outputs if o.column.id == column.id)
            return _type_of(plan.inputs[0], expr.column) if isinstance(expr, Col) else ""
        case Union():
            place = plan.columns.index(column)
            types = {_type_of(c, c.columns[place]) for c in plan.children}
            return types.pop() if len(types) == 1 else ""
        case Scan() | LoopRef():
            return ""
    return next((_type_of(p, column) for p in plan.inputs if column.id in p.ids), "")


def _is_group(plan: Aggregate, key: Expr) -> bool:
    """Tell whether values of a key fall into the same groups here as in Spark."""
    if isinstance(key, Col):
        type_ = _type_of(plan.child, key.column)
        return is_compared(type_) or type_ in _GROUPED
    return isinstance(key, Opaque)


def _check_keys(join: Join) -> None:
    for key in join.keys:
        for side, expr in ((join.left, key.left), (join.right, key.right)):
            if not isinstance(expr, Col) or _type_of(side, expr.column) not in _KEYS:
                raise NotHereError
    if len({k.null_safe for k in join.keys}) != 1:
        raise NotHereError


def _repeat(rows: pl.DataFrame) -> pl.DataFrame:
    weight = pl.col(column_name(WEIGHT))
    signs = rows.select(weight).to_series()
    if signs.is_empty() or int(signs.abs().max() or 0) <= 1:  # type: ignore[arg-type]
        return rows
    copies = rows.with_columns(weight.sign(), pl.int_ranges(0, weight.abs()).alias("copy"))
    return copies.explode("copy").drop("copy")


def _names(keys: Sequence[KeyPair], side: str) -> list[str]:
    return [column_name(getattr(k, side).column) for k in keys]


def _join(join: Join, left: pl.DataFrame, right: pl.DataFrame, how: str) -> pl.DataFrame:
    _check_keys(join)
    ours, theirs = _names(join.keys, "left"), _names(join.keys, "right")
    if left.select(ours).dtypes != right.select(theirs).dtypes:
        raise NotHereError
    null_safe = join.keys[0].null_safe
    options: dict[str, Any] = {"left_on": ours, "right_on": theirs, "nulls_equal": null_safe}
    if how in ("semi", "anti"):
        return left.join(right, how=how, **options)  # type: ignore[arg-type]
    partners = right.select(theirs).group_by(theirs).len("n")
    pairs = left.select(ours).join(partners, **options).select(pl.col("n").sum()).item()
    if pairs > MOST_ROWS:
        raise NotHereError
    joined = left.join(right, how=how, coalesce=False, **options)  # type: ignore[arg-type]
    return joined.select(column_name(c) for c in join.columns)


# -- Arrow


def _is_carried(type_: pa.DataType) -> bool:
    """Tell whether values of a type come back from here as they were."""
    tests = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_floating,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_date32,
        pa.types.is_decimal128,
        pa.types.is_timestamp,
    )
    return any(test(type_) for test in tests)


def _as_arrow(plan: Plan, rows: pl.DataFrame) -> pa.Table:
    """Give rows under the columns' names; a name that stands twice gets the id."""
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    names: list[str] = []
    for column in plan.columns:
        names.append(f"{column.name}{column.id}" if column.name in names else column.name)
    types = (plain.get(t, t) for t in table.schema.types)
    return table.rename_columns(names).cast(pa.schema(list(zip(names, types, strict=True))))
