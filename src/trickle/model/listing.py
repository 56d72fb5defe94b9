"""Lists that notebooks show as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

_Item = TypeVar("_Item")


class Listing(list[_Item], Generic[_Item]):
    """A list that a notebook shows as a table."""

    __slots__ = ("_draw",)

    def __init__(self, items: Iterable[_Item], draw: Callable[[Sequence[Any]], str]) -> None:
        """Take the items, and what draws them."""
        super().__init__(items)
        self._draw = draw

    def _repr_html_(self) -> str:
        return self._draw(self)
