"""Tries again what failed for reasons that pass by themselves: after a moment, longer each time, and not for ever."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trickle.engine.transient import is_transient
from trickle.engine.verbs import describe_failure
from trickle.errors import CancelledError, ConflictError, SessionError
from trickle.tables.redefinition import CONCURRENT_ALTER

if TYPE_CHECKING:
    from trickle.refresh.deadline import Deadline

_LOG: Final = logging.getLogger("trickle")
_CONFLICT_SECONDS: Final = 0.05
_STORAGE_SECONDS: Final = 0.5
"""How long the first wait is: whoever committed first is done, and storage that does not answer takes its time."""

_LOOK_SECONDS: Final = 0.1
"""How often a waiting refresh looks whether it was called off."""


@dataclass(slots=True)
class Retries:
    """The attempts at one refresh.

    Attributes:
        table: Its name, for the log.
        attempts: How many there may be.
        deadline: Until when; None for any time.
    """

    table: str
    attempts: int
    deadline: Deadline | None = None
    failed: int = 0

    def wait(self, error: Exception) -> bool:
        """Wait before the next attempt; return False if there is none, or it would fail alike.

        Raises:
            CancelledError: The time is over, or the refresh was called off.
        """
        described = describe_failure(error, f"refresh of '{self.table}'")
        if isinstance(described, SessionError | CancelledError) or described.code == CONCURRENT_ALTER:
            return False
        if not is_transient(described):
            return False
        self.failed += 1
        if self.failed >= self.attempts:
            return False
        is_conflict = isinstance(described, ConflictError)
        first = _CONFLICT_SECONDS if is_conflict else _STORAGE_SECONDS
        # Two that meet again and again must not do so in step.
        seconds = first * 2 ** (self.failed - 1) * random.uniform(0.5, 1.5)
        if not is_conflict:
            _LOG.warning("stream table %s is tried again in %.1f s: %s", self.table, seconds, described)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            if self.deadline is not None:
                self.deadline.check()
        return True
