"""Tells which storage of a stream table and its sources only Spark can reach, which makes refreshes take seconds."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from trickle.model.names import is_state_table
from trickle.model.reason import SPARK_STORAGE, Reason
from trickle.tables.storage.schemes import root_of, why_spark

if TYPE_CHECKING:
    from trickle.engine.open_tables import OpenTable


class Fallbacks:
    """Tells it once for each storage."""

    def __init__(self) -> None:
        """Start with nothing told."""
        self._told: set[str] = set()
        self._lock = Lock()

    def warnings(self, table: OpenTable) -> tuple[Reason, ...]:
        """Say what of a table's storage has not been told yet."""
        sources = table.prepared.sources.items()
        places = [table.location, *(source.path for name, source in sources if not is_state_table(name))]
        found = {root_of(place): why for place in places if (why := why_spark(place)) is not None}
        with self._lock:
            new = {root: why for root, why in found.items() if root not in self._told}
            self._told.update(new)
        hint = "See the how-to on object storage for the settings and the storage that the driver knows."
        text = "Spark does all reading and writing of tables in {}: only it knows {}"
        return tuple(Reason(SPARK_STORAGE, text.format(root, why), hint) for root, why in new.items())
