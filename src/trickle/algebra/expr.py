"""Columns and scalar expressions of the plan language.

A user's expression stays what Catalyst made of it: an opaque handle, with the few facts that rules need. The engine's own
expressions are small: a column, a constant, a call of a built-in function. Only ``trickle.catalyst`` looks into a handle.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final

_ids = itertools.count(2)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a plan. Its id is unique within one definition; two plans that share an id carry the same values.

    ``handle`` is the Catalyst attribute of a lifted column and None for a column the engine made.
    """

    id: int
    name: str
    type: str = field(compare=False, default="")
    orderable: bool = field(compare=False, default=True)
    handle: Any = field(compare=False, repr=False, default=None)

    def __str__(self) -> str:
        """Read as ``name#id``, as Spark prints it."""
        return f"{self.name}#{self.id}" if self.id >= 0 else f"{self.name}~{-self.id}"


# The signed number of copies of a change row. It is the last column of every change plan. Two changes are never joined, so
# one id serves them all.
WEIGHT: Final = Column(-1, "__weight", "bigint")


def new_column(name: str, type_: str = "", *, orderable: bool = True, handle: Any = None) -> Column:
    """Make an internal column; its negative id never collides with Catalyst's."""
    return Column(-next(_ids), name, type_, orderable, handle)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A Catalyst expression. Compared by identity of the lifted expression (``key``), never by its text."""

    key: int
    refs: frozenset[int]
    text: str = field(compare=False)
    handle: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        """Read as Catalyst prints it."""
        return self.text


@dataclass(frozen=True, slots=True)
class Col:
    """The value of a column."""

    column: Column

    @property
    def refs(self) -> frozenset[int]:
        """Columns read."""
        return frozenset((self.column.id,))

    def __str__(self) -> str:
        """Read as the column."""
        return str(self.column)


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant. A NULL takes its type from ``like``; dates and decimals come from conditions that users wrote."""

    value: int | bool | str | date | Decimal | None
    like: Column | None = None

    @property
    def refs(self) -> frozenset[int]:
        """Columns read: none."""
        return frozenset()

    def __str__(self) -> str:
        """Read as a SQL literal."""
        return "null" if self.value is None else repr(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in Spark function or operator by its SQL name, over arguments already of the right types."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None

    @property
    def refs(self) -> frozenset[int]:
        """Columns read."""
        inner = frozenset[int]().union(*(a.refs for a in self.args))
        return inner | self.where.refs if self.where is not None else inner

    def __str__(self) -> str:
        """Read as a function call, with the rows it is restricted to."""
        distinct = "DISTINCT " if self.distinct else ""
        where = "" if self.where is None else f" FILTER (WHERE {self.where})"
        return f"{self.name}({distinct}{', '.join(str(a) for a in self.args)}){where}"


@dataclass(frozen=True, slots=True)
class Cast:
    """An expression as the type of a column."""

    expr: Expr
    like: Column

    @property
    def refs(self) -> frozenset[int]:
        """Columns read."""
        return self.expr.refs

    def __str__(self) -> str:
        """Read as a SQL cast."""
        return f"cast({self.expr} as {self.like.type})"


Expr = Opaque | Col | Lit | Call | Cast


@dataclass(frozen=True, slots=True)
class Output:
    """A named result: ``expr AS column``."""

    column: Column
    expr: Expr

    @property
    def is_passthrough(self) -> bool:
        """True if the column is passed on as it is, under its own id."""
        return isinstance(self.expr, Col) and self.expr.column.id == self.column.id

    def __str__(self) -> str:
        """Read as ``expr AS column``."""
        return str(self.column) if self.is_passthrough else f"{self.expr} AS {self.column}"


def passthrough(columns: tuple[Column, ...]) -> tuple[Output, ...]:
    """Pass columns on as they are."""
    return tuple(Output(c, Col(c)) for c in columns)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """One equality of a join condition between the two sides."""

    left: Expr
    right: Expr
    null_safe: bool = False

    def __str__(self) -> str:
        """Read as the comparison."""
        return f"{self.left} {'<=>' if self.null_safe else '='} {self.right}"
