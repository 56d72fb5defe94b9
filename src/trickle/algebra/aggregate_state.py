"""The stored state of an aggregate, to which changes are added or into which they are merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trickle.algebra.expr import Column, Expr, Output

TermKind = Literal["sum", "least", "greatest", "double", "magnitude"]


@dataclass(frozen=True, slots=True)
class Term:
    """One column of an aggregate's state, over the rows that pass.

    sum                 the sum of a value, or without one the number of rows
    least, greatest     of the values, NULL if there are none
    double              a sum of floating-point numbers; ``bound`` is the column of the magnitudes in it
    magnitude           the magnitudes of everything added or subtracted since the group was computed from its rows
    """

    column: Column
    value: Expr | None = None
    where: tuple[Expr, ...] = ()
    kind: TermKind = "sum"
    bound: Column | None = None


@dataclass(frozen=True, slots=True)
class AggregateState:
    """An aggregate as a state: for instance sums over its input, from which its outputs are computed.

    Attributes:
        keys: The state's key columns, each with the group key it holds.
        terms: The state's other columns; the first counts all rows of the group.
        results: The value of each aggregate function, over the state.
        outputs: The aggregate's outputs, over the keys as the query names them and the results.
    """

    keys: tuple[Output, ...]
    terms: tuple[Term, ...]
    results: tuple[Output, ...]
    outputs: tuple[Output, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The state's columns: keys, then terms."""
        return (*(o.column for o in self.keys), *(t.column for t in self.terms))

    @property
    def is_additive(self) -> bool:
        """True if changes can be added without reading rows: all terms are exact sums."""
        return all(t.kind == "sum" for t in self.terms)
