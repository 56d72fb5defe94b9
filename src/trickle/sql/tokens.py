"""Cuts SQL text into tokens the way Spark's lexer does: what is in strings, names and comments is no syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from trickle.errors import SqlSyntaxError

Kind = Literal["word", "name", "string", "mark", "end"]
"""A word may be a keyword or a name; a name stood in backticks; a mark is one character of punctuation."""

_SPACE: Final = re.compile(r"\s+|--(?:\\\n|[^\r\n])*")
_COMMENT_PART: Final = re.compile(r"/\*|\*/")
_WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")
_RAW: Final = re.compile(r"[rR](?:'([^']*)'|\"([^\"]*)\")")
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_DOLLARS: Final = re.compile(r"(\$\w*\$)(.*?)\1", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL text.

    Attributes:
        text: A word as it was written, the name in backticks, the value of a string, or a character.
        start: Where it begins in the text.
        stop: Where it ends.
    """

    kind: Kind
    text: str
    start: int
    stop: int

    def is_word(self, word: str) -> bool:
        """Return whether it is a keyword."""
        return self.kind == "word" and self.text.upper() == word

    def is_mark(self, mark: str) -> bool:
        """Return whether it is a character of punctuation."""
        return self.kind == "mark" and self.text == mark


def read_tokens(text: str, at: int = 0) -> Iterator[Token]:
    """Yield the tokens of a text one by one, in the end one of kind ``end``; comments are none.

    >>> [token.text for token in read_tokens("REFRESH /* all */ `my table` -- now")]
    ['REFRESH', 'my table', '']

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``, a string, a name or a comment has no end.
    """
    while True:
        at = _skip(text, at)
        if at == len(text):
            yield Token("end", "", at, at)
            return
        token = _read(text, at)
        yield token
        at = token.stop


def _skip(text: str, at: int) -> int:
    """Return where the next token begins: after spaces and comments, which may be nested."""
    while at < len(text):
        if found := _SPACE.match(text, at):
            at = found.end()
        elif text.startswith("/*", at):
            at = _end_of_comment(text, at)
        else:
            break
    return at


def _end_of_comment(text: str, start: int) -> int:
    depth, at = 0, start
    while found := _COMMENT_PART.search(text, at):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
        if depth == 0:
            return at
    raise syntax_error(text, start, start + 2, "this comment has no end.", "Close it with */.")


def _read(text: str, at: int) -> Token:
    if found := _RAW.match(text, at):
        return Token("string", found[2] if found[1] is None else found[1], at, found.end())
    if found := _WORD.match(text, at):
        return Token("word", found[0], at, found.end())
    if found := _NAME.match(text, at):
        return Token("name", found[1].replace("``", "`"), at, found.end())
    if found := _STRING.match(text, at):
        return Token("string", unquote(found[0]), at, found.end())
    if found := _DOLLARS.match(text, at):
        return Token("string", found[2], at, found.end())
    what = {"'": "string", '"': "string", "`": "name in backticks"}.get(text[at])
    if what is not None:
        raise syntax_error(text, at, at + 1, f"this {what} has no end.", f"Close it with {text[at]}.")
    return Token("mark", text[at], at, at + 1)


def unquote(literal: str) -> str:
    r"""Return the value of a string literal.

    >>> unquote("'it''s'"), unquote(r"'it\'s'")
    ("it's", "it's")
    """
    quote = literal[0]
    parts = re.split(r"(\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.)", literal[1:-1], flags=re.DOTALL)
    whole = "".join(p if p.startswith("\\") else p.replace(quote * 2, quote) for p in parts)
    return _ESCAPE.sub(_unescape, whole)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) > 1:
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def quote_string(value: str) -> str:
    r"""Write a string literal.

    >>> print(quote_string("it's"))
    'it\'s'
    """
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\0", "\\0")):
        value = value.replace(plain, escaped)
    return f"'{value}'"


def syntax_error(
    text: str, start: int, stop: int, what: str, hint: str = "", *, code: str = "SQL_SYNTAX"
) -> SqlSyntaxError:
    """Build the error for a place in a text: line, column, the line itself, and carets below it."""
    before = text[:start]
    line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
    shown = text[start - column + 1 :].partition("\n")[0].rstrip("\r")
    width = max(1, min(stop - start, len(shown) - column + 1))
    indent = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
    place = f"line {line}, column {column}: {what}\n  {shown}\n  {indent}{'^' * width}"
    return SqlSyntaxError(code, place, hint=hint, line=line, column=column)


def fail(text: str, token: Token, what: str, hint: str = "") -> NoReturn:
    """Raise the error for a token.

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``.
    """
    raise syntax_error(text, token.start, token.stop, what, hint)
