"""Keys that a user declares of a table: what identifies its rows, and which rows of others they refer to."""

from __future__ import annotations

from typing import Final

from trickle.model.stored import Stored

KEYS_PROPERTY: Final = "trickle.keys"
"""The property of a Delta table that holds what was declared of it."""


class ForeignKey(Stored):
    """Columns whose values, where none of them is NULL, are the primary key of a row of another table.

    Attributes:
        columns: The columns.
        table: The other table's id, which it keeps when it is renamed.
        name: What the other table was called, for messages.
    """

    columns: tuple[str, ...]
    table: str
    name: str


class TableKeys(Stored):
    """What was declared of one table. Columns are named as the files name them, so that renaming one changes nothing."""

    primary: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()


NO_KEYS: Final = TableKeys()
