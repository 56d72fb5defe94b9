"""Semi-join key propagation: a change needs only the rows of a big table whose join keys are among its own.

A plan is walked from the small sides of its joins to the big ones. At each scan the walk knows, for some columns, the only
values that matter there, because a join above meets them with nothing else. Columns are followed through projections, filters,
groups and unions to the result they come from. Every set of keys may hold too many; none holds too few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.expr import Col, Column, Expr, KeyPair, Output
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    InnerJoin,
    Join,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    Union,
    Window,
)
from trickle.algebra.walk import rebuild, walk
from trickle.tables.arrow.types import arrow_facts


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Values of a column, some perhaps several times."""

    values: Any

    @property
    def has_null(self) -> bool:
        """True if a value is missing."""
        return bool(self.values.null_count)

    @property
    def bounds(self) -> tuple[int | str, int | str] | None:
        """The least and the greatest value of a type with ranges, NULLs aside; None if there is none."""
        if not arrow_facts(self.values.type).is_ranged:
            return None
        found = pc.min_max(self.values).as_py()
        return None if found["min"] is None else (found["min"], found["max"])

    def distinct(self, max_values: int) -> pa.Array | None:
        """Return the values, each once, NULL aside; None if they are more than ``max_values``."""
        found = pc.drop_null(pc.unique(self.values))
        return found if len(found) <= max_values else None

    def also(self, other: Keys) -> Keys:
        """Combine both."""
        return Keys(pa.chunked_array([*_chunks(self.values), *_chunks(other.values)], self.values.type))


def _chunks(values: Any) -> list[Any]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


Wanted = Mapping[int, Keys]
"""The only values that matter, by the ids of columns."""


class Reader(Protocol):
    """What the walk asks of whoever computes the plan."""

    def read_keys(self, leaf: Plan, column: Column) -> Keys | None:
        """Return the values of a column of a leaf whose rows the driver holds; None if it does not hold them."""
        ...

    def read_scan(self, scan: Scan, wanted: Wanted) -> Plan:
        """Return what to put in the place of a scan, of whose rows only those with the wanted values matter."""
        ...

    def compute_part(self, plan: Plan) -> Plan:
        """Compute a part that gives keys, if that can be done at once: fewer rows have fewer keys."""
        ...


