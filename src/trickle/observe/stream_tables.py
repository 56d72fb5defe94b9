"""Reads stream tables from their logs: the definition, the record of the newest refresh, who wrote since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trickle.errors import StateError, TrickleError
from trickle.model.definition import DEFINITION_PROPERTY, TABLE_PROPERTY, RefreshRecord, read_definition
from trickle.model.observed import Waiting
from trickle.model.suspension import SUSPENDED_PROPERTY

if TYPE_CHECKING:
    from trickle.model.definition import Definition
    from trickle.tables.logs import CommitFacts, TableLog


@dataclass(frozen=True, slots=True)
class Seen:
    """A stream table as its log shows it.

    Attributes:
        definition: None if it cannot be read.
        record: That of the newest refresh; None if there is none, or it cannot be read.
        commit: The commit that has it.
        external: The operations of others that wrote to it since.
        problem: What cannot be read; None if all can.
    """

    name: str
    log: TableLog
    head: int | None = None
    definition: Definition | None = None
    record: RefreshRecord | None = None
    commit: CommitFacts | None = None
    external: tuple[str, ...] = ()
    waiting: Waiting | None = None
    problem: TrickleError | None = field(default=None, compare=False)


def read_stream_table(name: str, log: TableLog) -> Seen | None:
    """Read a stream table; None if the table is an ordinary one, a copy of a stream table, or not there."""
    try:
        head = log.head()
        properties = log.properties()
        if DEFINITION_PROPERTY not in properties or properties.get(TABLE_PROPERTY) != log.identity():
            return None
    except TrickleError as error:
        return None if error.code == "SOURCE_MISSING" else Seen(name, log, problem=error)
    seen = Seen(name, log, head, waiting=read_waiting(properties))
    try:
        definition = read_definition(name, properties[DEFINITION_PROPERTY])
    except TrickleError as error:
        return Seen(name, log, head, waiting=seen.waiting, problem=error)
    try:
        return _with_record(name, log, head, definition, seen.waiting)
    except TrickleError as error:
        return Seen(name, log, head, definition, waiting=seen.waiting, problem=error)


def _with_record(name: str, log: TableLog, head: int, definition: Definition, waiting: Waiting | None) -> Seen:
    external: list[str] = []
    for version in range(head, -1, -1):
        commit = log.commit(version)
        if commit is None:
            break
        if commit.record is not None:
            record = parse_record(name, commit.record)
            return Seen(name, log, head, definition, record, commit, tuple(external), waiting)
        if commit.changes_data:
            external.insert(0, commit.operation)
    return Seen(name, log, head, definition, external=tuple(external), waiting=waiting)


def parse_record(name: str, text: str) -> RefreshRecord:
    """Read the record of a refresh.

    Raises:
        StateError: ``UNREADABLE_RECORD``.
    """
    try:
        return RefreshRecord.model_validate_json(text)
    except ValueError as error:
        message = f"stream table '{name}' carries a record that this version of Trickle cannot read."
        hint = "Use the version that wrote it, or refresh(full=True)."
        raise StateError("UNREADABLE_RECORD", message, hint=hint) from error


def read_waiting(properties: Mapping[str, str]) -> Waiting | None:
    """Read why a table is suspended; what cannot be read suspends it too."""
    text = properties.get(SUSPENDED_PROPERTY)
    if text is None:
        return None
    try:
        stored = json.loads(text)
        stored = stored if isinstance(stored, dict) else {}
    except ValueError:
        stored = {}
    until = parse_moment(stored.get("until"))
    if until is not None and until <= datetime.now(UTC):
        return None  # it has ended by itself
    return Waiting(
        parse_moment(stored.get("since")), str(stored.get("cause") or "user"), stored.get("code"), stored.get("message")
    )


def parse_moment(text: object) -> datetime | None:
    """Read a moment as records write it, None if it is none; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
