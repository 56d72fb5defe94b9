"""Runs plans: gives their leaves real rows, and computes shared results once.

A result that is small comes to the driver as rows of Spark's own making and goes back as a local relation, whose size the
planner knows: joins with it are broadcast, and a result that turns out empty removes the work that hangs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from trickle.algebra.plan import Empty, Iterate, Loop, LoopRef, Plan, Scan, Shared
from trickle.algebra.walk import walk
from trickle.catalyst.lower import Lower
from trickle.catalyst.simple import simple_form
from trickle.compile.prune import prune
from trickle.compute.driver.plans import DriverExecution, arrow_values, as_arrow
from trickle.compute.key_propagation import KeyPropagation, Keys, Wanted
from trickle.compute.key_ranges import narrow
from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.local import local_rows
from trickle.tables.arrow.spark import arrow_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.algebra.expr import Column, Expr, Opaque
    from trickle.catalyst.jvm import Jvm
    from trickle.tables.contract import Given

Find = Callable[[Scan, Mapping[str, "pa.Array"]], "pa.Table | None"]

_TWO_ROWS: Final = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
_PLAINLY_EQUAL: Final = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date"})
"""Types whose values are equal to Spark when they are to Arrow; a collated string is of another type."""


class Rows:
    """A computed result in one or more forms, and how many rows it has.

    Its rows are a DataFrame, or in the driver an Arrow table, or what was computed there, under the columns' ids as names.
    """

    def __init__(
        self,
        frame: DataFrame | Callable[[], DataFrame],
        count: int = -1,
        arrow: pa.Table | Callable[[], pa.Table] | None = None,
        made: pl.DataFrame | None = None,
    ) -> None:
        """Keep the rows; a form that is to be made of another is made when it is asked for. -1 is not counted."""
        self._frame = frame
        self.count = count
        self._arrow = arrow
        self.made = made

    @property
    def arrow(self) -> pa.Table | None:
        """The rows as an Arrow table, None if they are not in the driver."""
        if callable(self._arrow):
            self._arrow = self._arrow()
        return self._arrow

    @arrow.setter
    def arrow(self, table: pa.Table | None) -> None:
        self._arrow = table

    @property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame."""
        if callable(self._frame):
            self._frame = self._frame()
        return self._frame

    def named(self, names: Sequence[str]) -> Given:
        """Give the rows with other names for their first columns; what the driver holds stays there."""
        if self.arrow is not None:
            return self.arrow.rename_columns([*names, *self.arrow.column_names[len(names) :]])
        return self.frame.toDF(*names, *self.frame.columns[len(names) :])


