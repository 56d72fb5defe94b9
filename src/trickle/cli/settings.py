"""What every command is told: where the tables are, what Spark is started with, how to answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from trickle.errors import SessionError
from trickle.layout import is_remote, warehouse_location

WAREHOUSE_VARIABLE: Final = "TRICKLE_WAREHOUSE"
DEFAULT_WAREHOUSE: Final = "warehouse"


class Format(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that all commands share.

    Attributes:
        warehouse: The folder of the tables or its URI, as given; None if it was not.
        master: Spark's master; None for this machine.
        conf: More Spark settings.
        format: How to answer; None if it was not said.
        debug: Whether to show stack traces and what Spark prints.
    """

    warehouse: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    format: Format | None = None
    debug: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the answer is JSON."""
        return self.format is Format.JSON

    def over(self, other: Settings) -> Settings:
        """Return these settings, with another's where these say nothing."""
        return Settings(
            self.warehouse or other.warehouse,
            self.master or other.master,
            {**other.conf, **self.conf},
            self.format or other.format,
            self.debug or other.debug,
        )

    @property
    def has_own_session(self) -> bool:
        """Whether the tables are those of a session of one's own: its settings were given, and no folder."""
        return self._asked_folder() is None and bool(self.master or self.conf)

    def folder(self) -> str:
        """Return the folder of the tables, or its URI.

        Raises:
            SessionError: ``NO_WAREHOUSE``.
        """
        asked = self._asked_folder()
        if asked is None:
            text = f"no warehouse is given, and there is no folder ./{DEFAULT_WAREHOUSE}."
            hint = f"Use --warehouse DIR, or set {WAREHOUSE_VARIABLE}."
            raise SessionError("NO_WAREHOUSE", text, hint=hint)
        if not is_remote(asked) and not Path(asked).is_dir():
            text = f"there is no warehouse folder {asked}."
            raise SessionError("NO_WAREHOUSE", text, hint="Check the path; trickle.local_session(…) makes one.")
        return asked

    def _asked_folder(self) -> str | None:
        named = self.warehouse or os.environ.get(WAREHOUSE_VARIABLE)
        if named:
            return warehouse_location(named)
        default = Path(DEFAULT_WAREHOUSE)
        return warehouse_location(default) if default.is_dir() and not (self.master or self.conf) else None


def read_pairs(pairs: Sequence[str], what: str) -> dict[str, str]:
    """Read ``key=value`` pairs.

    >>> read_pairs(["a=1", "b=x=y"], "conf")
    {'a': '1', 'b': 'x=y'}

    Raises:
        ValueError: A pair is none.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            message = f"--{what} takes NAME=VALUE, not {pair!r}"
            raise ValueError(message)
        found[key.strip()] = value.strip()
    return found


def read_versions(pairs: Sequence[str]) -> dict[str, int] | None:
    """Read ``table=version`` pairs; None if there are none.

    >>> read_versions(["orders=43"])
    {'orders': 43}

    Raises:
        ValueError: A pair is none, or its version is no number.
    """
    found = {}
    for table, text in read_pairs(pairs, "at").items():
        if not text.isdecimal():
            message = f"--at takes TABLE=VERSION, and {text!r} is no version"
            raise ValueError(message)
        found[table] = int(text)
    return found or None
