"""Encodes cached columns in as few bytes as their values need.

Law    decoded(of(column)) = column
How    whole numbers, dates and decimals of up to 18 digits are held as the narrowest whole numbers that all of them fit
       into, texts that repeat as places in a list of them, others as they are
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import polars as pl
import pyarrow as pa

from trickle.model.options import DEFAULT, Options
from trickle.model.types import DATE, STRING
from trickle.tables.arrow.types import WHOLE_NUMBERS, are_decimals, are_whole, arrow_facts, polars_digits, polars_facts

MAX_DIGITS: Final = 18
"""Decimals with so many digits fit into 64-bit integers."""

_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column.

    Attributes:
        numbers: What is held of each value; the value itself if it is of another type.
        dtype: The column's own type.
        texts: What the numbers are places in, if the values are texts that repeat.
    """

    numbers: pl.Series
    dtype: pl.DataType
    texts: pl.Series | None = None

    @classmethod
    def of(cls, column: pl.Series, options: Options = DEFAULT) -> Encoded:
        """Encode a column."""
        few = options.encoding_texts
        if polars_facts(column.dtype) is STRING and column.head(options.encoding_sample).n_unique() <= few:
            coded = column.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
            if len(coded.dictionary) <= max(len(coded) // options.encoding_repeats, few):
                places = pl.Series(column.name, pl.from_arrow(coded.indices))
                texts = pl.Series(pl.from_arrow(coded.dictionary))
                return cls(places.cast(_narrowest(0, len(texts))), column.dtype, texts)
        if not _is_whole(column.dtype):
            return cls(column, column.dtype)
        whole = column.to_physical()
        low, high = (int(end) if isinstance(end, int) else 0 for end in (whole.min(), whole.max()))
        return cls(whole.cast(_narrowest(low, high)), column.dtype)

    @property
    def bytes(self) -> int:
        """The bytes of the encoded column."""
        return int(self.numbers.estimated_size() + (0 if self.texts is None else self.texts.estimated_size()))

    def keys(self, values: pl.Series) -> pl.Series:
        """Return values in order as its numbers in order; those that it has none for are left out."""
        if self.texts is not None:
            return self.texts.is_in(values.implode()).arg_true().cast(self.numbers.dtype)
        held = self.numbers.dtype
        if values.dtype == self.dtype == held:
            return values
        return values.cast(self.dtype, strict=False).to_physical().cast(held, strict=False).drop_nulls()

    def shown(self, numbers: pl.Series) -> pl.Series:
        """Return some of its numbers as ``decoded`` takes them: texts as texts, of whichever list they were."""
        return numbers if self.texts is None else self.texts[numbers.cast(pl.UInt32)].alias(numbers.name)


def decoded(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert numbers back to the values of a type that they were held for."""
    if are_whole(values.type) and are_decimals(type_):
        units = values.cast(pa.int64()).cast(pa.decimal128(38, 0))
        return units.view(pa.decimal128(38, type_.scale)).cast(type_)
    if are_whole(values.type) and arrow_facts(type_) is DATE:
        values = values.cast(pa.int32())
    return values.cast(type_)


def width(low: Any, high: Any, scale: int = 0) -> int | None:
    """Return the bytes in which values between two are held, None if that cannot be told of their type.

    >>> width(-3, 127), width(1, 60_000_000), width(Decimal("0.00"), Decimal("104949.50"), 2), width("a", "b")
    (1, 4, 4, None)
    """
    least, greatest = _whole(low, scale), _whole(high, scale)
    return None if least is None or greatest is None else 2 ** WHOLE_NUMBERS.index(_narrowest(least, greatest))


def _whole(value: Any, scale: int) -> int | None:
    match value:
        case datetime():
            return None
        case int():
            return value
        case date():
            return value.toordinal() - _FIRST_DAY
        case Decimal():
            return int(value.scaleb(scale))
    return None


def _is_whole(dtype: pl.DataType) -> bool:
    digits = polars_digits(dtype)
    return polars_facts(dtype).is_counted if digits is None else digits[0] <= MAX_DIGITS


def _narrowest(low: int, high: int) -> type[pl.DataType]:
    return next(t for bytes_, t in zip((1, 2, 4, 8), WHOLE_NUMBERS, strict=True) if _fits(low, high, 8 * bytes_))


def _fits(low: int, high: int, bits: int) -> bool:
    beyond = 1 << (bits - 1)
    return -beyond <= low and high < beyond
