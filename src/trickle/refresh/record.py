"""The record in each commit of a stream table or state table: written before the commit, read by the next refresh."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from trickle.errors import StateError
from trickle.model.cost import Costs
from trickle.model.definition import RefreshRecord, SourceVersion

if TYPE_CHECKING:
    from trickle.model.reason import Reason
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import TargetState


UNREADABLE_RECORD: Final = "UNREADABLE_RECORD"


def new_record(
    mode: Literal["differential", "full"],
    reason: Reason | None,
    frontier: Mapping[str, SourceVersion],
    prepared: Prepared,
) -> RefreshRecord:
    """Prepare the record of a commit; its costs are known when the commit is made."""
    return RefreshRecord(
        refresh_id=uuid.uuid4().hex,
        mode=mode,
        reason=str(reason) if reason else None,
        frontier=dict(frontier),
        fingerprint=prepared.fingerprint,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        without=prepared.without,
    )


def known_costs(state: TargetState) -> Costs:
    """Return what the newest record tells of costs; nothing if it cannot be read, for costs are advice."""
    try:
        return RefreshRecord.model_validate_json(state.record).costs if state.record is not None else Costs()
    except ValueError:
        return Costs()


def read_record(table: str, state: TargetState) -> RefreshRecord | None:
    """Read the record of the newest refresh."""
    if state.record is None:
        return None
    try:
        return RefreshRecord.model_validate_json(state.record)
    except ValueError as error:
        text = f"stream table '{table}' carries a record that this version of Trickle cannot read."
        raise StateError(
            UNREADABLE_RECORD, text, hint="Use the version that wrote it, or refresh(full=True)."
        ) from error
