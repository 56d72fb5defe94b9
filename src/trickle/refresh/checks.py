"""What a definition must satisfy before a table is created."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from trickle.catalyst.jvm import items
from trickle.errors import DefinitionError
from trickle.model.types import NOT_STORED, kind_of
from trickle.tables.contract import WEIGHT
from trickle.tables.formats import RESULT_FORMAT

_RESERVED_COLUMNS: Final = RESULT_FORMAT.reserved_columns | {WEIGHT}


def check_columns(analysed: Any) -> None:
    """Refuse results that no table can store or whose rows cannot be compared.

    Raises:
        DefinitionError: ``DUPLICATE_COLUMN``, ``RESERVED_COLUMN``, ``UNSUPPORTED_TYPE`` or ``NO_COLUMNS``.
    """
    seen: dict[str, str] = {}
    for attribute in items(analysed.output()):
        name = str(attribute.name())
        if name.lower() in seen:
            text = f"the query returns two columns named '{seen[name.lower()]}' and '{name}'."
            raise DefinitionError("DUPLICATE_COLUMN", text, hint="Rename one of them with AS.")
        if name.lower() in _RESERVED_COLUMNS:
            text = f"column name '{name}' is reserved by the change feed of the table or by Trickle."
            raise DefinitionError("RESERVED_COLUMN", text, hint="Rename it with AS.")
        seen[name.lower()] = name
        _check_type(name, attribute.dataType())
    if not seen:
        raise DefinitionError("NO_COLUMNS", "the query returns no columns.", hint="Select at least one.")


def check_sources(used: Mapping[str, Sequence[str]]) -> None:
    """Refuse columns of sources whose name the changes of a source have for the weight of a row.

    Raises:
        DefinitionError: ``RESERVED_COLUMN``.
    """
    for source, columns in used.items():
        if any(name.lower() == WEIGHT for name in columns):
            text = f"the query reads a column '{WEIGHT}' of {source}; Trickle has that name for something else."
            raise DefinitionError("RESERVED_COLUMN", text, hint="Rename the column in the table.")


def _check_type(column: str, data_type: Any) -> None:
    for kind in _kinds(json.loads(data_type.json())):
        if kind in NOT_STORED:
            why, hint = NOT_STORED[kind]
            text = f"column '{column}' has type {data_type.catalogString()}: {why}."
            raise DefinitionError("UNSUPPORTED_TYPE", text, hint=hint)


def _kinds(type_: Any) -> Iterator[str]:
    """Return the kinds of type that a type is made of, from its JSON form.

    >>> list(_kinds({"type": "array", "elementType": "void", "containsNull": True}))
    ['array', 'void']
    """
    if isinstance(type_, str):
        yield kind_of(type_)
        return
    yield type_["type"]
    inner = [f["type"] for f in type_.get("fields", ())]
    for part in (*inner, *(type_[k] for k in ("elementType", "keyType", "valueType") if k in type_)):
        yield from _kinds(part)
