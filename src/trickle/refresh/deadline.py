"""Until when a refresh may work, and whether it was called off: asked between its steps, and last before its commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from trickle.errors import CancelledError
from trickle.model.schedule import write_duration


class Deadline:
    """The time that one refresh has. Thread-safe: another thread may call the refresh off.

    While a commit is being made nothing is called off any more: then it is not known whether it is made.
    """

    def __init__(self, table: str, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Start now; the refresh of a table has so many seconds, None for any time."""
        self.table = table
        self.seconds = seconds
        self._clock = clock
        self._ends = None if seconds is None else clock() + seconds
        self._is_cancelled = False
        self._is_committing = False
        self._lock = Lock()

    @property
    def is_over(self) -> bool:
        """True if the refresh must end, unless it is committing."""
        return not self._is_committing and (self._is_cancelled or self._is_late)

    @property
    def _is_late(self) -> bool:
        return self._ends is not None and self._clock() >= self._ends

    def cancel(self) -> None:
        """Call the refresh off."""
        self._is_cancelled = True

    def check(self) -> None:
        """End the refresh if it has no time left.

        Raises:
            CancelledError: ``TIMED_OUT`` or ``CANCELLED``.
        """
        if self.is_over:
            raise self.error()

    def begin_commit(self) -> None:
        """Let nobody call the refresh off from here on; the last moment for it to end."""
        with self._lock:
            self.check()
            self._is_committing = True

    def end_commit(self) -> None:
        """Go on after the commit of a state table."""
        with self._lock:
            self._is_committing = False

    def while_uncommitted(self, do: Callable[[], object]) -> None:
        """Do something only if no commit is being made, and let none begin meanwhile."""
        with self._lock:
            if not self._is_committing:
                do()

    def error(self) -> CancelledError:
        """Build the error that ends the refresh."""
        if self._is_cancelled or self.seconds is None:
            text = f"the refresh of '{self.table}' was called off; nothing was committed."
            return CancelledError("CANCELLED", text, hint="The next refresh starts where the last one ended.")
        text = f"the refresh of '{self.table}' took longer than {write_duration(self.seconds)} and was cancelled."
        hint = "Nothing was committed. Give it more time, or find out with explain() what takes so long."
        return CancelledError("TIMED_OUT", text, hint=hint)
