"""A sorted column, in which the rows of some values are found without reading the others.

Law    places(keys) = every place that holds one of the keys, in order
Cost   two binary searches for each key; to build it, a sort, unless the column is sorted as it is
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.types import polars_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS: Final = 63
"""Of a number that holds a value and its place."""

_PLACE: Final = 4
"""Bytes of a place."""


class ColumnIndex:
    """The values of a column in order, and the places they come from."""

    def __init__(self, values: NDArray[Any], order: NDArray[Any] | None) -> None:
        """Take values in order; without ``order`` they stand in their places."""
        self._values = values
        self._order = order

    @classmethod
    def of(cls, column: pl.Series) -> ColumnIndex:
        """Build the index of a column that ``is_indexed``."""
        values = column.to_physical()
        if column.is_sorted():
            return cls(values.to_numpy(), None)
        plain = values.to_numpy()
        low, places = int(plain.min()), len(plain).bit_length()
        if (int(plain.max()) - low).bit_length() + places > _BITS:
            order = values.arg_sort().to_numpy()
            return cls(plain[order], order)
        # One number of a value and its place is sorted several times as fast as places by their values.
        numbers = (plain.astype(np.int64) - low << places) + np.arange(len(plain))
        numbers = pl.Series(numbers).sort().to_numpy()
        order = (numbers & ((1 << places) - 1)).astype(np.uint32)
        return cls(((numbers >> places) + low).astype(plain.dtype), order)

    @staticmethod
    def max_bytes(column: pl.Series) -> int:
        """Return the bytes that the index of a column may take besides it."""
        return int(column.estimated_size()) + _PLACE * len(column)

    @property
    def bytes(self) -> int:
        """The bytes of the index, without the column."""
        return 0 if self._order is None else int(self._values.nbytes + self._order.nbytes)

    def places(self, keys: pl.Series, options: Options = DEFAULT) -> NDArray[Any] | None:
        """Return the places of keys, which are in order and of the column's type.

        None if they are so many that a look at every row is cheaper.
        """
        wanted = keys.to_physical().to_numpy()
        first = np.searchsorted(wanted, self._values[0], "left")
        wanted = wanted[first : np.searchsorted(wanted, self._values[-1], "right")]
        if len(wanted) * options.index_rows_per_key > len(self._values):
            return None
        low = np.searchsorted(self._values, wanted, "left")
        counts = np.searchsorted(self._values, wanted, "right") - low
        places = np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return places if self._order is None else np.sort(self._order[places])


def is_indexed(column: pl.Series) -> bool:
    """Return whether a column's values can be searched for: whole numbers or dates, some, and none missing."""
    return polars_facts(column.dtype).is_counted and len(column) > 0 and not column.null_count()