@dataclass(frozen=True, slots=True)
class KeyPropagation:
    """One walk over a plan."""

    reader: Reader

    def visit(self, plan: Plan, wanted: Wanted | None = None) -> Plan:
        """Rebuild a plan of whose rows only those with the wanted values matter."""
        wanted = wanted or {}
        match plan:
            case Scan(at="old" | "new"):
                return self.reader.read_scan(plan, {c.id: wanted[c.id] for c in plan.base if c.id in wanted})
            case Scan() | Shared():
                return plan
            case Filter() | RowWise():
                below = wanted
            case Project():
                below = _below(plan.outputs, wanted)
            case Aggregate():
                below = _below(tuple(o for o in plan.outputs if o.expr in plan.keys), wanted)
            case Window():
                kept = {e.column.id for e in plan.partition if isinstance(e, Col)}
                below = {k: v for k, v in wanted.items() if k in kept}
            case Union():
                return self._union(plan, wanted)
            case Join():
                return self._join(plan, wanted)
            case _:
                below = {}
        return rebuild(plan, tuple(self.visit(p, below) for p in plan.inputs))

    def _union(self, union: Union, wanted: Wanted) -> Plan:
        children = []
        for child in union.children:
            pairs = zip(union.columns, child.columns, strict=True)
            below = {c.id: wanted[u.id] for u, c in pairs if u.id in wanted}
            children.append(self.visit(child, below))
        return rebuild(union, tuple(children))

    def _join(self, join: Join, wanted: Wanted) -> Plan:
        """Visit first the side that has the keys, then the other one, where only they matter."""
        kind = join.kind if isinstance(join, OuterJoin) else "inner"
        from_right = kind == "right" or (kind == "inner" and join.small == "right")
        if isinstance(join, SemiJoin):
            from_right = from_right and join.kind == "semi"
        first, second = (join.right, join.left) if from_right else (join.left, join.right)
        # Rows of a padded or probed side decide over rows of the other one: conditions from above say nothing of them.
        probes = isinstance(join, SemiJoin) and from_right
        both = isinstance(join, InnerJoin)
        above = {} if probes or kind == "full" else wanted
        if both and _is_recomputed(first) and _is_table(second):
            second, above = self._sieved(join, first, second, above, from_right=from_right)
        first = self.reader.compute_part(self.visit(first, above))
        found: dict[int, Keys] = dict(wanted) if both or probes else {}
        if kind != "full":
            for key in join.keys:
                found = _fewer(found, self._across(key, first, from_right=from_right))
        second = self.visit(second, found)
        return rebuild(join, (second, first) if from_right else (first, second))

    def _sieved(
        self, join: Join, first: Plan, second: Plan, wanted: Wanted, *, from_right: bool
    ) -> tuple[Plan, Wanted]:
        """Look a table up by the keys of groups before these are recomputed: only those it has rows for matter then."""
        for key in join.keys:
            ahead = self._across(key, first, from_right=from_right)
            if ahead:
                second = self.reader.compute_part(self.visit(second, ahead))
                return second, _fewer(wanted, self._across(key, second, from_right=not from_right))
        return second, wanted

    def _across(self, key: KeyPair, first: Plan, *, from_right: bool) -> dict[int, Keys]:
        mine, other = (key.right, key.left) if from_right else (key.left, key.right)
        if not isinstance(other, Col):
            return {}
        found = self.values(first, mine)
        if found is None or (key.null_safe and found.has_null):
            return {}
        return {other.column.id: found}

    def values(self, plan: Plan, expr: Expr) -> Keys | None:
        """Return the values that a column of a plan may have, None if the driver does not hold them."""
        if not isinstance(expr, Col) or expr.column.id not in plan.ids:
            return None
        match plan:
            case Scan(at="change") | Shared():
                return self.reader.read_keys(plan, expr.column)
            case Filter() | Repeat():
                return self.values(plan.child, expr)
            case Project() | Aggregate():
                return self.values(plan.child, next(o.expr for o in plan.outputs if o.column == expr.column))
            case InnerJoin():
                return self.values(plan.left, expr) or self.values(plan.right, expr)
            case SemiJoin():
                is_met = plan.kind == "semi" and plan.flag is None
                met = next((k.right for k in plan.keys if is_met and k.left == expr), None)
                return self.values(plan.left, expr) or (None if met is None else self.values(plan.right, met))
            case Union():
                place = plan.columns.index(expr.column)
                return _together([self.values(c, Col(c.columns[place])) for c in plan.children])
        return None


def _is_recomputed(plan: Plan) -> bool:
    """Return whether rows are groups of looked up rows."""
    match plan:
        case Filter() | Project():
            return _is_recomputed(plan.child)
        case Union():
            return all(map(_is_recomputed, plan.children))
        case Aggregate():
            return any(isinstance(p, Scan) and p.at != "change" for p in walk(plan.child))
    return False


def _is_table(plan: Plan) -> bool:
    """Return whether rows are some of a table's."""
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return isinstance(plan, Scan) and plan.at != "change"


def _fewer(wanted: Wanted, others: Wanted) -> dict[int, Keys]:
    """Return what is wanted of columns by two accounts; of one column the account of fewer values."""
    both = [c for c in others if c in wanted and len(wanted[c].values) <= len(others[c].values)]
    return {**wanted, **{c: keys for c, keys in others.items() if c not in both}}


def _together(found: list[Keys | None]) -> Keys | None:
    known = [k for k in found if k is not None]
    if len(known) < len(found) or len({str(k.values.type) for k in known}) != 1:
        return None
    total = known[0]
    for keys in known[1:]:
        total = total.also(keys)
    return total


def _below(outputs: tuple[Output, ...], wanted: Wanted) -> dict[int, Keys]:
    """Return what is wanted of the columns that outputs pass on."""
    return {o.expr.column.id: wanted[o.column.id] for o in outputs if isinstance(o.expr, Col) and o.column.id in wanted}
