"""What a stream table becomes when its query is replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trickle.errors import ConflictError

CONCURRENT_ALTER: Final = "CONCURRENT_ALTER"


@dataclass(frozen=True, slots=True)
class Redefinition:
    """What a table becomes with the commit that replaces all its rows: the columns are those of the rows.

    Attributes:
        properties: Properties to set; None takes one away.
        partition_by: The columns that its files are partitioned by from now on.
        instead_of: The definition that it was planned for, as it is stored; None for any.
    """

    properties: Mapping[str, str | None]
    partition_by: tuple[str, ...] = ()
    instead_of: str | None = None


def altered(table: str) -> ConflictError:
    """Build the error for a change of a definition that another one has overtaken."""
    text = f"somebody else has changed the definition of stream table '{table}' meanwhile; nothing was written."
    return ConflictError(CONCURRENT_ALTER, text, hint="Do it again; it starts from the other one's definition.")
