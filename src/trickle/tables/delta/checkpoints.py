"""Checkpoints of the logs that commits of ours made longer: written beside the refreshes, not in them.

Law    a commit never waits for a checkpoint, unless the log has grown twice as long as the table asks for: then somebody keeps
       ending the process before one is written
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final

from trickle.tables.delta import LOG_FOLDER
from trickle.tables.delta.driver.fit import checkpoint_interval
from trickle.tables.delta.log import commit_file, last_checkpoint

if TYPE_CHECKING:
    from trickle.tables.delta.table import DeltaTable

_LOG: Final = logging.getLogger("trickle")


class Checkpoints:
    """The checkpoints of one process that are due or being written, by the place of their table; thread-safe."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._due: dict[str, Future[None]] = {}
        self._last: dict[str, int] = {}

    def offer(self, table: DeltaTable, version: int) -> None:
        """Have a checkpoint written if a commit, which made this version, owes one."""
        interval = checkpoint_interval(table.log.metadata(version))
        if not 0 <= version - self._last.get(table.location, -1) < interval:
            self._last[table.location] = last_checkpoint(table.folder)
        behind = version - max(self._last.get(table.location, -1), 0)
        if behind < interval:
            return
        with self._lock:
            if table.location in self._due and not self._due[table.location].done():
                return
            if self._workers is None:
                self._workers = ThreadPoolExecutor(1, "trickle-checkpoint")
            self._due[table.location] = due = self._workers.submit(_write, table)
        if behind >= 2 * interval:
            due.result()

    def finish(self, location: str | None = None) -> None:
        """Wait for the checkpoint of the table at a place, or for all: it is to be deleted, or the session to be stopped."""
        with self._lock:
            found = [due for place, due in self._due.items() if location in (None, place)]
            self._due = {place: due for place, due in self._due.items() if due not in found}
        for due in found:
            due.result()
        if location is not None:
            self._last.pop(location, None)


CHECKPOINTS: Final = Checkpoints()


def _write(table: DeltaTable) -> None:
    version, seen = -1, None
    try:
        version = int(table.handle.update().version())
        seen = _commit(table, version)
        table.handle.checkpoint()
    except Exception as error:  # the session may have ended, or the table gone; the next commit tries again
        _LOG.info("no checkpoint of %s was written: %s", table.location, error)
    try:
        if version >= 0 and _commit(table, version) != seen:
            # The table was dropped meanwhile, perhaps created again: the checkpoint would be taken for a table, or for its.
            table.handle.withdraw_checkpoint(version)
    except Exception as error:  # as above; `create` removes what is left
        _LOG.info("a late checkpoint of %s was not removed: %s", table.location, error)


def _commit(table: DeltaTable, version: int) -> object:
    """Return what tells the commit of a version from another, None if it is gone."""
    folder = table.folder
    if folder is not None:
        return folder.storage.mark(commit_file(folder, version))
    return table.handle.exists(f"{LOG_FOLDER}/{version:020d}.json") or None
