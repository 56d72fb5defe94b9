"""What a definition must satisfy before anything is made of it."""

from __future__ import annotations

from typing import Any, Final

from trickle.catalyst.jvm import items
from trickle.errors import DefinitionError

_RESERVED_COLUMNS: Final = frozenset({"__weight", "_change_type", "_commit_version", "_commit_timestamp", "_metadata"})


def check_columns(analysed: Any) -> None:
    """Refuse results that a Delta table cannot hold or rows that cannot be compared.

    Raises:
        DefinitionError: ``DUPLICATE_COLUMN``, ``RESERVED_COLUMN``, ``UNSUPPORTED_TYPE`` or ``NO_COLUMNS``.
    """
    seen: dict[str, str] = {}
    for attribute in items(analysed.output()):
        name = str(attribute.name())
        if name.lower() in seen:
            text = f"the query gives two columns named '{seen[name.lower()]}' and '{name}'."
            raise DefinitionError("DUPLICATE_COLUMN", text, hint="Name one of them otherwise with AS.")
        if name.lower() in _RESERVED_COLUMNS:
            text = f"column name '{name}' is reserved by Delta's change feed or by Trickle."
            raise DefinitionError("RESERVED_COLUMN", text, hint="Name it otherwise with AS.")
        seen[name.lower()] = name
        _check_type(name, str(attribute.dataType().catalogString()))
    if not seen:
        raise DefinitionError("NO_COLUMNS", "the query gives no columns.", hint="Select at least one.")


_UNSUPPORTED: Final = {
    "map<": ("rows with maps cannot be compared", "Turn it into an array of entries with map_entries()."),
    "variant": ("rows with variants cannot be compared", "Extract fields with variant_get(), or cast it to a string."),
    "void": ("the type of NULL is not known", "Give it a type: CAST(NULL AS …)."),
    "interval": ("Delta tables hold no intervals", "Store it as a number or a string."),
    "object": ("objects cannot be stored", "Convert it to a plain type."),
}


def _check_type(column: str, type_: str) -> None:
    for part, (why, hint) in _UNSUPPORTED.items():
        if part in type_:
            text = f"column '{column}' has type {type_}: {why}."
            raise DefinitionError("UNSUPPORTED_TYPE", text, hint=hint)
