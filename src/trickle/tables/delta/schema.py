"""Columns of a Delta table as its metadata describes them, and whether two descriptions mean the same stored data."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from trickle.model.types import WHOLE_NUMBERS
from trickle.tables.contract import ColumnFact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"


def column_facts(metadata: Mapping[str, Any]) -> dict[str, ColumnFact]:
    """Return the columns of a ``metaData`` action, by name.

    The identity is the name under which files hold the column: with column mapping it stays through a rename and is
    new after a drop and re-add; without it, it is the name itself.
    """
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["name"]: _fact(field) for field in fields}


def _fact(field: Mapping[str, Any]) -> ColumnFact:
    return ColumnFact(
        name=field["name"],
        type_json=json.dumps(_bare(field["type"]), sort_keys=True),
        nullable=bool(field["nullable"]),
        identity=str((field.get("metadata") or {}).get(_PHYSICAL_NAME, field["name"])),
    )


def _bare(kind: Any) -> Any:
    """Drop from a type what does not bear on stored values: comments, field ids, generation expressions."""
    if not isinstance(kind, dict):
        return kind
    bare = {key: _bare(value) for key, value in kind.items() if key != "metadata"}
    if kind.get("type") == "struct":
        bare["fields"] = [_bare(field) for field in kind["fields"]]
    physical = (kind.get("metadata") or {}).get(_PHYSICAL_NAME)
    if physical is not None:
        bare["physical"] = physical
    return bare


_DIGITS: Final = {facts.json: facts.digits for facts in WHOLE_NUMBERS}


def widened(before: Any, after: Any) -> Any:
    """Return a type's JSON with its numbers as wide as in another one; None if that differs from it in anything else.

    What the first says besides, the names under which files hold its fields for one, stays. These are the changes that
    Delta's type widening allows of a column's type, so that a result may follow its sources.

    >>> widened({"type": "array", "elementType": "integer", "containsNull": True},
    ...         {"type": "array", "elementType": "long", "containsNull": True})["elementType"]
    'long'
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after if before == after or _is_wider(before, after) else None
    if before.get("type") != after.get("type"):
        return None
    inside = [key for key in ("elementType", "keyType", "valueType") if key in before]
    new = dict(before)
    for key in inside:
        new[key] = widened(before[key], after[key])
    if before.get("type") == "struct":
        old_fields, new_fields = before["fields"], after["fields"]
        if [field["name"] for field in old_fields] != [field["name"] for field in new_fields]:
            return None
        kinds = [widened(old["type"], new["type"]) for old, new in zip(old_fields, new_fields, strict=True)]
        if None in kinds:
            return None
        new["fields"] = [{**field, "type": kind} for field, kind in zip(old_fields, kinds, strict=True)]
    return None if any(new[key] is None for key in inside) else new


def replaced(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of other rows; a column that stays keeps what the table says of it, its name in files for one.

    >>> old = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {"x": 1}}]}
    >>> new = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": {}}]}
    >>> replaced(old, new) == old
    True
    """
    known = {field["name"]: field for field in before["fields"]}
    fields = []
    for field in _nullable(after)["fields"]:
        kept = widened(known[field["name"]]["type"], field["type"]) if field["name"] in known else None
        fields.append(field if kept is None else {**known[field["name"]], "type": kept})
    return {"type": "struct", "fields": fields}


def _nullable(kind: Any) -> Any:
    """Return a type's JSON with everything in it nullable, and nothing said besides."""
    if not isinstance(kind, dict):
        return kind
    new = {key: _nullable(value) for key, value in kind.items() if key != "metadata"}
    new.update({key: True for key in ("containsNull", "valueContainsNull", "nullable") if key in kind})
    if kind.get("type") == "struct":
        new["fields"] = [{**_nullable(field), "metadata": {}} for field in kind["fields"]]
    return new


def _is_wider(before: Any, after: Any) -> bool:
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before in _DIGITS and after in _DIGITS:
        return _DIGITS[before] < _DIGITS[after]
    if after == "double":
        return before in ("float", "byte", "short", "integer")
    if (before, after) == ("date", "timestamp_ntz"):
        return True
    if (new := _decimal(after)) is None:
        return False
    old = (_DIGITS[before], 0) if before in _DIGITS else _decimal(before)
    return old is not None and new[1] >= old[1] and new[0] - new[1] >= old[0] - old[1]


def _decimal(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", kind)
    return (int(found[1]), int(found[2])) if found else None


def first_difference(before: Mapping[str, Any], after: Mapping[str, Any], columns: Sequence[str]) -> str | None:
    """Say in words how the asked columns differ between two ``metaData`` actions, None if they do not.

    A different partitioning is a difference too: the value of a partition column is in the log, not in the files, so
    files from before it changed cannot be read with the schema from after.
    """
    if before is after:
        return None
    old, new = column_facts(before), column_facts(after)
    for name in columns:
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if now is None:
            return f"column `{name}` was dropped or renamed"
        if was is None:
            return f"column `{name}` was added or renamed"
        if was.identity != now.identity:
            return f"column `{name}` was dropped and added again, or another was renamed to it"
        if was.type_json != now.type_json:
            return f"column `{name}` changed its type from {was.type_json} to {now.type_json}"
        return f"column `{name}` changed to {'NULL' if now.nullable else 'NOT NULL'}"
    if list(before.get("partitionColumns") or ()) != list(after.get("partitionColumns") or ()):
        return "its partitioning changed"
    return None
