"""A table of all refreshes, those that failed too: rows are gathered beside the refreshes and appended a few times a minute."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import CancelledError, SuspendedError
from trickle.model.events import RefreshEnded, RefreshFailed, Suspended, utc_now

if TYPE_CHECKING:
    from trickle.engine.events import Events
    from trickle.model.options import Options
    from trickle.tables.catalog import Catalog

_LOG: Final = logging.getLogger("trickle")
_WAIT_SECONDS: Final = 2.0
"""How long a row may wait for others before it is written."""

_TRIM_SECONDS: Final = 6 * 3600.0


class History:
    """Writes what happens to a table of the user's choice. It never fails a refresh: what cannot be written is logged."""

    def __init__(self, catalog: Catalog, events: Events, name: str, options: Options) -> None:
        """Open the table, or make it.

        Raises:
            DefinitionError: ``BAD_HISTORY``, there is another table of that name.
        """
        self.name = name
        self._table = catalog.results.appends(name, history_schema())
        self._days, self._most = options.history_days, options.history_waiting_rows
        self._rows: list[dict[str, Any]] = []
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._trim_at = time.monotonic()
        self._thread: threading.Thread | None = None
        events.on(RefreshEnded, self._note)
        events.on(RefreshFailed, self._note)
        events.on(Suspended, self._note)
        atexit.register(_flush_if_alive, weakref.ref(self))

    def flush(self) -> None:
        """Write what is gathered."""
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
            if not rows:
                return
            try:
                self._table.append(_as_table(rows))
                self._trim()
            except Exception as error:
                _LOG.warning("the history table %s cannot be written: %s", self.name, error)
                with self._lock:
                    self._rows = [*rows, *self._rows][-self._most :]

    def _note(self, event: RefreshEnded | RefreshFailed | Suspended) -> None:
        row = as_row(event)
        if row is None:
            return
        with self._lock:
            self._rows.append(row)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_later, name="trickle-history", daemon=True)
                self._thread.start()

    def _write_later(self) -> None:
        time.sleep(_WAIT_SECONDS)
        with self._lock:
            self._thread = None  # whoever comes from here on starts another one
        self.flush()

    def _trim(self) -> None:
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + _TRIM_SECONDS
            self._table.trim("started", utc_now() - timedelta(days=self._days))


def as_row(event: RefreshEnded | RefreshFailed | Suspended) -> dict[str, Any] | None:
    """Return the row of an event; None for a look by the loop that found nothing new, of which there are too many."""
    if isinstance(event, Suspended):
        why = event.suspension
        return _row(event.table, "SUSPENDED", utc_now(), error_code=why.code or why.cause.upper(), error=why.message)
    if isinstance(event, RefreshFailed):
        error = event.error
        state = "CANCELLED" if isinstance(error, CancelledError) else "FAILED"
        state = "HELD" if isinstance(error, SuspendedError) else state
        given = {"trigger": event.trigger, "seconds": event.seconds, "error_code": error.code, "error": error.message}
        return _row(event.table, state, event.started, **given)
    report = event.report
    if report.mode == "no_data" and event.trigger == "schedule":
        return None
    reason = report.reason
    return _row(
        event.table,
        "SUCCEEDED",
        event.started,
        action=report.mode.upper(),
        reason=None if reason is None else reason.code,
        reason_text=None if reason is None else reason.text,
        trigger=event.trigger,
        rows_inserted=report.rows_inserted,
        rows_deleted=report.rows_deleted,
        seconds=report.seconds,
        steps=dict(report.steps),
        frontier=dict(report.frontier),
        version=report.version,
    )


def _row(table: str, state: str, started: Any, **more: Any) -> dict[str, Any]:
    return {"name": table, "state": state, "started": started, **more}


def history_schema() -> Any:
    """Return the columns of the table, in the manner of a warehouse's refresh history."""
    import pyarrow as pa

    text, count = pa.string(), pa.int64()
    return pa.schema(
        [
            ("name", text),
            ("state", text),
            ("action", text),
            ("reason", text),
            ("reason_text", text),
            ("trigger", text),
            ("rows_inserted", count),
            ("rows_deleted", count),
            ("started", pa.timestamp("us", tz="UTC")),
            ("seconds", pa.float64()),
            ("steps", pa.map_(text, pa.float64())),
            ("frontier", pa.map_(text, count)),
            ("version", count),
            ("error_code", text),
            ("error", text),
        ]
    )


def _as_table(rows: Sequence[dict[str, Any]]) -> Any:
    import pyarrow as pa

    maps = ("steps", "frontier")
    listed = [{**row, **{m: list(row[m].items()) for m in maps if row.get(m) is not None}} for row in rows]
    return pa.Table.from_pylist(listed, schema=history_schema())


def _flush_if_alive(history: weakref.ref[History]) -> None:
    found = history()
    if found is not None:
        found.flush()
