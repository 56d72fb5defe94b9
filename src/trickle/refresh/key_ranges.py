"""Narrows what is read of big tables to the range of the keys that changed rows have.

``change join orders on o_orderkey -> change join (orders where o_orderkey between 590 and 612)``: Parquet then skips the
row groups that hold no such key. Recent changes lie together in a table that grows by time or by number, so for them this is
most of the table. A range says less than the keys themselves, so nothing is lost: the join still decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from trickle.algebra.expr import Call, Col, Column, Expr, KeyPair, Lit, Output
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
from trickle.algebra.walk import rebuild


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a column, NULLs aside."""

    low: int | str
    high: int | str
    has_null: bool = False


Bounds = Callable[[Plan, Column], Range | None]
"""Gives the range of a column of a result that is at hand, None if it is not known."""

Wanted = Mapping[int, Range]

_LITERALS = ("bigint", "int", "string")


def narrow(plan: Plan, bounds: Bounds) -> Plan:
    """Put ranges on the scans of a plan."""
    return _Narrow(bounds).visit(plan, {})


class _Narrow:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def visit(self, plan: Plan, wanted: Wanted) -> Plan:
        """Narrow a plan of whose rows only those in the ranges matter."""
        match plan:
            case Scan(at="old" | "new"):
                return _filtered(plan, wanted)
            case Filter() | RowWise():
                return replace(plan, child=self.visit(plan.child, wanted))
            case Project():
                return replace(plan, child=self.visit(plan.child, _below(plan.outputs, wanted)))
            case Aggregate():
                keys = tuple(o for o in plan.outputs if o.expr in plan.keys)
                return replace(plan, child=self.visit(plan.child, _below(keys, wanted)))
            case Window():
                kept = {e.column.id for e in plan.partition if isinstance(e, Col)}
                return replace(plan, child=self.visit(plan.child, {k: r for k, r in wanted.items() if k in kept}))
            case Union():
                return replace(plan, children=tuple(self._child(plan, child, wanted) for child in plan.children))
            case Join():
                return self._join(plan, wanted)
            case Shared():
                return plan
        return rebuild(plan, tuple(self.visit(p, {}) for p in plan.inputs))

    def _child(self, union: Union, child: Plan, wanted: Wanted) -> Plan:
        pairs = zip(union.columns, child.columns, strict=True)
        return self.visit(child, {c.id: wanted[u.id] for u, c in pairs if u.id in wanted})

    def _join(self, join: Join, wanted: Wanted) -> Plan:
        """Visit first the side that has the keys, then the other one within their range."""
        kind = join.kind if isinstance(join, OuterJoin) else "inner"
        from_right = join.small == "right" if kind == "inner" else kind == "right"
        if isinstance(join, SemiJoin):
            from_right = from_right and join.kind == "semi"
        first, second = (join.right, join.left) if from_right else (join.left, join.right)
        # Rows of a padded or probed side decide over rows of the other one, so conditions above say nothing of them.
        passes_on = isinstance(join, InnerJoin) or (isinstance(join, SemiJoin) and from_right)
        first = self.visit(first, {} if isinstance(join, SemiJoin) and from_right else wanted)
        found: dict[int, Range] = dict(wanted) if passes_on else {}
        if kind != "full":
            for key in join.keys:
                found.update(self._range_across(key, first, from_right=from_right))
        second = self.visit(second, found)
        return replace(join, left=second if from_right else first, right=first if from_right else second)

    def _range_across(self, key: KeyPair, first: Plan, *, from_right: bool) -> dict[int, Range]:
        mine, other = (key.right, key.left) if from_right else (key.left, key.right)
        if not isinstance(mine, Col) or not isinstance(other, Col) or other.column.type not in _LITERALS:
            return {}
        found = self._range(first, mine)
        if (
            found is None
            or (key.null_safe and found.has_null)
            or isinstance(found.low, str) != (other.column.type == "string")
        ):
            return {}
        return {other.column.id: found}

    def _range(self, plan: Plan, column: Expr) -> Range | None:
        """Give the range of a column, followed down to the result that it comes from."""
        if not isinstance(column, Col) or column.column.id not in plan.ids:
            return None
        match plan:
            case Scan(at="change") | Shared():
                return self.bounds(plan, column.column)
            case Filter() | Repeat():
                return self._range(plan.child, column)
            case Project() | Aggregate():
                expr = next(o.expr for o in plan.outputs if o.column == column.column)
                return self._range(plan.child, expr)
            case InnerJoin():
                return self._range(plan.left, column) or self._range(plan.right, column)
            case SemiJoin():
                return self._range(plan.left, column)
            case Union():
                place = plan.columns.index(column.column)
                return _hull([self._range(c, Col(c.columns[place])) for c in plan.children])
        return None


def _hull(ranges: list[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    if len(known) < len(ranges) or not known or len({type(r.low) for r in known}) > 1:
        return None
    return Range(
        min(r.low for r in known),
        max(r.high for r in known),
        any(r.has_null for r in known),
    )


def _below(outputs: tuple[Output, ...], wanted: Wanted) -> dict[int, Range]:
    """Give the ranges of the columns that outputs hand on."""
    return {o.expr.column.id: wanted[o.column.id] for o in outputs if isinstance(o.expr, Col) and o.column.id in wanted}


def _filtered(scan: Scan, wanted: Wanted) -> Plan:
    plan: Plan = scan
    for column in scan.base:
        within = wanted.get(column.id)
        if within is not None:
            low, high = (_literal(v, column) for v in (within.low, within.high))
            plan = Filter(Call("and", (Call(">=", (Col(column), low)), Call("<=", (Col(column), high)))), plan)
    return plan


def _literal(value: int | str, column: Column) -> Lit:
    return Lit(value) if column.type == "bigint" else Lit(value, like=column)
