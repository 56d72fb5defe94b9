"""The plan language: a query after Spark's optimiser, in about twenty kinds of node.

Nodes are immutable and know their columns. A node is checked when it is built: an expression may only read columns of
the node's inputs. Fields that hold plans are the inputs, see ``trickle.algebra.node``. A *change plan* is an ordinary plan
whose last column is ``WEIGHT``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from trickle.algebra.aggregate_state import AggregateState  # noqa: TC001  # fields are known by their types
from trickle.algebra.expr import WEIGHT, Column, Expr, KeyPair, Output
from trickle.algebra.node import ASIDE, OneInput, check_refs
from trickle.algebra.node import Plan as Plan

At = Literal["old", "new", "change"]


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Plan):
    """A source at the old or new frontier, or what changed between them."""

    source: str
    base: tuple[Column, ...]
    at: At = "new"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, and the weight for a change."""
        return (*self.base, WEIGHT) if self.at == "change" else self.base


@dataclass(frozen=True, slots=True, eq=False)
class Values(Plan):
    """Constant rows: VALUES, SELECT without FROM, a table AS OF a fixed version."""

    given: tuple[Column, ...]
    handle: Any = field(repr=False)
    text: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """As given."""
        return self.given


@dataclass(frozen=True, slots=True, eq=False)
class Empty(Plan):
    """No rows."""

    given: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """As given."""
        return self.given


@dataclass(frozen=True, slots=True, eq=False)
class Shared(OneInput):
    """A result computed once in a refresh, read from many places. ``name`` is unique within a change plan."""

    name: str
    child: Plan


@dataclass(frozen=True, slots=True, eq=False)
class When(Plan):
    """The child's rows if ``trigger`` has any row, else nothing: skips work that a change turned out not to need."""

    trigger: Shared
    child: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the child."""
        return self.child.columns

    def has_no_rows_over(self, empty: Sequence[bool]) -> bool:
        """Without a trigger there is nothing."""
        return any(empty)


@dataclass(frozen=True, slots=True, eq=False)
class Filter(OneInput):
    """Rows for which the condition is true.

    ``keeps_first`` says that these are the rows of each partition of the window below up to some ranks, and that the window
    computes ranks alone.
    """

    is_linear: ClassVar[bool] = True
    condition: Expr
    child: Plan
    keeps_first: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Project(OneInput):
    """Computed columns."""

    is_linear: ClassVar[bool] = True
    outputs: tuple[Output, ...]
    child: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        """One for each output."""
        return tuple(o.column for o in self.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Join(Plan):
    """What all joins share: two inputs with no common column id, equalities between them, and other conditions.

    ``small`` names the side known to be small, which is then broadcast.
    """

    left: Plan
    right: Plan
    keys: tuple[KeyPair, ...] = ()
    residual: tuple[Expr, ...] = ()
    small: Literal["left", "right"] | None = None

    def __post_init__(self) -> None:
        """Check references and that the sides are disjoint."""
        check_refs(self, (k.left for k in self.keys), (self.left,))
        check_refs(self, (k.right for k in self.keys), (self.right,))
        check_refs(self, self.residual, (self.left, self.right))
        if common := self.left.ids & self.right.ids:
            message = f"{type(self).__name__}: both sides give column ids {sorted(common)}"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, eq=False)
class InnerJoin(Join):
    """Pairs for which the condition is true; without one, all pairs."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left's and right's, the weight of either side last."""
        both = (*self.left.columns, *self.right.columns)
        return (*(c for c in both if c != WEIGHT), *(c for c in both if c == WEIGHT))

    def has_no_rows_over(self, empty: Sequence[bool]) -> bool:
        """A side without rows leaves no pair."""
        return any(empty)


@dataclass(frozen=True, slots=True, eq=False)
class OuterJoin(Join):
    """Pairs, and rows of the preserved side or sides without a match, padded with NULLs."""

    kind: Literal["left", "right", "full"] = "left"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left's and right's."""
        return (*self.left.columns, *self.right.columns)


@dataclass(frozen=True, slots=True, eq=False)
class SemiJoin(Join):
    """Left rows with a match (semi), without one (anti), or all with a flag (existence)."""

    kind: Literal["semi", "anti", "existence"] = "semi"
    flag: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left's, and the flag of an existence join, before the weight."""
        if self.flag is None:
            return self.left.columns
        left = self.left.columns
        return (*left[:-1], self.flag, WEIGHT) if self.left.is_change else (*left, self.flag)

    def has_no_rows_over(self, empty: Sequence[bool]) -> bool:
        """Left rows may need no match."""
        left, right = empty
        return left or (self.kind == "semi" and right)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(OneInput):
    """One row for each distinct value of the keys; without keys, always one row.

    ``state`` is its form as a state, None if it has none. ``inexact`` says that its values may have other last digits when
    they are computed again: sums of floating-point numbers.
    """

    keys: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    child: Plan
    state: AggregateState | None = field(default=None, repr=False)
    inexact: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """One for each output."""
        return tuple(o.column for o in self.outputs)

    def has_no_rows_over(self, empty: Sequence[bool]) -> bool:
        """Without keys there is one row over no rows."""
        return bool(self.keys) and all(empty)


