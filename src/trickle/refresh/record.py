"""The record in each commit of a stream table or state table: written before the commit, read by the next refresh."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from trickle.errors import StateError
from trickle.model.cost import Costs
from trickle.model.definition import BaseVersion, RefreshRecord, SourceVersion
from trickle.model.names import is_state_table
from trickle.model.options import DEFAULT, Options

if TYPE_CHECKING:
    from trickle.model.reason import Reason
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import SourceTable, TargetState


UNREADABLE_RECORD: Final = "UNREADABLE_RECORD"


def new_record(
    mode: Literal["differential", "full"],
    reason: Reason | None,
    frontier: Mapping[str, SourceVersion],
    prepared: Prepared,
    options: Options = DEFAULT,
) -> RefreshRecord:
    """Prepare the record of a commit; its costs are known when the commit is made."""
    return RefreshRecord(
        refresh_id=uuid.uuid4().hex,
        mode=mode,
        reason=str(reason) if reason else None,
        frontier=dict(frontier),
        # What Spark recomputes may hold commits that came while it did.
        base=None if prepared.obstacles else find_base(prepared.sources, frontier),
        fingerprint=prepared.fingerprint,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        without=prepared.without,
        columns=_few_columns(prepared, options.record_columns),
    )


def _few_columns(prepared: Prepared, most: int) -> dict[str, tuple[str, ...]] | None:
    """Return the columns that a query reads, None if they would make each commit much longer."""
    used = {name: columns for name, columns in prepared.used.items() if not is_state_table(name)}
    return used if sum(map(len, used.values())) <= most else None


def find_base(
    sources: Mapping[str, SourceTable], frontier: Mapping[str, SourceVersion]
) -> dict[str, BaseVersion] | None:
    """Return the versions of base tables that sources at a frontier stand for.

    Law    base(T) = union of base(S) over the sources S of T;  base(S) = {S} if S is a base table
    None if two sources stand for different versions of one base table: their rows do not belong together.
    """
    found: dict[str, BaseVersion] = {}
    for name, source in sources.items():
        if is_state_table(name):
            continue
        at = frontier[name]
        text = source.record(at.version)
        below = {at.identity: BaseVersion(name=name, version=at.version)} if text is None else _read_base(text)
        if below is None:
            return None
        for identity, base in below.items():
            if found.setdefault(identity, base).version != base.version:
                return None
    return found


def _read_base(text: str) -> dict[str, BaseVersion] | None:
    try:
        return RefreshRecord.model_validate_json(text).base
    except ValueError:
        return None  # written by another version: what it stands for is not known


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
