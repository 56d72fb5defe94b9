"""What becomes of a plan in Catalyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trickle.algebra.expr import Column


@dataclass(frozen=True, slots=True)
class Lowered:
    """A Catalyst plan, and the attribute that carries each of our columns."""

    plan: Any
    attributes: Mapping[int, Any]

    def named(self, columns: Iterable[Column]) -> list[Any]:
        """Return the attributes of some columns."""
        return [self.attributes[c.id] for c in columns]
