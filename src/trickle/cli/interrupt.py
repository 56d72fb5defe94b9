"""Ctrl-C, also where a library swallows the exception that Python raises for it, as some do while they are imported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_seen: Final = threading.Event()


def watch_interrupts() -> None:
    """Remember Ctrl-C from now on."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _take)


@contextmanager
def keeping_interrupts() -> Iterator[None]:
    """Let nobody take the place of our handler for a while: that of Spark breaks what is being said to the JVM."""
    own = signal.signal

    def keep(number: int, handler: Any) -> Any:
        return signal.getsignal(number) if number == signal.SIGINT else own(number, handler)

    signal.signal = keep  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = own


def was_interrupted() -> bool:
    """Return whether Ctrl-C was typed: what failed since may have failed for it."""
    return _seen.is_set()


def check_interrupts() -> None:
    """Raise again what was swallowed.

    Raises:
        KeyboardInterrupt: Ctrl-C was typed.
    """
    if _seen.is_set():
        raise KeyboardInterrupt


def settle_interrupt() -> None:
    """Let the process end with the exit code that it is given, after a Ctrl-C that was handled.

    If the exception passes through code that runs from text, as classes of data and named tuples do while they are
    imported, CPython takes it for unhandled, and ``python -m`` ends itself by the signal. To run any text takes that back.
    """
    exec("")


def _take(_: int, __: object) -> None:
    _seen.set()
    raise KeyboardInterrupt
