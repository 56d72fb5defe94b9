"""Reads tokens one after the other: keywords, names, strings, numbers, lists."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import Final, NoReturn, TypeVar

from trickle.errors import DefinitionError
from trickle.model.names import shown_part, split_name
from trickle.sql.tokens import Token, fail, read_tokens

_Item = TypeVar("_Item")
_MAX_PARTS: Final = 3


class Reader:
    """The tokens of one text, and the next of them. The query at the end of a statement is read only when it is asked for."""

    def __init__(self, text: str) -> None:
        """Stand before the first token.

        Raises:
            SqlSyntaxError: ``SQL_SYNTAX``, a string, a name or a comment has no end.
        """
        self.text = text
        self._stream = read_tokens(text)
        self._ahead: list[Token] = []

    def peek(self, offset: int = 0) -> Token:
        """Return a token that is still to come."""
        while len(self._ahead) <= offset:
            if self._ahead and self._ahead[-1].kind == "end":
                return self._ahead[-1]
            self._ahead.append(next(self._stream))
        return self._ahead[offset]

    def next(self) -> Token:
        """Return the next token and go on."""
        token = self.peek()
        if token.kind != "end":
            self._ahead.pop(0)
        return token

    def sees(self, *words: str) -> bool:
        """Return whether these keywords come next."""
        return all(self.peek(place).is_word(word) for place, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Step over keywords if they come next."""
        found = self.sees(*words)
        for _ in words if found else ():
            self.next()
        return found

    def expect(self, *words: str) -> None:
        """Step over keywords that must come next."""
        for word in words:
            if not self.take(word):
                self.fail(word)

    def take_mark(self, mark: str) -> bool:
        """Step over a character if it comes next."""
        if not self.peek().is_mark(mark):
            return False
        self.next()
        return True

    def expect_mark(self, mark: str) -> None:
        """Step over a character that must come next."""
        if not self.take_mark(mark):
            self.fail(mark)

    def fail(self, expected: str, *, words: Collection[str] = (), at: Token | None = None) -> NoReturn:
        """Say what was expected in place of the next token; the nearest of some words is suggested.

        Raises:
            SqlSyntaxError: ``SQL_SYNTAX``.
        """
        token = at or self.peek()
        near = difflib.get_close_matches(token.text.upper(), words, 1) if token.kind == "word" else []
        hint = f"Did you mean {near[0]}?" if near else ""
        fail(self.text, token, f"expected {expected}, found {shown(token)}.", hint)

    def end(self) -> None:
        """Refuse anything that is left but semicolons."""
        last = None
        while self.peek().is_mark(";"):
            last = self.next()
        if self.peek().kind != "end":
            if last is None:
                self.fail("the end of the statement")
            fail(
                self.text,
                self.peek(),
                "a second statement begins here.",
                "Give one statement, or split the script first.",
            )

    # -- parts

    def name_part(self, what: str) -> str:
        """Read a name that may stand in backticks."""
        token = self.next()
        if token.kind not in ("word", "name"):
            self.fail(what, at=token)
        return token.text

    def name(self, what: str = "the name of a stream table") -> str:
        """Read a name with its schema and catalog; odd parts are given in backticks.

        Raises:
            SqlSyntaxError: ``SQL_SYNTAX``, or the code of what is wrong with the name.
        """
        first = self.peek()
        parts = [self.name_part(what)]
        while self.take_mark("."):
            parts.append(self.name_part("the next part of the name"))
        name = ".".join(map(shown_part, parts))
        try:
            split_name(name)
        except DefinitionError as error:
            fail(self.text, first, error.message, error.hint)
        return name

    def string(self, what: str) -> str:
        """Read a string literal."""
        token = self.next()
        if token.kind != "string":
            self.fail(f"{what} as a string in quotes", at=token)
        return token.text

    def number(self, what: str) -> int:
        """Read a whole number."""
        token = self.next()
        if token.kind != "word" or not token.text.isascii() or not token.text.isdecimal():
            self.fail(what, at=token)
        return int(token.text)

    def listed(self, item: Callable[[], _Item]) -> tuple[_Item, ...]:
        """Read a list in parentheses."""
        self.expect_mark("(")
        found = [item()]
        while self.take_mark(","):
            found.append(item())
        if not self.take_mark(")"):
            self.fail(", or )")
        return tuple(found)

    def rest(self, what: str) -> tuple[str, int]:
        """Read what is left as text, and where it begins; semicolons at its end do not belong to it."""
        start = self.peek().start
        while not self.peek().is_mark(";") and self.peek().kind != "end":
            self.next()
        stop = self.peek().start
        if start == stop:
            self.fail(what)
        self.end()
        return self.text[start:stop].rstrip(), start


def shown(token: Token) -> str:
    """Name a token in a message."""
    if token.kind == "end":
        return "the end"
    return f"'{token.text}'" if token.kind != "string" else f"the string '{token.text}'"
