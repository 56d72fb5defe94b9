"""Suspends stream tables and lets them go on: a property of the table tells every process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from trickle.errors import StateError, SuspendedError
from trickle.model.events import Resumed, Suspended, utc_now
from trickle.model.suspension import SUSPENDED_PROPERTY, Suspension, read_suspension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.engine.events import Events
    from trickle.errors import TrickleError
    from trickle.model.suspension import Cause
    from trickle.refresh.fuse import FuseBlownError
    from trickle.tables.catalog import Catalog

Resumption = Literal["apply", "full", "skip"]
"""What becomes of a change that waits: it is applied, all rows are recomputed, or it is passed over."""

_LOG: Final = logging.getLogger("trickle")


class SuspendedNowError(SuspendedError):
    """A stream table is suspended.

    Attributes:
        suspension: Since when, and why.
    """

    def __init__(self, name: str, suspension: Suspension) -> None:
        """Say why, and what lets it go on."""
        hint = f"resume({name!r}) lets it go on."
        if suspension.cause == "fuse":
            ways = "apply=True) applies the change that waits, full=True recomputes, skip=True passes over it."
            hint = f"resume({name!r}, {ways}"
        super().__init__("SUSPENDED", f"stream table '{name}' is {suspension}.", hint=hint)
        self.suspension = suspension


class Suspensions:
    """Which stream tables wait for a person."""

    def __init__(self, catalog: Catalog, events: Events) -> None:
        """Bind to a catalog."""
        self._catalog = catalog
        self._events = events

    def find(self, name: str, location: str) -> Suspension | None:
        """Read from a table's log whether it is suspended, and why. What cannot be read suspends too."""
        marks = self._catalog.marks(location)
        try:
            found = None if marks is None else read_suspension(name, marks.suspended)
            return None if found is None or found.is_over(utc_now()) else found
        except StateError as error:
            return Suspension(since="an unknown time", cause="user", code=error.code, message=error.message)

    def check(self, name: str, location: str) -> None:
        """Refuse to refresh a suspended table.

        Raises:
            SuspendedError: ``SUSPENDED``.
        """
        found = self.find(name, location)
        if found is not None:
            raise SuspendedNowError(name, found)

    def held_change(self, name: str, location: str, then: Resumption) -> dict[str, int] | None:
        """Return the versions of the sources up to which the change goes that a blown fuse holds back; None for the newest.

        Raises:
            StateError: ``NO_CHANGE_WAITS``, no fuse has blown.
        """
        if then == "full":
            return None
        found = self.find(name, location)
        if found is None or found.cause != "fuse":
            text = f"no change of stream table '{name}' waits: its fuse has not blown."
            raise StateError("NO_CHANGE_WAITS", text, hint=f"resume({name!r}) lets it go on.")
        return found.at

    def suspend(
        self,
        name: str,
        location: str,
        cause: Cause = "user",
        error: TrickleError | None = None,
        at: Mapping[str, int] | None = None,
        message: str | None = None,
    ) -> Suspension:
        """Suspend a table; one that is suspended already stays as it is."""
        found = self.find(name, location)
        if found is not None:
            return found
        made = Suspension(
            since=utc_now().isoformat(timespec="seconds"),
            cause=cause,
            code=None if error is None else error.code,
            message=message if error is None else error.message,
            at=None if at is None else dict(at),
        )
        self._catalog.results.set_properties(name, {SUSPENDED_PROPERTY: made.model_dump_json()})
        if cause != "user":
            _LOG.warning("stream table %s is %s", name, made)
        self._events.emit(Suspended(name, made))
        return made

    def hold(self, name: str, location: str, error: FuseBlownError, *, pinned: bool) -> None:
        """Suspend a table whose fuse blew; if that fails, the fuse blows again at the next refresh."""
        try:
            self.suspend(name, location, "fuse", error, error.at if pinned else None)
        except Exception:
            _LOG.exception("stream table %s cannot be suspended", name)

    @contextmanager
    def held_off(self, name: str, location: str, seconds: float) -> Iterator[None]:
        """Keep refreshes away from a table whose query is being replaced; if this process dies, for so long at most.

        One that is at work may still commit. A table that is suspended already stays so.
        """
        if self.find(name, location) is not None:
            yield
            return
        now = utc_now()
        until = (now + timedelta(seconds=seconds)).isoformat(timespec="seconds")
        held = Suspension(since=now.isoformat(timespec="seconds"), cause="replacement", until=until)
        text = held.model_dump_json()
        self._catalog.results.set_properties(name, {SUSPENDED_PROPERTY: text})
        try:
            yield
        finally:
            marks = self._catalog.marks(location)
            if marks is not None and marks.suspended == text:
                self._catalog.results.set_properties(name, {SUSPENDED_PROPERTY: None})

    def resume(self, name: str, location: str) -> None:
        """Let a table go on; an active one stays as it is."""
        marks = self._catalog.marks(location)
        if marks is not None and marks.suspended is not None:
            self._catalog.results.set_properties(name, {SUSPENDED_PROPERTY: None})
            self._events.emit(Resumed(name))
