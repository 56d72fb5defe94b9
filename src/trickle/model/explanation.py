"""How a stream table is maintained: a text, and the parts of it that notebooks draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.show.plan import explanation

if TYPE_CHECKING:
    from trickle.model.reason import Reason


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One operator of a plan.

    Attributes:
        text: The operator and its expressions.
        law: How its change follows from those of its inputs; empty for what has none.
        cost: What has to be read for that besides the change.
    """

    text: str
    law: str = ""
    cost: str = ""
    inputs: tuple[PlanNode, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A plan whose rows are stored: a state table, or the stream table itself.

    Attributes:
        title: What is stored.
        plan: Its operators.
    """

    title: str
    plan: PlanNode


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The next refresh, as things are now.

    Attributes:
        mode: ``differential``, ``full``, ``no_data``, ``nothing`` or ``an error``.
        steps: Its steps in words.
    """

    mode: str
    steps: tuple[str, ...]


class Explanation(str):
    """The text that ``explain`` returns, with its parts.

    Attributes:
        table: The stream table, or what a query is called that is none yet.
        parts: What is stored, with the operators that compute it; the stream table itself is last.
        obstacles: Why it is refreshed in full; empty if it is not.
        next_refresh: None for a query that is not a stream table yet.
    """

    __slots__ = ("next_refresh", "obstacles", "parts", "table")

    table: str
    parts: tuple[StoredPart, ...]
    obstacles: tuple[Reason, ...]
    next_refresh: Foreseen | None

    def __new__(
        cls,
        text: str,
        table: str = "",
        parts: tuple[StoredPart, ...] = (),
        obstacles: tuple[Reason, ...] = (),
        next_refresh: Foreseen | None = None,
    ) -> Explanation:
        """Make a text that remembers its parts."""
        made = super().__new__(cls, text)
        made.table, made.parts, made.obstacles, made.next_refresh = table, parts, obstacles, next_refresh
        return made

    def _repr_html_(self) -> str:
        return explanation(self)
