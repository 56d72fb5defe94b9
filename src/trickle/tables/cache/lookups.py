"""Rows that look-ups found lately: those of keys that were asked for before are not searched for again.

Law    rows(keys) = rows(known keys) + rows(other keys)
Why    the terms of a change ask for nearly the same keys one after the other, before and after it; and rows of a later
       version are those of an earlier one and the change between them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.rows import with_keys

Place = tuple[object, ...]
"""Where rows are looked up: files and columns."""

Search = Callable[[Mapping[str, pa.Array]], "pa.Table | None"]


@dataclass(frozen=True, slots=True)
class _Looked:
    """The rows that have some keys, each the values of a column."""

    place: Place
    keys: Mapping[str, pa.Array]
    rows: pa.Table


class LookupCache:
    """The rows found by the latest look-ups, up to some bytes."""

    def __init__(self, options: Options = DEFAULT) -> None:
        """Know nothing yet."""
        self._options = options
        self._known: list[_Looked] = []

    def find(self, place: Place, keys: Mapping[str, pa.Array], search: Search) -> pa.Table | None:
        """Give the rows with some keys, searching only for those that are not known; None if the search gives none."""
        near = [known for known in self._known if known.place == place and known.keys.keys() == keys.keys()]
        same = (known for known in near if all(known.keys[name].equals(values) for name, values in keys.items()))
        known = next(same, None)
        rows = known.rows if known is not None else _partly(near, keys, search, self._options)
        if rows is not None:
            others = (looked for looked in self._known if looked is not known)
            latest = [*others, known or _Looked(place, dict(keys), rows)][-self._options.lookup_cache_entries :]
            while sum(looked.rows.nbytes for looked in latest) > self._options.lookup_cache_bytes:
                del latest[0]
            self._known = latest  # at once: other threads may be looking
        return rows


def _partly(near: Sequence[_Looked], keys: Mapping[str, pa.Array], search: Search, options: Options) -> pa.Table | None:
    """Search for the keys of a column that are not known, if the others are known together; else for all."""
    if len(keys) != 1:
        return search(keys)
    ((name, wanted),) = keys.items()
    for known in reversed(near):
        if name not in known.rows.column_names or known.keys[name].type != wanted.type:
            continue
        is_known = pc.is_in(wanted, value_set=known.keys[name])
        missing = wanted.filter(pc.invert(is_known))
        if len(wanted) <= options.lookup_cache_share * (len(wanted) - len(missing)):
            rows = with_keys(known.rows, {name: wanted.filter(is_known)})
            if not len(missing):
                return rows
            others = search({name: missing})
            return None if others is None else pa.concat_tables([rows, others])
    return search(keys)
