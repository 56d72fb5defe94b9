"""What a refresh computes: one of three kinds of change plan, by how the result is applied."""

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
        state: The columns of the state.
        change: What to add, one row for each touched group.
    """

    state: AggregateState
    change: Plan


@dataclass(frozen=True, slots=True)
class ReplaceKeys:
    """Replace the stored rows of touched keys.

    Attributes:
        keys: The output columns of the key; none for a single-row result.
        touched: The touched keys, in the order of ``keys``.
        rows: The new rows of those keys.
        broken: Rows that show that the stored rows are wrong.
    """

    keys: tuple[Column, ...]
    touched: Plan
    rows: Plan
    broken: Plan | None = None


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A cheaper way to compute the same change.

    Attributes:
        change: The change.
        unless: The shortcut is invalid if this plan has rows; None if it always holds.
        if_at_hand: True if it is cheaper only while the driver has the stored rows.
    """

    change: Plan
    unless: Plan | None
    if_at_hand: bool = False


@dataclass(frozen=True, slots=True)
class ApplyBag:
    """Insert and delete whole rows.

    Attributes:
        change: The netted change.
        shortcut: A cheaper way to compute it, for most changes.
    """

    change: Plan
    shortcut: Shortcut | None = None


ChangePlan: TypeAlias = AddToState | ReplaceKeys | ApplyBag
