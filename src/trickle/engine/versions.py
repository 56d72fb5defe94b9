"""Earlier versions of a stream table: kept for a time, and brought back with the frontier that they stand for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from trickle.errors import StateError
from trickle.model.definition import RefreshRecord
from trickle.model.names import is_state_table

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.open_tables import OpenTable


def snapshot(engine: Engine, name: str, seconds: float | None) -> int:
    """Let a stream table keep the rows that it has now for some time; return their version."""
    found = engine.tables.find(engine.qualify(name))
    with engine.tables.lock(found.name):
        if seconds is not None:
            engine.catalog.results.upkeep(found.location).keep_for(timedelta(seconds=seconds))
        state = engine.catalog.results.target(found.name, found.location).state()
        if state.record_version is None or state.external:
            text = f"the rows of stream table '{found.name}' were not made by a refresh, or others have changed them since."
            raise StateError("NO_SUCH_VERSION", text, hint="Refresh it first.")
        return state.record_version


def restore(engine: Engine, name: str, version: int) -> int:
    """Put back the rows of an earlier version of a stream table, with the frontier that they stand for, by one commit."""
    full_name = engine.qualify(name)
    with engine.tables.lock(full_name):
        table = engine.tables.get(full_name)
        state = table.target.state()
        made, text = _refreshed(table, state.version, version)
        record = RefreshRecord.model_validate_json(text)
        if record.fingerprint != table.prepared.fingerprint:
            message = f"version {version} of stream table '{full_name}' was made by another query."
            raise StateError("OTHER_QUERY", message, hint="Set the query back with alter(), then restore.")
        # Without the state tables, which have gone on: the next refresh brings them to this frontier again.
        kept = {n: at for n, at in record.frontier.items() if not is_state_table(n)}
        record = record.model_copy(update={"frontier": kept, "costs": table.costs or record.costs})
        rows = table.target.frame(made)
        return table.target.overwrite(rows, record.model_dump_json(), state).version


def _refreshed(table: OpenTable, head: int, version: int) -> tuple[int, str]:
    """Return version and record of the refresh that made the rows of a version."""
    text = f"stream table '{table.name}' has versions 0 to {head}, not {version!r}."
    if isinstance(version, int) and not isinstance(version, bool) and 0 <= version <= head:
        for made, record in table.target.records(head + 1):
            if made <= version:
                return made, record
        text = f"the log of stream table '{table.name}' has no refresh up to version {version}, or no longer."
    raise StateError("NO_SUCH_VERSION", text, hint="history() lists the refreshes.")
