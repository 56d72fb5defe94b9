"""The rows that the leaves of plans stand for: sources, their changes, shared results, rounds of a recursion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from trickle.algebra.plan import Iterate, LoopRef, Plan, Scan, Shared
from trickle.catalyst.driver_forms import driver_form
from trickle.catalyst.jvm import analysed_plan
from trickle.catalyst.row_projection import row_projection
from trickle.compute.driver.plans import arrow_values, as_arrow
from trickle.compute.key_propagation import Keys
from trickle.compute.rows import Rows
from trickle.tables.arrow.local import relation_rows
from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.arrow.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.algebra.expr import Column, Expr, Opaque
    from trickle.catalyst.jvm import Jvm
    from trickle.compute.inputs import Inputs
    from trickle.model.options import Options


@dataclass(frozen=True, slots=True)
class Leaves:
    """What is known of the rows of leaves, and what was computed so far.

    Attributes:
        inputs: What plans read.
        looks_up: True to read small tables, and find rows of others by their keys, in the driver.
        shared: The results computed so far, by name.
        loops: The rows that references to a recursion stand for.
    """

    jvm: Jvm
    inputs: Inputs
    options: Options
    looks_up: bool = False
    shared: dict[str, Rows] = field(default_factory=dict)
    loops: Mapping[int, Rows] = field(default_factory=dict)
    _small_tables: dict[tuple[str, str, tuple[str, ...]], pa.Table | None] = field(default_factory=dict)

    @property
    def empty(self) -> frozenset[str]:
        """The names of changes and shared results known to have no rows."""
        found = {**self.inputs.changes, **self.shared, **{f"loop{k}": v for k, v in self.loops.items()}}
        return frozenset(name for name, rows in found.items() if rows.count == 0)

    def frame(self, leaf: Plan) -> DataFrame:
        """Pass the rows of a leaf to Spark."""
        if isinstance(leaf, Scan) and leaf.at != "change":
            return self.inputs.snapshot(leaf)
        return self._rows(leaf).frame

    def driver_rows(self, leaf: Plan) -> pa.Table | pl.DataFrame | None:
        """Return the rows of a leaf as the driver has them, None if it does not have them."""
        if isinstance(leaf, Scan) and leaf.at != "change":
            return self._small_table(leaf)
        if isinstance(leaf, LoopRef) and leaf.at != "change":
            return None
        rows = self._rows(leaf)
        return rows.read_arrow(self.options.driver_change_rows) if rows.made is None else rows.made

    def read_keys(self, leaf: Plan, column: Column) -> Keys | None:
        """Return the values of a column of a leaf, None if the driver does not have them."""
        rows = self.driver_rows(leaf)
        if rows is None:
            return None
        place = leaf.columns.index(column)
        if isinstance(rows, pl.DataFrame):
            return Keys(arrow_values(rows.to_series(place)))
        return Keys(rows.column(column.name if isinstance(leaf, Scan) else place))

    def driver_form(self, expr: Opaque) -> Expr | None:
        """Return a user's expression in the engine's own, None if only Spark knows what it means."""
        return self.jvm.driver_forms.get(expr.key, lambda: driver_form(self.jvm, expr.handle))

    def evaluate(self, exprs: Sequence[Opaque], rows: pl.DataFrame) -> list[pl.Series] | None:
        """Let Catalyst evaluate expressions over rows of the driver; None if they are many, or if only a job can tell."""
        if rows.height > self.options.driver_evaluated:
            return None
        keys = tuple(e.key for e in exprs)
        projection = self.jvm.row_projections.get(keys, lambda: row_projection(self.jvm, exprs))
        columns = [arrow_values(rows.get_column(str(id_))) for id_ in projection.ids]
        # Rows without columns could not be counted on the way.
        if not columns or None in map(arrow_type, projection.results):
            return None
        if any(arrow_type(name) != c.type for name, c in zip(projection.types, columns, strict=True)):
            return None
        table = pa.table(columns, names=[f"c{place}" for place in range(len(columns))])
        relation = analysed_plan(arrow_frame(self.jvm.spark, table))
        found = projection.evaluate(self.jvm, relation) if self.jvm.name(relation) == "LocalRelation" else None
        if found is None:
            return None
        made = relation_rows(self.jvm.spark, found)
        try:
            made.validate(full=True)
        except pa.ArrowInvalid:
            return None  # bytes cast to a string: polars takes every string for UTF-8, Spark does not
        return [pl.Series(pl.from_arrow(values)) for values in made.columns]

    def keep_computed(self, plan: Plan, made: pl.DataFrame) -> Plan:
        """Take the rows of a plan as the driver computed them; return the leaf that stands for them."""
        return self._share("made", plan, Rows.from_driver(self.jvm.spark, made, partial(as_arrow, plan.columns, made)))

    def keep_found(self, scan: Scan, table: pa.Table) -> Plan:
        """Take the rows of a scan that were found by their keys; return the leaf that stands for them."""
        return self._share("found", scan, Rows.from_arrow(self.jvm.spark, table))

    def clear(self) -> None:
        """Forget what was computed."""
        self._small_tables.clear()
        self.shared.clear()

    def _share(self, kind: str, plan: Plan, rows: Rows) -> Plan:
        name = f"{kind}{len(self.shared)}"
        self.shared[name] = rows
        return Shared(name, plan)

    def _rows(self, leaf: Plan) -> Rows:
        if isinstance(leaf, Scan):
            return self.inputs.change(leaf.source)
        if isinstance(leaf, LoopRef):
            return self.loops[leaf.loop]
        if isinstance(leaf, Shared | Iterate):
            return self.shared[leaf.name]
        message = f"no rows are known for {leaf}"
        raise TypeError(message)

    def _small_table(self, scan: Scan) -> pa.Table | None:
        """Return all rows of a small table, None if it is not small."""
        key = scan.source, scan.at, tuple(c.name for c in scan.base)
        if key not in self._small_tables:
            self._small_tables[key] = self.inputs.lookup(scan, {}) if self.looks_up else None
        return self._small_tables[key]
