"""Calls refreshes off: those past their time, and all at once when a process must end. Their Spark jobs go by a tag."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from trickle.errors import CancelledError
from trickle.refresh.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = logging.getLogger("trickle")
_AGAIN_SECONDS: Final = 0.25
"""A refresh may start another Spark job just after its jobs were cancelled."""

_INTERRUPTS: Final = "spark.job.interruptOnCancel"


class Cancellation:
    """The refreshes at work in a session."""

    def __init__(self, spark: SparkSession) -> None:
        """Start with none."""
        self._spark = spark
        self._at_work: dict[str, Deadline] = {}
        self._lock = threading.RLock()  # a signal may come while it is held

    @contextmanager
    def guarded(self, table: str, seconds: float | None, *, stoppable: bool) -> Iterator[Deadline]:
        """Limit the time of a refresh; past it, it ends with ``TIMED_OUT``, whatever it was doing.

        ``stoppable`` is False if nobody but the clock will end its Spark jobs.
        """
        deadline, tag = Deadline(table, seconds), f"trickle-{uuid.uuid4().hex}"
        with self._lock:
            self._at_work[tag] = deadline
        ended = threading.Event()
        try:
            is_tagged = stoppable or seconds is not None
            with self._tagged(tag, interrupts=seconds is not None) if is_tagged else nullcontext():
                if seconds is not None:
                    _start("timeout", self._cancel_late, tag, deadline, seconds, ended)
                yield deadline
        except CancelledError:
            raise
        except Exception as error:
            if deadline.is_over:
                raise deadline.error() from error
            raise
        finally:
            ended.set()
            with self._lock:
                self._at_work.pop(tag, None)

    def cancel_all(self, table: str | None = None) -> None:
        """Call all refreshes at work off, or those of one table; those that are committing end first."""
        with self._lock:
            at_work = {tag: end for tag, end in self._at_work.items() if table is None or end.table == table}
        for tag, deadline in at_work.items():
            deadline.cancel()
            _start("cancel", self._cancel_jobs, tag, deadline, threading.Event())

    def _cancel_late(self, tag: str, deadline: Deadline, seconds: float, ended: threading.Event) -> None:
        if not ended.wait(seconds):
            self._cancel_jobs(tag, deadline, ended)

    def _cancel_jobs(self, tag: str, deadline: Deadline, ended: threading.Event) -> None:
        """Cancel the Spark jobs of a refresh, and those that it starts until it ends."""
        while tag in self._at_work and not ended.is_set():
            try:
                deadline.while_uncommitted(lambda: self._spark.sparkContext.cancelJobsWithTag(tag))
            except Exception as error:
                _LOG.warning("the Spark jobs of the refresh of %s cannot be cancelled: %s", deadline.table, error)
                return
            ended.wait(_AGAIN_SECONDS)

    @contextmanager
    def _tagged(self, tag: str, *, interrupts: bool) -> Iterator[None]:
        """Tag the Spark jobs of this thread; each of these calls takes a part of a millisecond, so there are few."""
        context = self._spark.sparkContext
        context.addJobTag(tag)
        before = context.getLocalProperty(_INTERRUPTS) if interrupts else None
        if interrupts:
            context.setInterruptOnCancel(True)
        try:
            yield
        finally:
            context.removeJobTag(tag)
            if interrupts:
                context.setLocalProperty(_INTERRUPTS, before)  # type: ignore[arg-type]


def _start(name: str, work: Callable[..., None], *given: object) -> None:
    threading.Thread(target=work, args=given, name=f"trickle-{name}", daemon=True).start()
