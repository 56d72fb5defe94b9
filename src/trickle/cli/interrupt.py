"""Ctrl-C, also where a library swallows the exception that Python raises for it, as some do while they are imported."""

from __future__ import annotations

import signal
import threading
from typing import Final

_seen: Final = threading.Event()


def watch_interrupts() -> None:
    """Remember Ctrl-C from now on. Spark puts a handler of its own in place when it starts: call this again after it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _take)


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


def _take(_: int, __: object) -> None:
    _seen.set()
    raise KeyboardInterrupt
