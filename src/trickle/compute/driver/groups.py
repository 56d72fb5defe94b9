"""Groups and ranks of rows in the driver: counts, exact sums, averages, minima and maxima, the first k."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.expr import Call, Cast, Col, Column, Expr, Lit, Opaque, new_column
from trickle.algebra.types import type_of
from trickle.compute.driver.expressions import WHOLE_DOUBLES, Expressions, NotHereError, column_name, largest
from trickle.compute.driver.nested import is_numbered, numbers
from trickle.model.types import facts_of
from trickle.tables.arrow.rows import row_bits
from trickle.tables.arrow.types import are_decimals, are_whole, arrow_facts, has_parts

if TYPE_CHECKING:
    from trickle.algebra.plan import Aggregate, Plan, TopK

_PLACE: Final = "__trickle_row"

_BOUND: Final = 10**38
"""Sums of decimals stay below this."""


def group_rows(plan: Aggregate, rows: pl.DataFrame, expressions: Expressions) -> pl.DataFrame:
    """Return one row for each group, or one for all rows."""
    if not all(_is_group(plan, k) for k in plan.keys):
        raise NotHereError
    names = [column_name(k.column) if isinstance(k, Col) else f"k{i}" for i, k in enumerate(plan.keys)]
    columns: dict[str, Any] = {
        n: expressions.value(k, rows).to_arrow(compat_level=pl.CompatLevel.oldest())
        for n, k in zip(names, plan.keys, strict=True)
    }
    held = {name: values for name, values in columns.items() if has_parts(values.type)}
    columns |= {name: pa.array(row_bits(pa.table({name: values}))) for name, values in held.items()}
    found = _Found(expressions, rows)
    if held:
        columns[_PLACE] = pa.array(range(rows.height), pa.int64())
        found.functions.append((_PLACE, "min"))
    outputs = [None if o.expr in plan.keys else found.without_functions(o.expr) for o in plan.outputs]
    columns |= found.columns
    if not columns or len(set(names)) < len(names):
        raise NotHereError
    grouped = pa.table(columns).group_by(names, use_threads=False).aggregate(found.functions)
    grouped = grouped.rename_columns([*names, *([_PLACE] if held else []), *found.columns])
    for name, values in held.items():  # of each group the value of its first row
        grouped = grouped.set_column(names.index(name), name, values.take(grouped[_PLACE].combine_chunks()))
    frame = pl.DataFrame(pl.from_arrow(grouped)).with_columns(pl.col(n).cast(pl.Int64) for n in found.whole_sums)
    made = []
    for output, expr in zip(plan.outputs, outputs, strict=True):
        if expr is None:
            series = frame.get_column(names[plan.keys.index(output.expr)])
        else:
            series = expressions.value(expr, frame, output.column.type)
        made.append(series.alias(column_name(output.column)))
    return pl.DataFrame(made)


def _is_group(plan: Aggregate, key: Expr) -> bool:
    """Return whether values of a key fall into the same groups here as in Spark."""
    if isinstance(key, Col):
        type_ = type_of(plan.child, key.column)
        return facts_of(type_).is_grouped
    return isinstance(key, Opaque)


class _Found:
    """The aggregate functions found in the outputs of an aggregate: what each is computed of."""

    def __init__(self, expressions: Expressions, rows: pl.DataFrame) -> None:
        self._expressions = expressions
        self._rows = rows
        self.columns: dict[str, Any] = {}
        self.functions: list[tuple[str, str]] = []
        self.whole_sums: list[str] = []

    def without_functions(self, expr: Expr) -> Expr:
        """Return an output over the functions' results, which stand in new columns."""
        match expr:
            case Opaque():
                return self.without_functions(self._expressions.look_into(expr))
            case Call("avg", (value,), where=where):
                return self._average(value, where)
            case Call(name, args, distinct=distinct, where=where) if name in _FUNCTIONS:
                (value,) = args
                return Col(self._add(f"{name} distinct" if distinct else name, self._numbers(value, where)))
            case Call(name, args, distinct=False, where=None):
                return Call(name, tuple(self.without_functions(a) for a in args))
            case Cast(inner, like):
                return Cast(self.without_functions(inner), like)
            case Col() | Lit():
                return expr
        raise NotHereError

    def _average(self, value: Expr, where: Expr | None) -> Expr:
        """Whole numbers are averaged as doubles, which is exact as long as their sum is."""
        numbers = self._numbers(value, where)
        if not are_whole(numbers.type):
            raise NotHereError
        if largest(numbers.cast(pa.decimal128(20, 0))) * self._rows.height >= WHOLE_DOUBLES:
            raise NotHereError
        double = Column(0, "", "double")
        total, count = self._add("sum", numbers), self._add("count", numbers)
        return Call("/", (Cast(Col(total), double), Cast(Col(count), double)))

    def _numbers(self, value: Expr, where: Expr | None) -> Any:
        numbers = self._expressions.number(value, self._rows)
        if isinstance(numbers, pa.Scalar):
            numbers = pa.repeat(numbers, self._rows.height)
        if where is None:
            return numbers
        return pc.if_else(self._expressions.mask(where, self._rows), numbers, pa.scalar(None, numbers.type))

    def _add(self, function: str, numbers: Any) -> Column:
        column = new_column("agg", "bigint" if function.startswith("count") else "")
        name = column_name(column)
        if function == "sum":
            numbers = self._summed(name, numbers)
        elif not _FUNCTIONS[function](numbers.type):
            raise NotHereError
        self.columns[name] = numbers
        self.functions.append((name, function.replace(" ", "_")))
        return column

    def _summed(self, name: str, numbers: Any) -> Any:
        if are_whole(numbers.type):
            # Whole numbers are summed as decimals, which do not wrap around.
            self.whole_sums.append(name)
            return numbers.cast(pa.decimal128(38, 0))
        if not are_decimals(numbers.type) or largest(numbers) * self._rows.height >= _BOUND:
            raise NotHereError
        return numbers


