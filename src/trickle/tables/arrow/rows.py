"""Finding rows by value in Arrow tables, comparing as Spark's null-safe equality does.

Law    row_ids(a, b)[i] == row_ids(a, b)[j]  exactly when the rows i and j of a and b laid end to end are equal:
       NULL equals NULL, NaN equals NaN, 0.0 equals -0.0; strings and binaries by their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.nearness import distance, is_near
from trickle.tables.arrow.types import are_structs, arrow_facts, has_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Form = Callable[[Any], Any]

_MAX_IDS: Final = 2**62
"""Larger numbers are renumbered before another column is added, so that they never overflow."""

_BYTES: Final = 8
"""Of a number."""


def row_ids(first: pa.Table, second: pa.Table, form: Form | None = None) -> tuple[Numbers, Numbers]:
    """Number the rows of two tables with the same column types, equal rows alike; ``form`` says what of values is equal."""
    count = first.num_rows + second.num_rows
    ids = np.zeros(count, np.int64)
    size = 1
    for left, right in zip(first.columns, second.columns, strict=True):
        codes, kinds = _codes(pa.chunked_array([*left.chunks, *right.chunks], type=left.type), form)
        if size * kinds > _MAX_IDS:
            ids, size = _codes(pa.chunked_array([pa.array(ids)]))
        ids = ids * kinds + codes
        size *= kinds
    return ids[: first.num_rows], ids[first.num_rows :]


def row_bits(rows: pa.Table) -> Numbers:
    """Number rows, those alike that are the same to the bit."""
    return row_ids(rows, rows.slice(0, 0), _as_bits)[0]


def ranks(column: pa.ChunkedArray) -> pa.Array:
    """Number the values of a column in Spark's order, equal ones alike: of arrays and structs whose leaves are compared.

    Their parts are compared one after the other, NULL being the least, and then their lengths.
    """
    numbers, _ = _codes(column, order=True)
    return pa.array(numbers, mask=column.is_null().to_numpy())


def _codes(column: pa.ChunkedArray, form: Form | None = None, *, order: bool = False) -> tuple[Numbers, int]:
    """Number the values of a column from 0; returns how many different ones there are, at least 1."""
    whole = _in_one(column)
    whole = _nested_keys(whole, form, order=order) if has_parts(whole.type) else (form or _normal)(whole)
    coded = pc.dictionary_encode(whole, null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    numbers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if order:
        values = coded.dictionary
        sorted_ = np.roll(pc.sort_indices(values).to_numpy(), values.null_count)  # NULL is last there
        numbers = np.argsort(sorted_)[numbers]
    return numbers, max(len(coded.dictionary), 1)


def _nested_keys(values: pa.Array, form: Form | None, *, order: bool) -> pa.Array:
    """Return for arrays and structs the numbers of their parts, end to end, as bytes: equal ones are equal, and in order."""
    if are_structs(values.type):
        parts = [_codes(pa.chunked_array([part]), form, order=order)[0] for part in values.flatten()]
        numbers = np.stack(parts, axis=1) if parts else np.zeros((len(values), 0), np.int64)
        ends = np.arange(len(values) + 1) * numbers.shape[1]
    else:
        numbers = _codes(pa.chunked_array([values.values]), form, order=order)[0]
        ends = values.offsets.to_numpy()
    places = pa.py_buffer((ends * _BYTES).astype(np.int64))
    valid = pa.array(values.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    data = pa.py_buffer(np.ascontiguousarray(numbers, ">i8"))
    return pa.Array.from_buffers(pa.large_binary(), len(values), [valid, places, data])


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _as_bits(column: Any) -> Any:
    """Return floats as the whole numbers of the same bits."""
    return column.view(f"int{column.type.bit_width}") if arrow_facts(column.type).is_floating else column


def _normal(column: Any) -> Any:
    """Normalise the zeros and NaNs of floats."""
    if not arrow_facts(column.type).is_floating:
        return column
    nan, zero = (pa.scalar(value, column.type) for value in (float("nan"), 0.0))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def near(stored: pa.Table, wanted: pa.Table) -> Numbers:
    """Return the places of stored rows that may equal a wanted one: all that do, and not many others.

    Each column of the few wanted rows is a set that the many stored values are looked up in, of a column after another
    only those that passed so far; only what passes all sets has to be numbered.
    """
    places = np.arange(stored.num_rows)
    for column, values in zip(stored.columns, wanted.columns, strict=True):
        if has_parts(column.type):
            continue  # Arrow looks up no arrays and structs
        left = column if len(places) == stored.num_rows else column.take(pa.array(places))
        passed = pc.is_in(_normal(left), value_set=_normal(values).combine_chunks())
        places = places[passed.to_numpy()]
    return places


def taken(pool: Numbers, wanted: Numbers, counts: Numbers | None = None) -> Mask:
    """Mark rows of a pool so that of each wanted number as many are marked as wanted, or all there are.

    Which of several equal rows is marked makes no difference.
    """
    numbers, inverse = np.unique(wanted, return_inverse=True)
    limits = np.bincount(inverse, weights=counts, minlength=len(numbers)).astype(np.int64)
    marked = np.zeros(len(pool), np.bool_)
    if not len(numbers):
        return marked
    place = np.minimum(np.searchsorted(numbers, pool), len(numbers) - 1)
    limit = np.where(numbers[place] == pool, limits[place], 0)
    order = np.argsort(pool, kind="stable")
    ordered = pool[order]
    starts = np.searchsorted(ordered, ordered)
    marked[order] = np.arange(len(pool)) - starts < limit[order]
    return marked


def nearest(pool: pa.Table, wanted: pa.Table) -> tuple[Numbers, Numbers]:
    """Pair each wanted row with a row of the pool that is equal but for near floating-point values, each at most once.

    Returns the places of the pairs in both. Of several that are near the nearest is taken.
    """
    floating = [place for place, kind in enumerate(wanted.schema.types) if arrow_facts(kind).is_floating]
    others = [place for place in range(wanted.num_columns) if place not in floating]
    if not floating or not pool.num_rows or not wanted.num_rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    groups, asked = row_ids(pool.select(others), wanted.select(others))
    order = np.argsort(groups, kind="stable")
    starts, ends = (np.searchsorted(groups[order], asked, side=side) for side in ("left", "right"))
    have, want = (list(zip(*(t.column(p).to_pylist() for p in floating), strict=True)) for t in (pool, wanted))
    free = np.ones(pool.num_rows, np.bool_)
    pairs = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        near_ones = [at for at in order[start:end] if free[at] and is_near(have[at], want[place])]
        if near_ones:
            best = min(near_ones, key=lambda at: distance(have[at], want[place]))
            free[best] = False
            pairs.append((best, place))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def with_places(table: pa.Table, places: Numbers | Sequence[int]) -> pa.Table:
    """Return some rows of a table."""
    return table.take(pa.array(places, pa.int64()))


def with_keys(rows: pa.Table, keys: Mapping[str, pa.Array]) -> pa.Table:
    """Return the rows whose value of each key column is one of the given."""
    for name, values in keys.items():
        rows = rows.filter(pc.is_in(rows[name], value_set=values.cast(rows[name].type)))
    return rows
