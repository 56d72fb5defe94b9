"""Rows that follow from declared keys, so that they need not be searched for.

    S has primary key k     for a key in S's change, the inserted row is the one S has now, and the deleted row the one it
                            had before.
    S.f refers to P         a key inserted into P had no rows in S before, and those it has now are in S's change; a key
                            deleted from P has no rows in S now, and those it had are in S's change.

Only the other keys are searched for. If a change contradicts a declaration, the refresh fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.errors import SourceError
from trickle.model.keys import NO_KEYS
from trickle.model.reason import KEY_VIOLATED
from trickle.tables.arrow.rows import with_keys

if TYPE_CHECKING:
    from trickle.algebra.plan import Scan
    from trickle.model.definition import SourceVersion
    from trickle.model.keys import TableKeys
    from trickle.tables.contract import SourceTable


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The rows of a scan that follow from a declared key, and the keys that are still to be searched for.

    Attributes:
        rows: The rows; None if the key tells that there are none.
        keys_left: What is left of the keys asked for.
        is_all: True if nothing is left to search for.
    """

    rows: pa.Table | None
    keys_left: Mapping[str, pa.Array]
    is_all: bool


@dataclass(frozen=True, slots=True)
class _Covered:
    """Values of a column that a declared key covers, and all rows that have them; None for none."""

    values: pa.Array
    rows: pa.Table | None


@dataclass(frozen=True, slots=True)
class DeclaredKeys:
    """What the keys declared of a refresh's sources tell, given their changes.

    Attributes:
        sources: The sources, by name.
        old: Their versions before.
        new: Their versions after.
        changes: Of each source whose rows changed, the change as a table, its weights the last column; None if the driver
            does not have it.
    """

    sources: Mapping[str, SourceTable]
    old: Mapping[str, SourceVersion]
    new: Mapping[str, SourceVersion]
    changes: Mapping[str, pa.Table | None]
    _known: dict[tuple[str, str, str], _Covered | None] = field(default_factory=dict)

    def known_rows(self, scan: Scan, keys: Mapping[str, pa.Array]) -> KnownRows | None:
        """Return the rows of a scan with some keys that need no search; None if no declared key tells of any."""
        if scan.source not in self.sources:  # a state table of another plan
            return None
        for column, wanted in keys.items():
            known = self._known_by(scan, column)
            if known is not None and known.values.type == wanted.type:
                left = _without(wanted, known.values)
                rows = None
                if known.rows is not None:
                    rows = with_keys(known.rows.select([c.name for c in scan.base]), keys)
                return KnownRows(rows, {**keys, column: left}, is_all=rows is not None and not len(left))
        return None

    def _known_by(self, scan: Scan, column: str) -> _Covered | None:
        place = scan.source, scan.at, column
        if place not in self._known:
            self._known[place] = self._by_primary(scan, column) or self._by_foreign(scan, column)
        return self._known[place]

    def _by_primary(self, scan: Scan, column: str) -> _Covered | None:
        change = self.changes.get(scan.source)
        if change is None or self._keys(scan.source).primary != (column,):
            return None
        came, went = self._unique_sides(scan.source, column, change)
        return _Covered(_together(came[column], went[column]), came if scan.at == "new" else went)

    def _by_foreign(self, scan: Scan, column: str) -> _Covered | None:
        parent = self._parent(scan.source, column)
        theirs = None if parent is None else self.changes.get(parent)
        mine = self.changes.get(scan.source)
        if parent is None or theirs is None or (mine is None and scan.source in self.changes):
            return None
        (key,) = self._keys(parent).primary
        if key not in theirs.column_names:
            return None  # the query does not read it
        came, went = (rows[key] for rows in self._unique_sides(parent, key, theirs))
        fresh, gone = _without(came, went), _without(went, came)
        if mine is None:
            return _Covered(_together(fresh, gone), None)
        rows_came, rows_went = _sides(mine)
        for rows, absent, when in ((rows_came, gone, "any more"), (rows_went, fresh, "before")):
            orphans = rows.filter(pc.is_in(rows[column], value_set=absent))
            if orphans.num_rows:
                text = f"{scan.source}.{column} has {orphans[column][0].as_py()!r}, which {parent} does not have {when}"
                raise _violated(text)
        rows, keys = (rows_came, fresh) if scan.at == "new" else (rows_went, gone)
        return _Covered(_together(fresh, gone), rows.filter(pc.is_in(rows[column], value_set=keys)))

    def _parent(self, source: str, column: str) -> str | None:
        """Name the source whose primary key a column holds by itself."""
        tables = [key.table for key in self._keys(source).foreign if key.columns == (column,)]
        for name in self.sources:
            if self.new[name].identity in tables and len(self._keys(name).primary) == 1:
                return name
        return None

    def _keys(self, name: str) -> TableKeys:
        """Return what was declared of a source, of its rows before as well as of those after."""
        source = self.sources[name]
        now = source.keys(self.new[name].version)
        return now if now == NO_KEYS or now == source.keys(self.old[name].version) else NO_KEYS

    def _unique_sides(self, source: str, column: str, change: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the inserted and deleted rows, of which no two on a side have one key."""
        sides = _sides(change)
        for rows in sides:
            if rows.num_rows > pc.count_distinct(rows[column], mode="all").as_py():
                counts = pc.value_counts(rows[column])
                value = counts.field("values")[pc.index(counts.field("counts"), pc.max(counts.field("counts"))).as_py()]
                raise _violated(f"{source} has several rows whose {column} is {value.as_py()!r}")
        return sides


def _violated(text: str) -> SourceError:
    hint = "Correct the data, or withdraw the declaration with declare(table)."
    return SourceError(KEY_VIOLATED, f"a declared key does not hold: {text}.", hint=hint)


def _sides(change: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the inserted and deleted rows, each as often as it did."""
    weights = change.column(change.num_columns - 1).to_numpy()
    rows = change.drop_columns([change.column_names[-1]])
    places = np.arange(len(weights))
    came, went = (np.repeat(places, np.maximum(sign * weights, 0)) for sign in (1, -1))
    return rows.take(pa.array(came)), rows.take(pa.array(went))


def _without(values: Any, others: Any) -> pa.Array:
    """Return the values that are not among others, each once, NULL aside."""
    some = pc.drop_null(pc.unique(values))
    return some.filter(pc.invert(pc.is_in(some, value_set=pc.unique(others))))


def _together(values: Any, others: Any) -> pa.Array:
    """Return the values of two columns."""
    return pa.concat_arrays([pc.unique(values), pc.unique(others)])