@dataclass(frozen=True, slots=True, eq=False)
class Window(OneInput):
    """The child's rows, each with values computed over its partition; ``inexact`` as of an aggregate."""

    functions: tuple[Output, ...]
    partition: tuple[Expr, ...]
    order: tuple[Expr, ...]
    child: Plan
    inexact: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's, then one for each function."""
        return (*self.child.columns, *(o.column for o in self.functions))


@dataclass(frozen=True, slots=True, eq=False)
class RowWise(OneInput):
    """An operator that makes rows from each row alone: a generator (explode, UDTF) or the evaluation of UDFs."""

    is_linear: ClassVar[bool] = True
    made: tuple[Column, ...]
    child: Plan
    label: str
    refs: frozenset[int]
    handle: Any = field(repr=False)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's, then what is made; the weight stays last."""
        child = self.child.columns
        return (*child[:-1], *self.made, WEIGHT) if self.child.is_change else (*child, *self.made)

    @property
    def reads(self) -> frozenset[int]:
        """What the operator reads: its expressions are Catalyst's."""
        return self.refs


@dataclass(frozen=True, slots=True, eq=False)
class GroupMap(Plan):
    """The result of a function over each group of rows; with several inputs, over the groups with the same key.

    ``keys`` holds the key of each input, ``handle`` what makes rows of the inputs once they are in groups.
    """

    by_position: ClassVar[bool] = True

    keys: tuple[tuple[Expr, ...], ...]
    children: tuple[Plan, ...]
    made: tuple[Column, ...]
    label: str
    handle: Any = field(repr=False)

    def __post_init__(self) -> None:
        """Check references."""
        for exprs, child in zip(self.keys, self.children, strict=True):
            check_refs(self, exprs, (child,))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The function's result."""
        return self.made


@dataclass(frozen=True, slots=True, eq=False)
class Expand(OneInput):
    """Several projections of each row: GROUPING SETS, several DISTINCT aggregates."""

    is_linear: ClassVar[bool] = True
    projections: tuple[tuple[Expr, ...], ...]
    made: tuple[Column, ...]
    child: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of each projection."""
        return self.made


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(OneInput):
    """Each row of a change as often as its weight says, every copy with the weight +1 or -1."""

    child: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Union(Plan):
    """All rows of all children, by position (UNION ALL); for changes, their sum."""

    is_linear: ClassVar[bool] = True
    by_position: ClassVar[bool] = True

    children: tuple[Plan, ...]
    given: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Check that the children are alike."""
        if any(len(c.columns) != len(self.columns) for c in self.children):
            message = "Union: its children have different numbers of columns"
            raise ValueError(message)

    @property
    def columns(self) -> tuple[Column, ...]:
        """As given."""
        return self.given


@dataclass(frozen=True, slots=True, eq=False)
class TopK(OneInput):
    """The first ``limit`` rows after ``offset`` in a total order. ``limit`` None: all the rest."""

    order: tuple[Expr, ...]
    limit: int | None
    offset: int
    child: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Plan):
    """A recursive CTE: the anchor's rows, and ``step`` applied to the rows of the last round until it yields none."""

    by_position: ClassVar[bool] = True

    id: int
    anchor: Plan
    step: Plan
    given: tuple[Column, ...]
    max_depth: int = 100

    @property
    def columns(self) -> tuple[Column, ...]:
        """As given."""
        return self.given


@dataclass(frozen=True, slots=True, eq=False)
class LoopRef(Plan):
    """Inside a loop's step: the rows of the last round."""

    loop: int
    base: tuple[Column, ...]
    at: At = "new"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The loop's columns, and the weight in a change."""
        return (*self.base, WEIGHT) if self.at == "change" else self.base


@dataclass(frozen=True, slots=True, eq=False)
class Iterate(Plan):
    """The change of a loop: a seed, and ``step`` applied to it again and again until it yields nothing.

    Computed once, like a shared result. ``step`` reads the last round's rows through ``LoopRef … change``.
    """

    name: str
    loop: int
    seed: Plan
    step: Plan = field(metadata=ASIDE)
    max_depth: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """As the seed."""
        return self.seed.columns
