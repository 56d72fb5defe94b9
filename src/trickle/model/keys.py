"""Declared keys of a table: what identifies its rows, and which rows of other tables they refer to."""

from __future__ import annotations

from typing import Final

from trickle.model.stored import Stored

KEYS_PROPERTY: Final = "trickle.keys"
"""The property of a Delta table that holds its declared keys."""


class ForeignKey(Stored):
    """Columns whose values, if none is NULL, are the primary key of a row of another table.

    Attributes:
        columns: The columns.
        table: The id of the other table, which survives renames.
        name: The name of the other table, for messages.
    """

    columns: tuple[str, ...]
    table: str
    name: str


class TableKeys(Stored):
    """The declared keys of one table. Columns have the names used in files, so that a rename changes nothing."""

    primary: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()


NO_KEYS: Final = TableKeys()