@dataclass(slots=True)
class Evaluation:
    """The computation of one refresh.

    Attributes:
        snapshot: Gives a source's rows at the old or new frontier.
        changes: The netted changes of the sources, by name.
        local: True to bring results to the driver.
        ranges: True to read big tables only within the range of the changed keys.
        find: Finds a source's rows by keys; None to read them all.
        at_hand: True to compute in the driver what the driver has the rows for.
    """

    jvm: Jvm
    snapshot: Callable[[Scan], DataFrame]
    changes: Mapping[str, Rows]
    local: bool = True
    ranges: bool = False
    find: Find | None = None
    driver_execution: bool = False
    options: Options = DEFAULT
    loops: Mapping[int, Rows] = field(default_factory=dict)
    _rows_found: int = 0
    _wholes: dict[tuple[str, str, tuple[str, ...]], pa.Table | None] = field(default_factory=dict)
    _shared: dict[str, Rows] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def empty(self) -> frozenset[str]:
        """The names of changes and shared results known to have no rows."""
        found = {**self.changes, **self._shared, **{f"loop{k}": v for k, v in self.loops.items()}}
        return frozenset(name for name, rows in found.items() if rows.count == 0)

    def rows(self, plan: Plan) -> Rows | None:
        """Compute a plan, and before it the shared results it reads; None if it has no rows by construction."""
        plan = self.settle(plan)
        if isinstance(plan, Empty):
            return None
        if isinstance(plan, Shared | Iterate):
            return self._shared[plan.name]
        return self._computed(plan)

    def _computed(self, plan: Plan) -> Rows:
        """Run a settled plan: here what can be, the rest by Spark."""
        plan = self._propagated(plan)
        return self._shared[plan.name] if isinstance(plan, Shared) else self.materialise(self._lowered(plan))

    def computed_here(self, plan: Plan) -> Rows | None:
        """Compute a plan in the driver; None if a part of it needs Spark."""
        propagated = self._propagated(plan)
        return self._shared[propagated.name] if isinstance(propagated, Shared) else None

    def settle(self, plan: Plan) -> Plan:
        """Compute the shared results a plan reads, innermost first, and prune by what turned out empty."""
        plan = prune(plan, self.empty)
        while True:
            pending = next(
                (p for p in walk(plan) if isinstance(p, Shared | Iterate) and p.name not in self._shared), None
            )
            if pending is None:
                return plan
            if isinstance(pending, Iterate):
                self._shared[pending.name] = self._iterate(pending)
            else:
                self._shared[pending.name] = self._computed(pending.child)
            if self._shared[pending.name].count == 0:
                plan = prune(plan, self.empty)

    def _iterate(self, node: Iterate) -> Rows:
        """Follow a change through a recursion until a round brings nothing."""
        last = self._computed(node.seed)
        rounds = [last]
        while last.count:
            if 0 <= node.max_depth < len(rounds):
                text = f"a recursive CTE went deeper than {node.max_depth} levels."
                hint = "Raise spark.sql.cteRecursionLevelLimit and create the table again; or is there a cycle?"
                raise SourceError("RECURSION_LIMIT", text, hint=hint)
            inner = replace(self, changes={}, loops={node.loop: last}, _rows_found=0, _shared={}, _kept=[])
            last = inner.rows(node.step) or Rows(last.frame.limit(0), 0)
            self._kept += inner._kept
            rounds.append(last)
        frame = rounds[0].frame
        for one in rounds[1:-1]:
            frame = frame.union(one.frame)
        return self.materialise(frame) if len(rounds) > 2 else rounds[0]

    def frame(self, plan: Plan) -> DataFrame:
        """Give a settled plan as a DataFrame, not yet run."""
        return self._lowered(self._propagated(plan))

    def _propagated(self, plan: Plan) -> Plan:
        """Find the rows of big tables that a plan can reach, and compute what is at hand."""
        if not self.local:
            return plan
        compute = (
            DriverExecution(self._here, self._simple, self._keep, self.options).visit
            if self.driver_execution
            else _as_it_is
        )
        if self.find is not None:
            plan = KeyPropagation(self._keys_of, self._found, compute).visit(plan)
        return compute(plan)

    def _lowered(self, plan: Plan) -> DataFrame:
        if self.local and self.ranges:
            plan = narrow(plan, self._keys_of)
        in_one_task = self.local and self.ranges and _is_in_driver(plan)
        return Lower(self.jvm, self._leaf, hints=self.local, in_one_task=in_one_task).frame(plan)

    def _found(self, scan: Scan, wanted: Wanted) -> Plan:
        """Give the rows of a scan that have the wanted keys, if the driver can find them."""
        known = [c for c in scan.base if c.id in wanted and c.type in _PLAINLY_EQUAL]
        few = {c.name: keys for c in known if (keys := wanted[c.id].distinct(self.options.lookup_keys)) is not None}
        if self.find is None or not few or self._rows_found > self.options.refresh_lookup_rows:
            return scan
        table = self.find(scan, few)
        if table is None:
            return scan
        self._rows_found += table.num_rows
        name = f"found{len(self._shared)}"
        self._shared[name] = from_arrow(self.jvm, table)
        return Shared(name, scan)

    def _keep(self, plan: Plan, made: pl.DataFrame) -> Plan:
        """Take a result computed in the driver."""
        name, arrow = f"made{len(self._shared)}", partial(as_arrow, plan.columns, made)
        self._shared[name] = Rows(lambda: arrow_frame(self.jvm.spark, arrow()), made.height, arrow, made)
        return Shared(name, plan)

    def _simple(self, condition: Opaque) -> Expr | None:
        return self.jvm.simple_forms.get(condition.key, lambda: simple_form(self.jvm, condition.handle))

    def _here(self, leaf: Plan) -> pa.Table | pl.DataFrame | None:
        """Give the rows of a leaf as the driver has them, None if it has them not."""
        if isinstance(leaf, Scan) and leaf.at != "change":
            return self._whole(leaf)
        if isinstance(leaf, LoopRef) and leaf.at != "change":
            return None
        rows = self._rows_of(leaf)
        return self._arrow(rows) if rows.made is None else rows.made

    def _rows_of(self, leaf: Plan) -> Rows:
        if isinstance(leaf, Scan):
            return self.changes[leaf.source]
        if isinstance(leaf, LoopRef):
            return self.loops[leaf.loop]
        if isinstance(leaf, Shared | Iterate):
            return self._shared[leaf.name]
        message = f"no rows are known for {leaf}"
        raise TypeError(message)

    def _whole(self, scan: Scan) -> pa.Table | None:
        """Give all rows of a small source, None if it is not small."""
        key = scan.source, scan.at, tuple(c.name for c in scan.base)
        if key not in self._wholes:
            self._wholes[key] = None if self.find is None else self.find(scan, {})
        return self._wholes[key]

    def _arrow(self, rows: Rows) -> pa.Table | None:
        """Give rows as an Arrow table, None if they are not in the driver."""
        if rows.arrow is None:
            rows.arrow = local_rows(rows.frame, self.options.driver_change_rows)
        return rows.arrow

    def _keys_of(self, leaf: Plan, column: Column) -> Keys | None:
        rows = self._here(leaf)
        if rows is None:
            return None
        place = leaf.columns.index(column)
        if isinstance(rows, pl.DataFrame):
            return Keys(arrow_values(rows.to_series(place)))
        return Keys(rows.column(column.name if isinstance(leaf, Scan) else place))

    def materialise(self, frame: DataFrame) -> Rows:
        """Run a DataFrame and keep its rows, in the driver or in the cluster."""
        if not self.local:
            kept = frame.persist()
            self._kept.append(kept)
            return Rows(kept, kept.count())
        return collect(self.jvm, frame)

    def release(self) -> None:
        """Give the memory back, the cluster's and the driver's: what refers to itself would wait for the next collection."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        is_much = self._rows_found + sum(rows.count for rows in self.changes.values()) > self.options.release_rows
        self.changes, self.find = {}, None
        self._wholes.clear()
        self._shared.clear()
        if is_much:
            pa.default_memory_pool().release_unused()

    def _leaf(self, node: Plan) -> DataFrame:
        if isinstance(node, Scan) and node.at != "change":
            return self.snapshot(node)
        return self._rows_of(node).frame


def _as_it_is(plan: Plan) -> Plan:
    return plan


def _is_in_driver(plan: Plan) -> bool:
    """Tell whether a plan reads nothing but what the driver holds."""
    match plan:
        case Shared() | Iterate():
            return True
        case Scan(at=at):
            return at == "change"
        case Loop() | LoopRef():
            return False
    return all(_is_in_driver(p) for p in plan.inputs)


def from_arrow(jvm: Jvm, table: pa.Table) -> Rows:
    """Give rows that the driver has read as a local relation."""
    return Rows(lambda: arrow_frame(jvm.spark, table), table.num_rows, table)


def collect(jvm: Jvm, frame: DataFrame) -> Rows:
    """Run a DataFrame and give its rows as a local relation; they never leave the JVM."""
    execution: Any = frame._jdf.queryExecution()
    try:
        found = execution.executedPlan().executeCollect()
    except (Py4JJavaError, PySparkException) as error:
        if _TWO_ROWS not in str(error):
            raise
        text = "a scalar subquery of the query returned more than one row; the stream table was left as it is."
        hint = "Correct the data, or let the subquery aggregate (max, first) its rows."
        raise SourceError(_TWO_ROWS, text, hint=hint) from error
    wrapped = jvm.singleton("scala.collection.immutable.ArraySeq").unsafeWrapArray(found)
    output = execution.analyzed().output()
    relation = jvm.plan("LocalRelation", output, wrapped, False, jvm.none)
    return Rows(jvm.frame(relation), len(found))
