"""Arrays and structs in the driver: where rows are grouped, joined or ordered by them, numbers stand in for them.

Law    equal values have one number, in the order of the numbers they are in Spark's; NULL has none
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import polars as pl
import pyarrow as pa

from trickle.model.types import facts_of, leaves_of, parts_of
from trickle.tables.arrow.rows import ranks


def is_numbered(type_: str) -> bool:
    """Return whether numbers stand in for values of a type."""
    return parts_of(type_) is not None and all(facts_of(leaf).is_compared for leaf in leaves_of(type_))


def numbers(*columns: pl.Series) -> list[pl.Series]:
    """Return the numbers of columns of one type, equal values of any alike."""
    chunks = [_arrow(column) for column in columns]
    found = ranks(pa.chunked_array(chunks))
    ends = accumulate(map(len, chunks), initial=0)
    return [pl.Series(pl.from_arrow(found[start:end])) for start, end in pairwise(ends)]


def _arrow(column: pl.Series) -> Any:
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())
