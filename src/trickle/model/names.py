"""Names of tables and columns as text."""

from __future__ import annotations

from typing import Final

from trickle.errors import DefinitionError

_RESERVED_PREFIX: Final = "__trickle"
_MOST_PARTS: Final = 3


def split_name(name: str) -> tuple[str, ...]:
    """Split a table name at its dots, backticks respected.

    >>> split_name("shop.`daily sales`")
    ('shop', 'daily sales')

    Raises:
        DefinitionError: ``BAD_NAME`` or ``RESERVED_NAME``.
    """
    parts: list[str] = []
    rest = name.strip() if isinstance(name, str) else ""
    while rest:
        if rest.startswith("`"):
            end = rest.find("`", 1)
            part, rest = (rest[1:end], rest[end + 1 :]) if end > 0 else ("", "")
        else:
            part, _, tail = rest.partition(".")
            rest = "." + tail if _ else ""
            if not part.replace("_", "a").isalnum():
                part = ""
        parts.append(part)
        if rest and (not rest.startswith(".") or rest == "."):
            parts.append("")
            break
        rest = rest[1:]
    if not parts or not all(parts) or len(parts) > _MOST_PARTS or "/" in parts[-1]:
        hint = "Use table, schema.table or catalog.schema.table; quote odd names with backticks."
        raise DefinitionError("BAD_NAME", f"{name!r} is not a table name.", hint=hint)
    if parts[-1].lower().startswith(_RESERVED_PREFIX):
        hint = "Choose another name."
        raise DefinitionError(
            "RESERVED_NAME", f"names that begin with {_RESERVED_PREFIX} are Trickle's own.", hint=hint
        )
    return tuple(parts)


def short_name(name: str) -> str:
    """Give the last part of a qualified name."""
    return name.rsplit(".", 1)[-1].strip("`")


def quote(name: str) -> str:
    """Quote a column name.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
