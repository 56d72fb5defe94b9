"""Rows that look-ups found lately: those of keys that were asked for before are not searched for again.

Law    rows(keys) = rows(known keys) + rows(other keys)
Why    the terms of a change ask for nearly the same keys one after the other, before and after it; and rows of a later
       version are those of an earlier one and the change between them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trickle.tables.arrow_rows import with_keys

Place = tuple[object, ...]
"""Where rows are looked up: files and columns."""

Search = Callable[[Mapping[str, pa.Array]], "pa.Table | None"]

_MOST: Final = 32
_MOST_BYTES: Final = 64 * 1024**2
_WORTH: Final = 2
"""What is known helps if at least one key in so many is."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """The rows of some keys, the values of the column of this name."""

    place: Place
    name: str
    keys: pa.Array
    rows: pa.Table


class LookedUp:
    """The rows found by the latest look-ups, up to some bytes."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: list[_Looked] = []

    def find(self, place: Place, keys: Mapping[str, pa.Array], search: Search) -> pa.Table | None:
        """Give the rows with some keys, searching only for those that are not known; None if the search gives none."""
        if len(keys) != 1:
            return search(keys)
        ((name, wanted),) = keys.items()
        rows = self._with(place, name, wanted, search)
        if rows is not None and name in rows.column_names:
            known = [*self._known, _Looked(place, name, wanted, rows)][-_MOST:]
            while sum(looked.rows.nbytes for looked in known) > _MOST_BYTES:
                del known[0]
            self._known = known  # at once: other threads may be looking
        return rows

    def _with(self, place: Place, name: str, wanted: pa.Array, search: Search) -> pa.Table | None:
        for known in reversed(self._known):
            if known.place != place or known.name != name or known.keys.type != wanted.type:
                continue
            is_known = pc.is_in(wanted, value_set=known.keys)
            missing = wanted.filter(pc.invert(is_known))
            if len(missing) * _WORTH <= len(wanted):
                rows = with_keys(known.rows, {name: wanted.filter(is_known)})
                others = search({name: missing}) if len(missing) else None
                if len(missing) and others is None:
                    return None
                return rows if others is None else pa.concat_tables([rows, others])
        return search({name: wanted})
