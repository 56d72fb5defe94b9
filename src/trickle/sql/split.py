"""Splits a script into its statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trickle.sql.tokens import read_tokens

if TYPE_CHECKING:
    from trickle.sql.tokens import Token

_BLOCKS: Final = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})
"""What ends with ``END`` and its own word, and is not counted: ``IF`` may also be a function."""


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a script.

    Attributes:
        text: Its text, without the semicolon.
        start: Where it begins in the script.
        line: On which line, from 1.
        column: In which column, from 1.
    """

    text: str
    start: int
    line: int
    column: int

    @property
    def placed(self) -> str:
        """The text behind blank lines and spaces: errors in it then name the line and column of the script."""
        return "\n" * (self.line - 1) + " " * (self.column - 1) + self.text


def split_script(text: str) -> tuple[Part, ...]:
    r"""Split a script at its semicolons; what stands between BEGIN and END is one statement.

    >>> [part.text for part in split_script("SELECT ';'; -- two\nREFRESH STREAM TABLE t;")]
    ["SELECT ';'", 'REFRESH STREAM TABLE t']

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``, a string, a name or a comment has no end.
    """
    parts: list[Part] = []
    found: list[Token] = []
    for token in read_tokens(text):
        if token.kind == "end" or (token.is_mark(";") and _is_closed(found)):
            if found:
                parts.append(_part(text, found[0].start, token.start))
            found = []
        else:
            found.append(token)
    return tuple(parts)


def _part(text: str, start: int, stop: int) -> Part:
    column = start - text.rfind("\n", 0, start)
    return Part(text[start:stop].rstrip(), start, text.count("\n", 0, start) + 1, column)


def _is_closed(tokens: list[Token]) -> bool:
    """Return whether a statement that begins with BEGIN has reached its END; others always have."""
    if not tokens or not tokens[0].is_word("BEGIN"):
        return True
    depth = 0
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.is_word("BEGIN") or token.is_word("CASE"):
            depth += 1
        elif token.is_word("END"):
            word = after.text.upper() if after is not None and after.kind == "word" else ""
            # END CASE closes a CASE once, and is met again as one that opens.
            depth -= 0 if word in _BLOCKS else 2 if word == "CASE" else 1
    return depth <= 0
