"""What a refresh computes, in one of three shapes, by how the table takes it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from trickle.algebra.aggregate_state import AggregateState
    from trickle.algebra.expr import Column
    from trickle.algebra.plan import Plan


@dataclass(frozen=True, slots=True)
class AddToState:
    """Add to the stored state of an additive aggregate.

    Attributes:
        state: What the state consists of.
        change: What is added, one row for each touched group.
    """

    state: AggregateState
    change: Plan


@dataclass(frozen=True, slots=True)
class ReplaceKeys:
    """Replace the stored rows of touched keys.

    Attributes:
        keys: The output columns that hold the key; none for a result of one row.
        touched: The touched keys, in the order of ``keys``.
        rows: The new rows of those keys.
        broken: Rows that tell that the stored ones are not what they should be.
    """

    keys: tuple[Column, ...]
    touched: Plan
    rows: Plan
    broken: Plan | None = None


@dataclass(frozen=True, slots=True)
class Shortcut:
    """The same change computed from less.

    Attributes:
        change: The change.
        unless: Rows that forbid it.
    """

    change: Plan
    unless: Plan


@dataclass(frozen=True, slots=True)
class ApplyBag:
    """Add and take away whole rows.

    Attributes:
        change: The netted change.
        shortcut: A cheaper way to it, for most changes.
    """

    change: Plan
    shortcut: Shortcut | None = None


ChangePlan: TypeAlias = AddToState | ReplaceKeys | ApplyBag
