"""The state of an additive aggregate, computed from rows or from their change.

Law    state(R1) = state(R0) + state(change(R)),  each column of a row by itself; a group whose count is 0 is gone
Cost   the change alone: no rows of the group are read
Needs  the state stored: keys, a count of rows, sums
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from trickle.algebra.expr import WEIGHT, Call, Cast, Col, Expr, Lit, Output, new_column, passthrough
from trickle.algebra.plan import Aggregate, Plan, Project, Repeat, Sums, Term

ValueOf = Callable[[Term], Expr]


def state_of(sums: Sums, child: Plan) -> Plan:
    """Give the state of plain rows."""
    return _summed(sums, child, lambda term: Lit(1) if term.value is None else term.value)


def state_change(sums: Sums, change: Plan) -> Plan:
    """Give what a change adds to the state."""
    is_deletion = Call("<", (Col(WEIGHT), Lit(0)))

    def signed(term: Term) -> Expr:
        if term.value is None:
            return Col(WEIGHT)
        return Call("if", (is_deletion, Call("negative", (term.value,)), term.value))

    counts_only = all(t.value is None for t in sums.terms)
    return _summed(sums, change if counts_only else Repeat(change), signed)


def finished(sums: Sums, state: Plan) -> Plan:
    """Give the aggregate's outputs over its stored state."""
    return Project(sums.outputs, Project(sums.results, state))


def _summed(sums: Sums, rows: Plan, value: ValueOf) -> Plan:
    found = [new_column(t.column.name) for t in sums.terms]
    outputs = (
        *(Output(c, Call("sum", (value(t),), where=_all(t.where))) for c, t in zip(found, sums.terms, strict=True)),
    )
    grouped = Aggregate(tuple(k.expr for k in sums.keys), (*sums.keys, *outputs), rows)
    # Nothing to add is zero, never NULL: so sums of states are sums of numbers.
    totals = (
        Output(t.column, Call("coalesce", (Col(c), Cast(Lit(0), t.column))))
        for c, t in zip(found, sums.terms, strict=True)
    )
    return Project((*passthrough(tuple(k.column for k in sums.keys)), *totals), grouped)


def _all(conditions: tuple[Expr, ...]) -> Expr | None:
    return reduce(lambda a, b: Call("and", (a, b)), conditions) if conditions else None
