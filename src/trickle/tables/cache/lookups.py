"""The look-up cache: rows of keys that recent look-ups found are not searched for again.

Law    rows(keys) = rows(known keys) + rows(other keys)
Why    the terms of a change ask for nearly the same keys one after the other, before and after it; and rows of a later
       version are those of an earlier one and the change between them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.rows import with_keys

Place = tuple[object, ...]
"""The files and columns of a look-up."""

Keys = Mapping[str, pa.Array]
"""Values of columns."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """The rows that have some keys, each the values of a column."""

    place: Place
    keys: Keys
    rows: pa.Table


class LookupCache:
    """The rows of recent look-ups, up to some bytes; thread-safe."""

    def __init__(self, options: Options = DEFAULT) -> None:
        """Start empty."""
        self._options = options
        self._numbers = count()
        self._looked: Cache[int, _Looked] = Cache(
            "look-ups",
            options.lookup_cache_entries,
            max_bytes=options.lookup_cache_bytes,
            bytes_of=lambda looked: int(looked.rows.nbytes),
        )

    def known(self, place: Place, keys: Keys) -> tuple[pa.Table | None, Keys | None]:
        """Return the rows of those keys that are known, and the keys to search for: None if all are known."""
        near = [(n, one) for n, one in self._looked.items() if one.place == place and one.keys.keys() == keys.keys()]
        for number, one in near:
            if all(one.keys[name].equals(values) for name, values in keys.items()):
                self._looked.known(number)  # it is the latest now
                return one.rows, None
        rows, missing = _part([one for _, one in near], keys, self._options)
        if rows is not None and missing is None:
            self._looked.put(next(self._numbers), _Looked(place, dict(keys), rows))
        return rows, missing

    def put(self, place: Place, keys: Keys, known: pa.Table | None, others: pa.Table) -> pa.Table:
        """Remember the rows of keys, those that were known and those that were searched for; returns them all."""
        rows = others if known is None else pa.concat_tables([known, others])
        self._looked.put(next(self._numbers), _Looked(place, dict(keys), rows))
        return rows


def _part(near: Sequence[_Looked], keys: Keys, options: Options) -> tuple[pa.Table | None, Keys | None]:
    """Return the known rows of one column's keys, if many of these are known together, and the keys that are not."""
    if len(keys) != 1:
        return None, keys
    ((name, wanted),) = keys.items()
    for known in reversed(near):
        if name not in known.rows.column_names or known.keys[name].type != wanted.type:
            continue
        is_known = pc.is_in(wanted, value_set=known.keys[name])
        missing = wanted.filter(pc.invert(is_known))
        if len(wanted) <= options.lookup_cache_share * (len(wanted) - len(missing)):
            rows = with_keys(known.rows, {name: wanted.filter(is_known)})
            return rows, {name: missing} if len(missing) else None
    return None, keys
