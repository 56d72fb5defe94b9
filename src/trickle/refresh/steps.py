"""The steps of a refresh as data: ``decide`` returns them, ``run`` executes them, ``explain`` prints them, tests check them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

if TYPE_CHECKING:
    from trickle.errors import TrickleError
    from trickle.model.reason import Reason


@dataclass(frozen=True, slots=True)
class NoData:
    """Do nothing: the sources are where the last refresh left them."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Fill a state table at the frontier of the last refresh, which went without it.

    Attributes:
        damage: What is wrong with it; it is then rebuilt.
    """

    state_table: str
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class RefreshStateTable:
    """Bring a state table to the new frontier.

    Attributes:
        full: True to recompute it in any case.
        may_go_back: False if it is a conflict when another refresh has moved it beyond the new frontier.
        damage: What is wrong with it; it is then rebuilt.
    """

    state_table: str
    full: bool = False
    may_go_back: bool = False
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class ApplyChange:
    """Compute the change of the table from the changes of its sources and state tables, and commit it."""

    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdvanceFrontier:
    """Commit the new frontier alone: no row of the table changes.

    Attributes:
        skips: True if rows should change, but a person chose to pass over it.
    """

    skips: bool = False


@dataclass(frozen=True, slots=True)
class Recompute:
    """Replace all rows.

    Attributes:
        reason: Why the change is not enough.
        from_sources: True to compute them from the sources alone; state tables stay where they are.
    """

    reason: Reason
    from_sources: bool = False


@dataclass(frozen=True, slots=True)
class CleanState:
    """Delete the files that only older versions of a state table need."""

    state_table: str
    version: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise an error; nothing is written."""

    error: TrickleError
    cause: Exception | None = None


Step: TypeAlias = NoData | CatchUp | RefreshStateTable | ApplyChange | AdvanceFrontier | Recompute | CleanState | Fail


def describe(step: Step) -> str:
    """Say what a step does.

    >>> describe(ApplyChange(("orders", "customers")))
    'compute the change from those of orders, customers, and commit it'
    """
    match step:
        case NoData():
            return "nothing is new: the sources are where the last refresh left them"
        case CatchUp(name, damage):
            return f"fill state table {name} at the last frontier" + _rebuilt(damage)
        case RefreshStateTable(name, full, _, damage):
            return f"{'recompute' if full or damage else 'refresh'} state table {name}" + _rebuilt(damage)
        case ApplyChange(changed):
            return f"compute the change from those of {', '.join(changed)}, and commit it"
        case AdvanceFrontier(skips=True):
            return "commit the new frontier and pass over the change"
        case AdvanceFrontier():
            return "commit the new frontier: no row changes"
        case Recompute(reason, from_sources):
            return f"recompute all rows{' from the sources alone' if from_sources else ''}: {reason}"
        case CleanState(name, version):
            return f"delete files of state table {name} before version {version}"
        case Fail(error):
            return f"fail: {error}"
        case _:
            assert_never(step)


def _rebuilt(damage: str | None) -> str:
    return "" if damage is None else f", rebuilt: {damage}"