def _is_ordered(type_: pa.DataType) -> bool:
    return arrow_facts(type_).is_compared


_FUNCTIONS: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "sum": lambda type_: arrow_facts(type_).is_summed,
    "count": lambda _: True,
    "count distinct": _is_ordered,
    "min": _is_ordered,
    "max": _is_ordered,
}


def first_rows(plan: TopK, rows: pl.DataFrame, expressions: Expressions) -> pl.DataFrame:
    """Return the first rows in a total order."""
    keys = sort_keys(plan.order, plan.child, expressions)
    ordered = keys.ranked(rows).sort(keys.columns, descending=keys.descending, nulls_last=keys.nulls_last)
    return ordered.slice(plan.offset, plan.limit).select(rows.columns)


@dataclass(slots=True)
class SortKeys:
    """The columns of an order, and for each of them whether it descends and whether NULLs come last."""

    columns: list[str] = field(default_factory=list)
    descending: list[bool] = field(default_factory=list)
    nulls_last: list[bool] = field(default_factory=list)
    nested: dict[str, str] = field(default_factory=dict)

    def ranked(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with the ranks of arrays and structs, which polars orders otherwise than Spark, in further columns."""
        return rows.with_columns(numbers(rows.get_column(name))[0].alias(of) for of, name in self.nested.items())


def sort_keys(order: Sequence[Expr], child: Plan, expressions: Expressions) -> SortKeys:
    """Translate an order to polars, if it means the same there; a column that stands in it twice counts once."""
    keys = SortKeys()
    for expr in order:
        value, down, last = _order(expr, expressions)
        type_ = type_of(child, value.column) if isinstance(value, Col) else ""
        if not isinstance(value, Col) or not (facts_of(type_).is_compared or is_numbered(type_)):
            raise NotHereError
        name = column_name(value.column)
        if is_numbered(type_):
            name, of = f"{name}_rank", name
            keys.nested[name] = of
        if name not in keys.columns:
            keys.columns.append(name)
            keys.descending.append(down)
            keys.nulls_last.append(last)
    return keys


def _order(expr: Expr, expressions: Expressions) -> tuple[Expr, bool, bool]:
    if isinstance(expr, Opaque):
        expr = expressions.look_into(expr)
    match expr:
        case Call("order", (value, Lit(bool() as descending), Lit(bool() as nulls_last))):
            return value, descending, nulls_last
    return expr, False, False
