"""What a change does to a stored table, both in Arrow: which rows are deleted and inserted. Pure.

Law    stored after = stored before - the deleted rows + the inserted rows, as bags
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.tables.arrow.rows import near, nearest, row_ids, taken, with_places
from trickle.tables.arrow.types import are_decimals, arrow_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trickle.tables.arrow.rows import Numbers


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a table.

    Attributes:
        leaving: Positions of the stored rows to delete, each once.
        inserts: The inserted rows, with the table's columns.
    """

    leaving: Numbers
    inserts: pa.Table


class MissingRowsError(Exception):
    """A change deletes rows that are not stored."""


def edit_bag(stored: pa.Table, change: pa.Table) -> Edit:
    """Delete -n copies of each row of ``change``, insert +n; the weight is its last column.

    Rows with floating-point values that are not there as they are, but nearly so, are taken back too; one that is not
    stored at all may take back what the change itself brings.

    Raises:
        MissingRowsError: A row is not there that often.
    """
    weights = change.column(change.num_columns - 1).to_numpy()
    rows = change.select(range(change.num_columns - 1))
    inserts = with_places(rows, np.repeat(np.arange(len(weights)), np.maximum(weights, 0)))
    going = weights < 0
    if not going.any():
        return Edit(np.zeros(0, np.int64), inserts)
    gone = rows.filter(pa.array(going))
    places = near(stored, gone)
    pool, wanted = row_ids(with_places(stored, places), gone)
    leaving = places[taken(pool, wanted, -weights[going])]
    went = -int(weights[going].sum())
    if len(leaving) != went:
        copies = np.repeat(np.arange(len(wanted)), -weights[going])
        missing = with_places(gone, copies[~taken(wanted[copies], pool)])
        also, inserts, met = _nearly(stored, leaving, inserts, missing)
        leaving, went = np.concatenate([leaving, also]), went - (met - len(also))
    if len(leaving) != went:
        message = f"{len(leaving)} of the {went} rows that are to be deleted"
        raise MissingRowsError(message)
    return Edit(leaving, inserts)


def _nearly(stored: pa.Table, leaving: Numbers, inserts: pa.Table, missing: pa.Table) -> tuple[Numbers, pa.Table, int]:
    """Find matches of missing rows: stored ones first, then among the inserts, which lose them.

    Returns the places of the stored ones, the inserts that are left, and how many rows found a match.
    """
    exact = [place for place, kind in enumerate(missing.schema.types) if not arrow_facts(kind).is_floating]
    if len(exact) == missing.num_columns:
        return np.zeros(0, np.int64), inserts, 0
    left = np.setdiff1d(near(stored.select(exact), missing.select(exact)), leaving)
    at, met = nearest(with_places(stored, left), missing)
    alone = missing.filter(pa.array(~np.isin(np.arange(missing.num_rows), met)))
    gone, met_there = nearest(inserts, alone)
    inserts = inserts.filter(pa.array(~np.isin(np.arange(inserts.num_rows), gone)))
    return left[at], inserts, len(met) + len(met_there)


def edit_keys(stored: pa.Table, rows: pa.Table, touched: pa.Table, keys: Sequence[str]) -> Edit:
    """Make ``rows`` the stored rows of the touched keys; rows that are already there stay.

    Without keys the whole table is replaced.
    """
    places = np.arange(stored.num_rows)
    if keys:
        mine = rows.select(list(keys))
        wanted = pa.concat_tables([touched.rename_columns(mine.column_names).cast(mine.schema), mine])
        held = stored.select(list(keys))
        places = near(held, wanted)
        pool, some = row_ids(with_places(held, places), wanted)
        places = places[np.isin(pool, some)]
    found, new = row_ids(with_places(stored, places), rows)
    stay, known = taken(found, new), taken(new, found)
    return Edit(places[~stay], rows.filter(pa.array(~known)))


def edit_sum(stored: pa.Table, delta: pa.Table, keys: Sequence[str], count: str) -> Edit:
    """Add ``delta`` (unique by ``keys``) to the stored rows of its keys; a row whose ``count`` becomes 0 goes.

    Without keys the one row stays, whatever it counts.

    Raises:
        MissingRowsError: A count became negative, or a key has several stored rows.
        OverflowError: A sum does not fit its column.
    """
    values = [name for name in delta.column_names if name not in keys]
    delta = delta.filter(_any_nonzero(delta, values))
    asked = delta.select(list(keys))
    places = near(stored.select(list(keys)), asked)
    # Select last: a table without columns has no rows to take.
    pool, wanted = row_ids(with_places(stored, places).select(list(keys)), asked)
    if len(np.unique(wanted)) != len(wanted):
        message = "a delta has each key once"
        raise AssertionError(message)
    found = np.isin(pool, wanted)
    places, pool = places[found], pool[found]
    if len(np.unique(pool)) != len(pool):
        message = "several rows of one key"
        raise MissingRowsError(message)
    # Sort both sides by number, so that the stored rows of a key lie side by side.
    known = np.isin(wanted, pool)
    places = places[np.argsort(pool)]
    by_number = np.argsort(wanted[known])
    older, newer = with_places(stored, places), with_places(delta.filter(pa.array(known)), by_number)
    sums = [_added(older[name], newer[name]) if name in values else older[name] for name in delta.column_names]
    after = pa.concat_tables([pa.Table.from_arrays(sums, schema=delta.schema), delta.filter(pa.array(~known))])
    counts = after[count].to_numpy()
    if (counts < 0).any():
        message = "fewer input rows than are to be taken away"
        raise MissingRowsError(message)
    return Edit(places, after.filter(pa.array(counts != 0)) if keys else after)


def _any_nonzero(delta: pa.Table, names: Sequence[str]) -> Any:
    mask: Any = pa.array(np.zeros(delta.num_rows, np.bool_))
    for name in names:
        kind = delta[name].type
        zero = pa.scalar(Decimal(0) if are_decimals(kind) else 0, kind)
        mask = pc.or_(mask, pc.not_equal(delta[name], zero))
    return mask


def _added(left: Any, right: Any) -> Any:
    """Add two columns of one type, and keep it."""
    kind = left.type
    try:
        if are_decimals(kind):
            # The sum of two decimals of the highest precision fits no decimal128: add in a wider one, then narrow.
            wide = pa.decimal256(kind.precision + 1, kind.scale)
            return pc.add(left.cast(wide), right.cast(wide)).cast(kind)
        return pc.add_checked(left, right)
    except pa.ArrowInvalid as error:
        message = f"a sum does not fit {kind}"
        raise OverflowError(message) from error
