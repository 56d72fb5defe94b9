"""Names of tables in queries, by their tokens: strings, comments and names in backticks stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trickle.model.names import quote
from trickle.sql.tokens import read_tokens

if TYPE_CHECKING:
    from trickle.sql.tokens import Token


def replace_names(text: str, names: Mapping[tuple[str, ...], str]) -> str:
    """Write other names for tables that are named with their schema, also where these qualify a column.

    >>> replace_names("SELECT shop.a.x FROM shop.a", {("shop", "a"): "b"})
    'SELECT `b`.x FROM `b`'
    """
    wanted = {tuple(part.lower() for part in name): new for name, new in names.items() if len(name) > 1}
    if not wanted:
        return text
    written, at = "", 0
    tokens = list(read_tokens(text))
    position = 0
    while position < len(tokens):
        chain = list(_chain(tokens, position))
        parts = tuple(token.text.lower() for token in chain)
        length = next((n for n in range(len(parts), 1, -1) if parts[:n] in wanted), 0)
        if length:
            written += text[at : chain[0].start] + quote(wanted[parts[:length]])
            at = chain[length - 1].stop
        position += max(2 * len(chain) - 1, 1)
    return written + text[at:]


def _chain(tokens: list[Token], position: int) -> Iterator[Token]:
    """Give the names that are joined by dots from a position on."""
    while position < len(tokens) and tokens[position].kind in ("word", "name"):
        yield tokens[position]
        if position + 2 >= len(tokens) or not tokens[position + 1].is_mark("."):
            return
        position += 2
