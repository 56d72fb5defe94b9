"""The arguments of a refresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trickle.model.cost import Costs
    from trickle.model.definition import SourceVersion
    from trickle.model.events import Trigger
    from trickle.refresh.deadline import Deadline
    from trickle.refresh.steps import Step
    from trickle.tables.redefinition import Redefinition


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a refresh.

    Attributes:
        full: Recompute all rows, and the state of every state table.
        redefine: What the table becomes with the commit that replaces all rows; only with ``full``.
        at: Versions of sources to go to; the others go to their newest.
        pinned: Versions of sources that a run chose when it began. A table that others have brought further since stays there.
        costs: What this process knows of earlier refreshes; None to take what the table's record tells.
        before_step: Called with each step before it runs. What it raises ends the refresh; no step is ever half done.
        goal: For a state table: the versions chosen already.
        ignores_fuse: Apply a change of any size.
        skips_change: Advance the frontier without applying the change.
        timeout: The seconds that it may take; None for what the table's options say.
        deadline: Until when it may work; None for any time.
        trigger: Who asked for it.
        may_go_back: For a state table: False if it is a conflict that another refresh has brought it further than its goal.
    """

    full: bool = False
    redefine: Redefinition | None = None
    at: Mapping[str, int] | None = None
    pinned: Mapping[str, int] | None = None
    costs: Costs | None = None
    before_step: Callable[[Step], None] | None = None
    goal: Mapping[str, SourceVersion] | None = None
    may_go_back: bool = True
    ignores_fuse: bool = False
    skips_change: bool = False
    timeout: float | None = None
    deadline: Deadline | None = None
    trigger: Trigger = "manual"
