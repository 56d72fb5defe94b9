"""Driver-side execution of plans over rows in the driver, some thousand of them.

A Spark job costs tenths of a second however few its rows are, most of it for planning, and a change plan over eight tables
has two dozen leaves. Here their joins take milliseconds, and Spark is handed one result. Only what means the same in both
is done here: equality and order of whole numbers, strings, dates and decimals, and the arithmetic of weights. Columns of
other types pass through untouched; where they are read, the work is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import polars as pl
import pyarrow as pa

from trickle.algebra.expr import WEIGHT, Col, Column
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
    TopK,
    Union,
    When,
    Window,
)
from trickle.algebra.types import type_of
from trickle.algebra.walk import rebuild
from trickle.compute.driver.expressions import Expressions, NotHereError, column_name, run
from trickle.compute.driver.groups import first_rows, group_rows
from trickle.compute.driver.joins import join_rows
from trickle.compute.driver.windows import ranked_rows
from trickle.model.options import DEFAULT, Options
from trickle.model.types import decimal_digits
from trickle.tables.arrow.types import arrow_facts, polars_digits, value_type

if TYPE_CHECKING:
    from trickle.algebra.expr import Expr, Opaque


class DriverLeaves(Protocol):
    """What driver-side execution asks of whoever knows the leaves of a plan."""

    def driver_rows(self, leaf: Plan) -> pa.Table | pl.DataFrame | None:
        """Return the rows of a leaf, None if they are not in the driver."""
        ...

    def driver_form(self, expr: Opaque) -> Expr | None:
        """Return a user's expression in the engine's own, None if it has no such form."""
        ...

    def evaluate(self, exprs: Sequence[Opaque], rows: pl.DataFrame) -> list[pl.Series] | None:
        """Return the values of expressions that have no form here; None if only a job can tell."""
        ...

    def keep_computed(self, plan: Plan, made: pl.DataFrame) -> Plan:
        """Return the leaf that stands for a plan whose rows are computed, under the columns' ids as names."""
        ...


