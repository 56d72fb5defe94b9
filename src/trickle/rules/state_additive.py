"""Change of the state of an additive aggregate: counts, exact sums, averages. And any state, computed from rows.

Law    state(R1) = state(R0) + state(change(R)),  column by column; a group is removed when its count is 0
Cost   the change alone: no rows of the group are read
Needs  the state stored: keys, a count of rows, sums
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Final

from trickle.algebra.expr import WEIGHT, Call, Cast, Col, Expr, Lit, Output, new_column, passthrough
from trickle.algebra.plan import Aggregate, Plan, Project, Repeat

if TYPE_CHECKING:
    from trickle.algebra.aggregate_state import AggregateState, Term

IS_DELETION: Final = Call("<", (Col(WEIGHT), Lit(0)))
"""True for a row of a change that deletes."""

_FUNCTIONS: Final = {"least": "min", "greatest": "max"}


def state_of(state: AggregateState, child: Plan) -> Plan:
    """Return the state of plain rows."""
    return _summed(state, child, _of_rows)


def change_of_state(state: AggregateState, change: Plan) -> Plan:
    """Return what a change adds to an additive state."""
    return _summed(state, repeat_rows(state, change), change_of_term)


def _summed(state: AggregateState, rows: Plan, function: Callable[[Term], Expr]) -> Plan:
    found = [new_column(t.column.name) for t in state.terms]
    outputs = tuple(Output(c, function(t)) for c, t in zip(found, state.terms, strict=True))
    totals = (Output(t.column, never_null(Col(c), t)) for c, t in zip(found, state.terms, strict=True))
    return Project((*passthrough(tuple(k.column for k in state.keys)), *totals), group_by_keys(state, outputs, rows))


def change_of_term(term: Term) -> Expr:
    """Return what the rows of a change, repeated by weight, add to a sum."""
    if term.value is None:
        signed: Expr = Col(WEIGHT)
    elif term.kind == "magnitude":
        signed = Call("abs", (term.value,))
    else:
        signed = Call("if", (IS_DELETION, Call("negative", (term.value,)), term.value))
    return Call("sum", (signed,), where=conjunction_of(term.where))


def repeat_rows(state: AggregateState, change: Plan) -> Plan:
    """Repeat each row of a change as often as its weight says, unless rows are only counted."""
    return change if all(t.value is None for t in state.terms) else Repeat(change)


def never_null(value: Expr, term: Term) -> Expr:
    """Replace a missing sum by zero, so that states add up. The least value of no rows stays NULL."""
    return value if term.kind in _FUNCTIONS else Call("coalesce", (value, Cast(Lit(0), term.column)))


def group_by_keys(state: AggregateState, outputs: tuple[Output, ...], rows: Plan) -> Aggregate:
    """Return the keys of the state and some outputs over rows."""
    return Aggregate(tuple(k.expr for k in state.keys), (*state.keys, *outputs), rows)


def finish(state: AggregateState, stored: Plan) -> Plan:
    """Return the aggregate's outputs over its stored state."""
    return Project(state.outputs, Project(state.results, stored))


def _of_rows(term: Term) -> Expr:
    value: Expr = Lit(1) if term.value is None else term.value
    if term.kind == "magnitude":
        value = Call("abs", (value,))
    return Call(_FUNCTIONS.get(term.kind, "sum"), (value,), where=conjunction_of(term.where))


def conjunction_of(conditions: tuple[Expr, ...]) -> Expr | None:
    """Combine conditions with AND; None if there are none."""
    return reduce(lambda a, b: Call("and", (a, b)), conditions) if conditions else None
