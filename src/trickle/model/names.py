"""Names of tables and columns as text."""

from __future__ import annotations

import re
from typing import Final

from trickle.errors import DefinitionError

_RESERVED_PREFIX: Final = "__trickle"
_MAX_PARTS: Final = 3
_NAME_BYTES: Final = 255
"""The longest folder name that file systems accept."""

_PART: Final = re.compile(r"`((?:[^`]|``)*)`|(\w+)")
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_IN_PATHS: Final = re.compile(r"[/\\\x00-\x1f\x7f]")
_SESSION_NAME: Final = re.compile(r"\w+", re.ASCII)
"""The names that Spark's own catalog accepts."""

STATE_TABLE_MARK: Final = "@"
"""The names of state tables begin with it; no name of a source does."""


def is_state_table(source: str) -> bool:
    """Return whether a name is that of a state table, not of a source."""
    return source.startswith(STATE_TABLE_MARK)


def split_name(name: str) -> tuple[str, ...]:
    """Split a table name at its dots, except inside backticks.

    >>> split_name("shop.`daily sales`")
    ('shop', 'daily sales')

    Raises:
        DefinitionError: ``BAD_NAME`` or ``RESERVED_NAME``.
    """
    rest = name.strip() if isinstance(name, str) else ""
    parts: list[str] = []
    while (found := _PART.match(rest)) is not None:
        parts.append(found[2] if found[1] is None else found[1].replace("``", "`"))
        rest = rest[found.end() :]
        if not rest.startswith("."):
            break
        rest = rest[1:] or "."
    if rest or not 0 < len(parts) <= _MAX_PARTS or not all(map(_is_name, parts)):
        hint = "Use table, schema.table or catalog.schema.table; quote odd names with backticks."
        raise DefinitionError("BAD_NAME", f"{name!r} is not a table name.", hint=hint)
    if parts[-1].lower().startswith(_RESERVED_PREFIX):
        hint = "Choose another name."
        raise DefinitionError(
            "RESERVED_NAME", f"names that begin with {_RESERVED_PREFIX} are Trickle's own.", hint=hint
        )
    return tuple(parts)


def _is_name(part: str) -> bool:
    """Return whether a part can be the name of a folder, and cannot escape its parent folder."""
    if part in ("", ".", "..") or part != part.strip() or _IN_PATHS.search(part):
        return False
    return len(part.encode(errors="replace")) <= _NAME_BYTES


def check_session_name(parts: tuple[str, ...]) -> None:
    """Refuse a name that Spark's own catalog does not accept.

    Raises:
        DefinitionError: ``BAD_NAME``.
    """
    for part in parts:
        if not _SESSION_NAME.fullmatch(part):
            hint = "Spark's own catalog accepts only the letters a to z, digits and _."
            raise DefinitionError("BAD_NAME", f"{part!r} cannot be the name of a table or schema.", hint=hint)


def shown_part(part: str) -> str:
    """Return a part of a name as SQL: in backticks if it needs them.

    >>> shown_part("orders"), shown_part("123")
    ('orders', '`123`')
    """
    return part if _PLAIN.fullmatch(part) else quote(part)


def sql_name(name: str) -> str:
    """Return a qualified name with each part in backticks: it may be a reserved word.

    >>> sql_name("shop.order")
    '`shop`.`order`'
    """
    return ".".join(map(quote, split_name(name)))


def short_name(name: str) -> str:
    """Return the last part of a qualified name."""
    return name.rsplit(".", 1)[-1].strip("`")


def quote(name: str) -> str:
    """Quote a column name.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
