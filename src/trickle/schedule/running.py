"""A loop in a thread of its own, and a loop that signals end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trickle.schedule.loop import Loop

logger = logging.getLogger("trickle")


@contextmanager
def stopped_by_signals(stop: Callable[[], None], cancel: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT end a loop cleanly, where this is the main thread; a second one calls off what is at work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = iter([stop])

    def end(*_: object) -> None:
        next(ends, cancel)()

    with ending_signals(end):
        yield


@contextmanager
def ending_signals(handler: Callable[..., None]) -> Iterator[None]:
    """Let a function handle SIGTERM and SIGINT."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Running:
    """A loop in a thread of its own; leave its context, or call ``stop``, to end it."""

    def __init__(self, loop: Loop) -> None:
        """Start it."""
        self._loop = loop
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="trickle-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as error:
            logger.exception("the loop ended")
            self._failure = error

    @property
    def is_running(self) -> bool:
        """True until it is stopped."""
        return self._thread.is_alive()

    def stop(self, *, cancel: bool = False) -> None:
        """End it: a refresh that is at work ends first, or is called off. Raises what ended it before, if anything did."""
        self._loop.stop()
        if cancel:
            self._loop.cancel()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
