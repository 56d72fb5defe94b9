"""Tells listeners what happens; one that raises is logged and changes nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from trickle.engine.verbs import describe_failure
from trickle.errors import CancelledError, DefinitionError
from trickle.model.events import (
    Event,
    Mismatch,
    RefreshEnded,
    RefreshFailed,
    RefreshStarted,
    Suspended,
    Warned,
    utc_now,
)

if TYPE_CHECKING:
    from trickle.model.events import Trigger
    from trickle.model.report import RefreshReport

_LOG: Final = logging.getLogger("trickle")
_Kind = TypeVar("_Kind")


class Events:
    """Who listens to what, in the order in which they came. Listeners run in the thread where it happened: keep them short."""

    def __init__(self) -> None:
        """Start without listeners."""
        self._listeners: tuple[tuple[type, Callable[[Any], object]], ...] = ()

    def on(self, kind: type[_Kind], listener: Callable[[_Kind], object]) -> Callable[[_Kind], object]:
        """Call a function with each event of a kind; return the function.

        Raises:
            DefinitionError: ``BAD_OPTION``, this is not a kind of event or not a function.
        """
        if kind not in get_args(Event) or not callable(listener):
            text = f"{kind!r} and {listener!r} are not a kind of event and a function."
            hint = f"The kinds are {', '.join(k.__name__ for k in get_args(Event))}, in trickle.model.events."
            raise DefinitionError("BAD_OPTION", text, hint=hint)
        self._listeners = (*self._listeners, (kind, listener))
        return listener

    def on_refresh(self, listener: Callable[[RefreshEnded], object]) -> Callable[[RefreshEnded], object]:
        """Call a function after each refresh that ended well."""
        return self.on(RefreshEnded, listener)

    def on_full(self, listener: Callable[[RefreshEnded], object]) -> Callable[[RefreshEnded], object]:
        """Call a function after each refresh that recomputed all rows."""
        self.on(RefreshEnded, lambda event: listener(event) if event.report.mode == "full" else None)
        return listener

    def on_failure(self, listener: Callable[[RefreshFailed], object]) -> Callable[[RefreshFailed], object]:
        """Call a function after each refresh that failed."""
        return self.on(RefreshFailed, listener)

    def on_suspend(self, listener: Callable[[Suspended], object]) -> Callable[[Suspended], object]:
        """Call a function when a stream table is suspended, by whomever."""
        return self.on(Suspended, listener)

    def on_mismatch(self, listener: Callable[[Mismatch], object]) -> Callable[[Mismatch], object]:
        """Call a function when a verification by the loop finds that a stream table is not what its query returns."""
        return self.on(Mismatch, listener)

    def on_warning(self, listener: Callable[[Warned], object]) -> Callable[[Warned], object]:
        """Call a function when the loop finds what will go wrong if nobody looks after it."""
        return self.on(Warned, listener)

    def off(self, listener: Callable[[Any], object]) -> None:
        """Do not call a function any more."""
        self._listeners = tuple(pair for pair in self._listeners if pair[1] != listener)

    def emit(self, event: Event) -> None:
        """Tell those who listen to this kind."""
        for kind, listener in self._listeners:
            if isinstance(event, kind):
                try:
                    listener(event)
                except Exception:
                    _LOG.exception("a hook failed on %s", type(event).__name__)


@contextmanager
def reported(events: Events, table: str, trigger: Trigger) -> Iterator[Callable[[RefreshReport], RefreshReport]]:
    """Tell that a refresh began, and what became of it; the report is given to what this gives."""
    started, began = utc_now(), time.perf_counter()
    events.emit(RefreshStarted(table, trigger, started))
    reports: list[RefreshReport] = []

    def keep(report: RefreshReport) -> RefreshReport:
        reports.append(report)
        return report

    try:
        yield keep
    except Exception as error:
        described = describe_failure(error, f"refresh of '{table}'")
        events.emit(RefreshFailed(table, trigger, started, time.perf_counter() - began, described))
        raise
    except BaseException as error:  # Ctrl-C, for one: those who show what is at work must hear that it is not
        text = f"refresh of '{table}' was called off ({type(error).__name__})."
        called_off = CancelledError("CANCELLED", text, hint="The next refresh starts where the last one ended.")
        events.emit(RefreshFailed(table, trigger, started, time.perf_counter() - began, called_off))
        raise
    for report in reports:
        events.emit(RefreshEnded(table, trigger, started, report))
