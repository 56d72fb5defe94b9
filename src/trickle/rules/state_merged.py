"""Change of a state that a deletion may invalidate: minima, maxima, sums of floating-point numbers.

Law    state(R1) = merge(state(R0), net change(R)) for a valid group, and the state of its rows in new(R) for an invalidated one
           sum        stored + change
           least      least(stored, inserted); invalidated if a deleted value reaches the stored one and no inserted one does
           greatest   likewise
           double     stored + change; invalidated if rounding may have affected relevant digits, or if it is not finite
Cost   the change and the stored rows of its groups; the rows of the invalidated groups
Needs  the stored state with a row count: a group is removed when its count is 0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from trickle.algebra.expr import WEIGHT, Call, Cast, Col, Column, Expr, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.plan import Filter, OuterJoin, Plan, Project, Scan, Shared, Union, When
from trickle.rules.derive import net, restrict
from trickle.rules.state_additive import (
    IS_DELETION,
    change_of_term,
    conjunction_of,
    group_by_keys,
    never_null,
    repeat_rows,
    state_of,
)

if TYPE_CHECKING:
    from trickle.algebra.aggregate_state import AggregateState, Term
    from trickle.rules import Derive

_IS_INSERTION: Final = Call(">", (Col(WEIGHT), Lit(0)))

_MAX_MAGNITUDES: Final = 1000
"""A sum may be this much smaller than the magnitudes that went into it: 12 of the 16 digits of a double are then right."""

_HUGE: Final = "1e300"
"""Magnitudes from here on count as infinite: their sums would be."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The effect of a change on a stored state.

    Attributes:
        keys: The touched keys; without keys, the one row.
        rows: Their rows afterwards.
        broken: Impossible rows: with a negative row count, or with a sum that does not fit its type.
    """

    keys: Plan
    rows: Plan
    broken: Plan


def merge(state: AggregateState, child: Plan, of: Derive, stored: Scan) -> Merge:
    """Return the merge of a change of ``child`` into the stored state."""
    keys = tuple(k.column for k in state.keys)
    parts = [_Part.of(term) for term in state.terms]
    # A row that is inserted and deleted in one change must not become the minimum.
    netted = net(Project((*passthrough(columns_needed(state, child)), Output(WEIGHT, Col(WEIGHT))), of.change(child)))
    change = of.share(_changed(state, parts, repeat_rows(state, netted)))
    before = _before(keys, parts, stored, change)
    pairs = tuple(KeyPair(Col(k), Col(b), null_safe=True) for k, b in zip(keys, before.columns, strict=False))
    after = Project(
        (
            *passthrough(keys),
            *(Output(p.term.column, p.after) for p in parts),
            *(Output(p.is_lost, _flag(p.loss)) for p in parts if p.loss is not None),
        ),
        OuterJoin(change, before, pairs, kind="left"),
    )
    count, is_invalidated = Col(state.terms[0].column), new_column("is_invalidated", "boolean")
    invalidation = _any(tuple(p.invalidation for p in parts if p.invalidation is not None))
    if keys:
        invalidation = Call("and", (Call(">", (count, Lit(0))), invalidation))
    known = of.share(Project((*passthrough(state.columns), Output(is_invalidated, _flag(invalidation))), after))
    invalidated = Shared(of.new_name(), Project(passthrough(keys or state.columns), Filter(Col(is_invalidated), known)))
    valid: Plan = Filter(Call("!", (Col(is_invalidated),)), known)
    if keys:
        valid = Filter(Call("!", (Call("=", (count, Lit(0))),)), valid)
        anew = state_of(state, restrict(of.new(child), tuple(k.expr for k in state.keys), invalidated))
    else:
        anew = When(invalidated, state_of(state, of.new(child)))
    misfits = (Call("isnull", (Col(t.column),)) for t in state.terms if t.kind == "sum")
    return Merge(
        Project(passthrough(keys or state.columns), known),
        Union((Project(passthrough(state.columns), valid), anew), state.columns),
        Filter(_any((Call("<", (count, Lit(0))), *misfits)), known),
    )


def columns_needed(state: AggregateState, child: Plan) -> tuple[Column, ...]:
    """Return the input columns that a state depends on."""
    exprs = (*(k.expr for k in state.keys), *(e for t in state.terms for e in (t.value, *t.where) if e is not None))
    refs = frozenset[int]().union(*(e.refs for e in exprs))
    return tuple(c for c in child.columns if c.id in refs)


@dataclass(frozen=True, slots=True)
class _Part:
    """A term of a state with the columns of its merge.

    Attributes:
        before: What is stored.
        came: What the change adds; of a least or greatest value, that of the rows that came.
        went: The least or greatest value of the rows that went.
        is_lost: Whether a stored least or greatest value may have gone.
    """

    term: Term
    before: Column
    came: Column
    went: Column
    is_lost: Column

    @classmethod
    def of(cls, term: Term) -> _Part:
        name, type_ = term.column.name, term.column.type
        before, came, went = (new_column(name, type_) for _ in range(3))
        return cls(term, before, came, went, new_column("is_lost", "boolean"))

    @property
    def is_extreme(self) -> bool:
        return self.term.kind in ("least", "greatest")

    @property
    def after(self) -> Expr:
        stored = never_null(Col(self.before), self.term)
        if self.is_extreme:
            return Call(self.term.kind, (stored, Col(self.came)))
        if self.term.kind == "sum":
            return Cast(Call("try_add", (Col(self.came), stored)), self.term.column)
        return Call("+", (Col(self.came), stored))

    @property
    def loss(self) -> Expr | None:
        """Return whether a deleted value reaches the stored one and no inserted value does."""
        if not self.is_extreme:
            return None
        reaches, misses = ("<=", "<") if self.term.kind == "least" else (">=", ">")
        is_missed = Call("or", (Call("isnull", (Col(self.came),)), Call(misses, (Col(self.before), Col(self.came)))))
        return Call("and", (Call(reaches, (Col(self.went), Col(self.before))), is_missed))

    @property
    def invalidation(self) -> Expr | None:
        """Return, over the state afterwards, whether this part must be computed from rows."""
        if self.is_extreme:
            return Col(self.is_lost)
        if self.term.bound is None:
            return None
        magnitudes = Col(self.term.bound)
        times = Cast(Lit(_MAX_MAGNITUDES), self.term.column)
        most = Call("*", (Call("abs", (Col(self.term.column),)), times))
        # NaN is greater than any number to Spark.
        is_infinite = Call(">", (magnitudes, Cast(Lit(_HUGE), self.term.column)))
        return Call("or", (Call(">", (magnitudes, most)), is_infinite))


def _changed(state: AggregateState, parts: list[_Part], change: Plan) -> Plan:
    """Return what the change adds to each part of the state of each touched group."""
    found: list[Output] = []
    brought: list[Output] = []
    for part in parts:
        functions = {part.came: change_of_term(part.term)}
        if part.is_extreme:
            functions = {part.came: _extreme(part.term, _IS_INSERTION), part.went: _extreme(part.term, IS_DELETION)}
        for column, function in functions.items():
            raw = new_column(column.name)
            found.append(Output(raw, function))
            brought.append(Output(column, never_null(Col(raw), part.term)))
    keys = tuple(k.column for k in state.keys)
    return Project((*passthrough(keys), *brought), group_by_keys(state, tuple(found), change))


def _extreme(term: Term, among: Expr) -> Expr:
    function = "min" if term.kind == "least" else "max"
    return Call(function, () if term.value is None else (term.value,), where=conjunction_of((among, *term.where)))


def _before(keys: tuple[Column, ...], parts: list[_Part], stored: Scan, change: Plan) -> Project:
    """Return the stored rows of the touched groups under fresh columns."""
    renamed = (
        *(Output(new_column(k.name, k.type), Col(k)) for k in keys),
        *(Output(p.before, Col(p.term.column)) for p in parts),
    )
    touched = restrict(stored, tuple(map(Col, keys)), Project(passthrough(keys), change)) if keys else stored
    return Project(renamed, touched)


def _any(conditions: tuple[Expr, ...]) -> Expr:
    return reduce(lambda a, b: Call("or", (a, b)), conditions)


def _flag(condition: Expr) -> Expr:
    """Treat unknown as false."""
    return Call("if", (condition, Lit(value=True), Lit(value=False)))
