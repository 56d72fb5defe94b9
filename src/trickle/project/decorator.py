"""``@trickle.stream_table``: a function of a project whose DataFrame, or SQL text, is a stream table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

_Function = TypeVar("_Function", bound=Callable[[], Any])


@dataclass(frozen=True, slots=True)
class Decorated:
    """A function that was decorated.

    Attributes:
        words: What the decorator was given beside the name.
        line: Where the function stands in its file.
    """

    name: str
    function: Callable[[], Any]
    words: dict[str, Any]
    line: int


class Registry(Protocol):
    """Where decorated functions are gathered."""

    def register(self, decorated: Decorated) -> None:
        """Take in a function."""
        ...


_active: ContextVar[Registry | None] = ContextVar("trickle_project", default=None)


@contextmanager
def registering(registry: Registry) -> Iterator[None]:
    """Let the functions that are decorated meanwhile be gathered."""
    token = _active.set(registry)
    try:
        yield
    finally:
        _active.reset(token)


@overload
def stream_table(function: _Function, /) -> _Function: ...


@overload
def stream_table(
    *, name: str | None = None, schedule: str | None = None, mode: str | None = None, **options: Any
) -> Callable[[_Function], _Function]: ...


def stream_table(
    function: _Function | None = None,
    /,
    *,
    name: str | None = None,
    schedule: str | None = None,
    mode: str | None = None,
    **options: Any,
) -> _Function | Callable[[_Function], _Function]:
    """Define a stream table of a project by a function that returns a DataFrame or SQL text.

    The function has no parameters, and is called when its project is applied; ``spark`` is there in its file. It stays an
    ordinary function: outside of a project the decorator does nothing else.

    Args:
        function: The function, if the decorator is used without parentheses.
        name: The name of the table; that of the function if it is not given.
        schedule: When it is refreshed, ``"by hand"`` for never; that of the project's defaults if it is not given.
        mode: ``auto``, ``differential`` or ``full``.
        options: See ``TableOptions``: ``comment``, ``partition_by``, ``cluster_by``, ``properties``, ``tags`` …

    Example:
        >>> @stream_table(schedule="5m")
        ... def daily():
        ...     return "SELECT day, sum(amount) AS total FROM orders GROUP BY day"
    """
    said = {"schedule": schedule, "mode": mode, **options}
    words = {key: value for key, value in said.items() if value is not None}

    def register(decorated: _Function) -> _Function:
        registry = _active.get()
        if registry is not None:
            line = getattr(inspect.unwrap(decorated), "__code__", None)
            found = Decorated(name or decorated.__name__, decorated, words, line.co_firstlineno if line else 1)
            registry.register(found)
        return decorated

    return register if function is None else register(function)