class DriverExecution:
    """One walk over a plan."""

    def __init__(self, leaves: DriverLeaves, options: Options = DEFAULT) -> None:
        """Start; by one of the options some operators are left to Spark."""
        self._leaves = leaves
        self._expressions = Expressions(leaves.driver_form, options, leaves.evaluate)
        self._spark_share = options.spark_share
        self._asked = 0
        self._frames: dict[int, pl.DataFrame | None] = {}
        self._columns: dict[tuple[int, int], tuple[pa.Table, pl.Series]] = {}
        # The memos are keyed by identity; every plan is kept with its answer, so that no later one gets its id.
        self._done: dict[int, tuple[Plan, Plan]] = {}

    def visit(self, plan: Plan, *, whole: bool = True) -> Plan:
        """Replace the largest parts that the driver can compute by their results.

        A part without a join or a union saves Spark nothing, unless it is the whole.
        """
        if id(plan) not in self._done:
            self._done[id(plan)] = plan, self._visit(plan, whole=whole)
        return self._done[id(plan)][1]

    def _visit(self, plan: Plan, *, whole: bool) -> Plan:
        if _is_leaf(plan) or isinstance(plan, Loop):
            return plan
        if (whole or _has_work(plan)) and not self._is_left():
            with suppress(NotHereError):
                return self._leaves.keep_computed(plan, _with_its_types(plan, self._rows(plan)))
        return rebuild(plan, tuple(self.visit(p, whole=False) for p in plan.inputs))

    def _is_left(self) -> bool:
        """Return whether the next operator is left to Spark though it could be computed here: the first and every n-th."""
        self._asked += 1
        return self._spark_share > 0 and (self._asked - 1) % self._spark_share == 0

    # -- rows, under the columns' ids as names

    def _rows(self, plan: Plan) -> pl.DataFrame:
        if id(plan) not in self._frames:
            self._frames[id(plan)] = None
            try:
                self._frames[id(plan)] = self._leaf(plan) if _is_leaf(plan) else run(self._planned(plan))
            except (pl.exceptions.PolarsError, pa.ArrowException) as error:
                raise NotHereError from error
        known = self._frames[id(plan)]
        if known is None:
            raise NotHereError
        return known

    def _planned(self, plan: Plan) -> pl.LazyFrame:
        """Return rows to be computed together with what is done to them: a run costs more than most of what it does."""
        known = self._frames.get(id(plan))
        if known is not None:
            return known.lazy()
        # A frame without columns would not know how many rows it has.
        if not plan.columns:
            raise NotHereError
        if _is_leaf(plan):
            return self._rows(plan).lazy()
        operator = self.OPERATORS.get(type(plan))
        if operator is None:
            raise NotHereError
        return operator(self, plan)

    def _filter(self, plan: Filter) -> pl.LazyFrame:
        return self._expressions.passing((plan.condition,), self._planned(plan.child))

    def _join(self, plan: Join) -> pl.LazyFrame:
        return join_rows(plan, self._rows(plan.left), self._rows(plan.right), self._expressions)

    def _repeat(self, plan: Repeat) -> pl.LazyFrame:
        return _repeat(self._planned(plan.child))

    def _when(self, plan: When) -> pl.LazyFrame:
        return self._planned(plan.child)

    def _aggregate(self, plan: Aggregate) -> pl.LazyFrame:
        return group_rows(plan, self._rows(plan.child), self._expressions).lazy()

    def _top_k(self, plan: TopK) -> pl.LazyFrame:
        return first_rows(plan, self._rows(plan.child), self._expressions).lazy()

    def _window(self, plan: Window) -> pl.LazyFrame:
        return ranked_rows(plan, self._rows(plan.child), self._expressions).lazy()

    def _leaf(self, plan: Plan) -> pl.DataFrame:
        # A frame without columns would not know how many rows it has.
        rows = self._leaves.driver_rows(plan) if plan.columns else None
        if rows is None:
            raise NotHereError
        names = [column_name(c) for c in plan.columns]
        if isinstance(rows, pl.DataFrame):
            pairs = zip(rows.get_columns(), names, strict=True)
            return rows if rows.columns == names else pl.DataFrame([values.alias(name) for values, name in pairs])
        stored = rows.column_names if isinstance(plan, Scan) else None
        places = [i if stored is None else stored.index(c.name) for i, c in enumerate(plan.columns)]
        return pl.DataFrame([self._series(rows, place).alias(name) for place, name in zip(places, names, strict=True)])

    def _series(self, table: pa.Table, place: int) -> pl.Series:
        """Return a column of a leaf; several leaves may be of one table."""
        if (id(table), place) not in self._columns:
            values = table.column(place)
            if not _is_held(values.type):
                raise NotHereError
            self._columns[id(table), place] = table, pl.Series(pl.from_arrow(values))
        return self._columns[id(table), place][1]

    def _project(self, plan: Project) -> pl.LazyFrame:
        names = [column_name(c) for c in plan.columns]
        made = [self._expressions.column(o.expr) for o in plan.outputs]
        known = [m.alias(name) for m, name in zip(made, names, strict=True) if m is not None]
        # Constants alone would be one row.
        if len(known) == len(names) and any(isinstance(o.expr, Col) for o in plan.outputs):
            return self._planned(plan.child).select(known)
        rows = self._rows(plan.child)
        self._expressions.evaluate([o.expr for o in plan.outputs], rows)
        values = (self._expressions.value(o.expr, rows, o.column.type) for o in plan.outputs)
        return pl.DataFrame([value.alias(name) for value, name in zip(values, names, strict=True)]).lazy()

    def _union(self, plan: Union) -> pl.LazyFrame:
        names = [column_name(c) for c in plan.columns]
        frames = []
        for child in plan.children:
            rows, pairs = self._rows(child), zip(child.columns, names, strict=True)
            frames.append(pl.DataFrame([rows.get_column(column_name(c)).alias(name) for c, name in pairs]))
        if any(f.dtypes != frames[0].dtypes for f in frames):
            raise NotHereError
        return pl.concat(frames).lazy()

    OPERATORS: Final[Mapping[type[Plan], Callable[..., pl.LazyFrame]]] = {
        Project: _project,
        Filter: _filter,
        InnerJoin: _join,
        OuterJoin: _join,
        SemiJoin: _join,
        Union: _union,
        Repeat: _repeat,
        When: _when,
        Aggregate: _aggregate,
        TopK: _top_k,
        Window: _window,
    }


# -- plans


def _is_leaf(plan: Plan) -> bool:
    return isinstance(plan, Shared | Iterate | LoopRef | Scan)


def _has_work(plan: Plan) -> bool:
    """Return whether a part has a join or a union, its leaves aside."""
    if _is_leaf(plan):
        return False
    return isinstance(plan, Join | Union) or any(_has_work(p) for p in plan.inputs)


def _repeat(rows: pl.LazyFrame) -> pl.LazyFrame:
    weight = pl.col(column_name(WEIGHT))
    copies = rows.with_columns(weight.sign(), pl.int_ranges(0, weight.abs()).alias("copy"))
    return copies.filter(weight != 0).explode("copy").drop("copy")


# -- Arrow


def _is_held(type_: pa.DataType) -> bool:
    """Return whether values of a type come back from here as they were."""
    return arrow_facts(type_).is_held


def _with_its_types(plan: Plan, rows: pl.DataFrame) -> pl.DataFrame:
    """Refuse decimals that have not the width that Spark gives them: a sum of the engine's own is wider here."""
    for column, type_ in zip(plan.columns, rows.dtypes, strict=True):
        if polars_digits(type_) not in (None, decimal_digits(type_of(plan, column))):
            raise NotHereError
    return rows


def as_arrow(columns: Sequence[Column], rows: pl.DataFrame) -> pa.Table:
    """Return computed rows under the columns' names; a name that occurs twice gets the id."""
    names: list[str] = []
    for column in columns:
        names.append(f"{column.name}{column.id}" if column.name in names else column.name)
    return pa.table([arrow_values(values) for values in rows.get_columns()], names=names)


def arrow_values(values: pl.Series) -> pa.Array:
    """Convert a computed column to Arrow, in the layout that columns of files have."""
    found = values.to_arrow(compat_level=pl.CompatLevel.oldest())
    plain = value_type(found.type)
    return found if plain == found.type else found.cast(plain)
