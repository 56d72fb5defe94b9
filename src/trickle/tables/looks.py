"""One look at each log for one attempt at a refresh, where a look costs a request.

What a refresh sees then is of one moment, and that suffices: its commit is made under the condition that its version is not
there yet, so whoever came first since the look is noticed by the commit itself. Whoever commits in another way looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary

Heads = WeakKeyDictionary[Any, tuple[int, int]]
"""The generation and the newest version of each log, as they were seen."""

_heads: Final[ContextVar[Heads | None]] = ContextVar("heads", default=None)
_POOL: Final = ThreadPoolExecutor(16, thread_name_prefix="trickle-looks")


@contextmanager
def one_look(*, goes_on: bool = False) -> Iterator[None]:
    """Look at each log once in here. What ``goes_on`` with something that looked already takes its looks."""
    if goes_on and _heads.get() is not None:
        yield
        return
    token = _heads.set(WeakKeyDictionary())
    try:
        yield
    finally:
        _heads.reset(token)


def seen(log: Any, generation: int) -> int | None:
    """Return the newest version of a log as it was seen; None if it is to be looked at."""
    heads = _heads.get()
    found = None if heads is None else heads.get(log)
    return found[1] if found is not None and found[0] == generation else None


def note(log: Any, generation: int, head: int) -> None:
    """Take down what was seen, or committed."""
    heads = _heads.get()
    if heads is not None:
        heads[log] = generation, head


def look_again() -> None:
    """Forget what was seen."""
    heads = _heads.get()
    if heads is not None:
        heads.clear()


def at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Make calls side by side; what one raises, it raises again when it is made in earnest."""
    futures = [_POOL.submit(copy_context().run, call) for call in calls]
    for future in futures:
        future.exception()
