"""Narrows what is read of big tables to the range of the keys that changed rows have.

``change join orders on o_orderkey -> change join (orders where o_orderkey between 590 and 612)``: Parquet then skips the
row groups that hold no such key. Recent changes lie together in a table that grows by time or by number, so for them this is
most of the table. A range says less than the keys themselves, so nothing is lost: the join still decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.algebra.expr import Call, Col, Column, Expr, Lit
from trickle.algebra.plan import Filter, Plan, Scan
from trickle.refresh.reach import Keys, KeysOf, Path, Reach, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable

_WITH_LITERALS: Final = {"bigint": int, "int": int, "string": str}


def narrow(plan: Plan, keys_of: KeysOf) -> Plan:
    """Put ranges on the scans of a plan."""

    def at_scan(scan: Scan, wanted: Wanted, path: Path) -> Plan:  # noqa: ARG001 - ranges are the same everywhere
        plan: Plan = scan
        for column in scan.base:
            condition = within(column, [wanted[column.id]] if column.id in wanted else [])
            plan = plan if condition is None else Filter(condition, plan)
        return plan

    return Reach(keys_of, at_scan).visit(plan)


def within(column: Column, keys: Iterable[Keys]) -> Expr | None:
    """Say that a column is in the range of some keys; None if that cannot be said."""
    kind = _WITH_LITERALS.get(column.type)
    if kind is None:
        return None
    known = [b for k in keys if (b := k.bounds) is not None]
    if not known or not all(isinstance(v, kind) for b in known for v in b):
        return None
    low, high = min(b[0] for b in known), max(b[1] for b in known)
    return Call(
        "and", (Call(">=", (Col(column), _literal(low, column))), Call("<=", (Col(column), _literal(high, column))))
    )


def _literal(value: int | str, column: Column) -> Lit:
    return Lit(value) if column.type == "bigint" else Lit(value, like=column)
