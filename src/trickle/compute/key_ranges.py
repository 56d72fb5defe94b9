"""Narrows what is read of big tables to the range of the keys that changed rows have.

``change join orders on o_orderkey -> change join (orders where o_orderkey between 590 and 612)``: Parquet then skips the
row groups that hold no such key. Recent changes lie together in a table that grows by time or by number, so for them this is
most of the table. A range says less than the keys themselves, so nothing is lost: the join still decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trickle.algebra.expr import Call, Col, Column, Expr, Lit
from trickle.algebra.plan import Filter, Plan, Scan
from trickle.compute.key_propagation import KeyPropagation, Keys, Wanted
from trickle.model.types import BIGINT, facts_of

ReadKeys = Callable[[Plan, Column], Keys | None]
"""Returns the values of a column of a leaf, None if the driver does not have them."""


def narrow(plan: Plan, read_keys: ReadKeys) -> Plan:
    """Put ranges on the scans of a plan."""
    return KeyPropagation(_Ranges(read_keys)).visit(plan)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Puts ranges in the place of keys, and computes nothing."""

    read_keys: ReadKeys

    def read_scan(self, scan: Scan, wanted: Wanted) -> Plan:
        plan: Plan = scan
        for column in scan.base:
            condition = _within(column, wanted[column.id]) if column.id in wanted else None
            plan = plan if condition is None else Filter(condition, plan)
        return plan

    def compute_part(self, plan: Plan) -> Plan:
        return plan


def _within(column: Column, keys: Keys) -> Expr | None:
    """Say that a column is in the range of some keys; None if that cannot be said."""
    facts = facts_of(column.type)
    bounds = keys.bounds if facts.is_ranged else None
    if bounds is None or not all(isinstance(v, int if facts.is_whole else str) for v in bounds):
        return None
    low, high = (_literal(v, column) for v in bounds)
    return Call("and", (Call(">=", (Col(column), low)), Call("<=", (Col(column), high))))


def _literal(value: int | str, column: Column) -> Lit:
    return Lit(value) if facts_of(column.type) is BIGINT else Lit(value, like=column)
