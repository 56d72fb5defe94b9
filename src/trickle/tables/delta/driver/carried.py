"""Leaves out the rows that a rewrite of files only carried over, without grouping all rows. Pure.

Law    left after - left before = after - before, as bags; a row is left out only with an equal one of the other side
How    Rows in the same places of two files of one length are compared there. The others are cut into runs wherever the hashes
       of two neighbours say so: what stands side by side before and after is cut alike. Runs that either side has once, by the
       sum of their hashes, are laid side by side and compared to the bit. What is left is cut into shorter runs and compared
       again
Cost   one comparison, and hashes where files differ in length: a fraction of what grouping all rows costs. Rows in another
       order are left in, all of them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from trickle.tables.arrow.rows import row_bits
from trickle.tables.arrow.types import SAME_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trickle.tables.arrow.rows import Mask, Numbers

    Hashes = NDArray[np.uint64]

_RUNS: Final = (5, 2)
"""Lengths of runs, as powers of two: long ones are few, short ones have fewer unchanged rows beside a changed one."""

_SAMPLE: Final = 4096
"""Rows of a file by which the file is found that it was made of."""

_FEW: Final = 256
_MOST: Final = 0.5
"""Of so many first rows of two files of one length, the share that must be the same for all to be compared in place."""

_NUMBER: Final = "__trickle_nested"

_BITS: Final = 64


def without_carried(before: Sequence[pl.DataFrame], after: Sequence[pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what is left of the rows of files before and after a rewrite; they have the same columns.

    First of each file with the one that it was made of, which keeps what is worked on small; then of all that is left.
    """
    names = before[0].columns
    told = _told([*before, *after])
    sides = told[: len(before)], told[len(before) :]
    _leave_out_in_place(*sides)
    old, new = ([_Hashed(rows, _flat(rows).hash_rows().to_numpy()) for rows in files] for files in sides)
    for mine, theirs in _paired(old, new):
        old[mine], new[theirs] = _left(old[mine], new[theirs], _RUNS[0])
    older, newer = _Hashed.of(old), _Hashed.of(new)
    for length in _RUNS:
        older, newer = _left(older, newer, length)
    return older.rows.select(names), newer.rows.select(names)


def _leave_out_in_place(before: list[pl.DataFrame], after: list[pl.DataFrame]) -> None:
    """Leave out rows that are the same in the same places of two files, as an update leaves most: none of them is hashed."""
    free = list(range(len(before)))
    for new, rows in enumerate(after):
        for old in [old for old in free if before[old].height == rows.height > 0]:
            if _equal_rows(before[old].head(_FEW), rows.head(_FEW)).mean() > _MOST:
                differs = ~_equal_rows(before[old], rows)
                before[old], after[new] = _chosen(before[old], differs), _chosen(rows, differs)
                free.remove(old)
                break


def _equal_rows(left: pl.DataFrame, right: pl.DataFrame) -> Mask:
    """Tell which rows are the same, to the bit, as those in the same places of others."""
    equal = np.ones(left.height, np.bool_)
    for mine, theirs in zip(_flat(left).get_columns(), _flat(right).get_columns(), strict=True):
        equal &= _is_equal(_as_bits(mine), _as_bits(theirs))
    return equal


def _told(files: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Number the arrays and structs of files, those alike that are the same to the bit: the numbers stand in for them."""
    nested = [name for name, dtype in files[0].schema.items() if dtype.is_nested()]
    if not nested:
        return list(files)
    every = pl.concat([rows.select(nested) for rows in files]).to_arrow(compat_level=pl.CompatLevel.oldest())
    numbers = row_bits(every)
    ends = np.cumsum([rows.height for rows in files])
    parts = np.split(numbers, ends[:-1])
    return [rows.with_columns(pl.Series(_NUMBER, part)) for rows, part in zip(files, parts, strict=True)]


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that are compared."""
    return rows.select(name for name, dtype in rows.schema.items() if not dtype.is_nested())


@dataclass(frozen=True, slots=True)
class _Hashed:
    """Rows and the hash of each."""

    rows: pl.DataFrame
    hashes: Hashes

    @classmethod
    def of(cls, parts: Sequence[_Hashed]) -> _Hashed:
        """Put rows one after the other."""
        return cls(pl.concat([part.rows for part in parts]), np.concatenate([part.hashes for part in parts]))

    def chosen(self, mask: Mask) -> _Hashed:
        """Return some of the rows."""
        return _Hashed(_chosen(self.rows, mask), self.hashes[mask])


class _Runs:
    """Rows in runs: where each begins, its length, and the sum of its hashes."""

    def __init__(self, hashes: Hashes, length: int) -> None:
        neighbours = hashes.copy()
        neighbours[1:] += hashes[:-1]
        begins = neighbours < np.uint64(1 << (_BITS - length))
        begins[0] = True
        self.starts = np.flatnonzero(begins)
        self.lengths = np.diff(self.starts, append=len(hashes))
        self.sums = np.add.reduceat(hashes, self.starts)

    def once(self) -> tuple[Hashes, Numbers]:
        """Return the sums that one run alone has, in order, with the numbers of the runs."""
        order = np.argsort(self.sums)
        sums = self.sums[order]
        differs = np.ones(len(sums) + 1, np.bool_)
        np.not_equal(sums[1:], sums[:-1], out=differs[1:-1])
        alone = differs[1:] & differs[:-1]
        return sums[alone], order[alone]

    def chosen(self, numbers: Numbers) -> Mask:
        """Tell which rows are in some of the runs."""
        runs = np.zeros(len(self.starts), np.bool_)
        runs[numbers] = True
        return np.repeat(runs, self.lengths)

    def rows(self, numbers: Numbers) -> Numbers:
        """Return the places of the rows of some runs."""
        lengths = self.lengths[numbers]
        skipped = self.starts[numbers] - (np.cumsum(lengths) - lengths)
        return np.repeat(skipped, lengths) + np.arange(lengths.sum())


def _paired(old: Sequence[_Hashed], new: Sequence[_Hashed]) -> Iterator[tuple[int, int]]:
    """Return the numbers of files before and after that share most of a sample of their rows, each once."""
    some = [_Runs(part.hashes, _RUNS[0]) if len(part.hashes) else None for part in old]
    sums = np.concatenate([np.zeros(0, np.uint64), *(runs.sums for runs in some if runs is not None)])
    of = np.repeat(np.arange(len(old)), [0 if runs is None else len(runs.sums) for runs in some])
    order = np.argsort(sums)
    sums, of = sums[order], of[order]
    taken: set[int] = set()
    for number, part in enumerate(new):
        if not len(part.hashes):
            continue
        at, both = _found(sums, _Runs(part.hashes[:_SAMPLE], _RUNS[0]).sums)
        votes = np.bincount(of[at[both]], minlength=len(old))
        votes[list(taken)] = 0
        if votes.any():
            mine = int(votes.argmax())
            taken.add(mine)
            yield mine, number


def _found(sums: Hashes, wanted: Hashes) -> tuple[Numbers, Mask]:
    """Return where sums stand among others, which are in order, and which of them do."""
    if not len(sums):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(sums, wanted), len(sums) - 1)
    return at, sums[at] == wanted


def _left(older: _Hashed, newer: _Hashed, length: int) -> tuple[_Hashed, _Hashed]:
    """Return the rows of both sides that have no equal row in the run that is like theirs."""
    if not (len(older.hashes) and len(newer.hashes)):
        return older, newer
    old, new = _Runs(older.hashes, length), _Runs(newer.hashes, length)
    (sums, numbers), (others, other_numbers) = old.once(), new.once()
    at, both = _found(others, sums)
    mine, theirs = numbers[both], other_numbers[at[both]]
    same = old.lengths[mine] == new.lengths[theirs]
    order = np.argsort(mine[same])
    mine, theirs = mine[same][order], theirs[same][order]
    in_old, in_new = old.chosen(mine), new.chosen(theirs)
    places = None if bool((theirs[1:] > theirs[:-1]).all()) else new.rows(theirs)  # None: in their order
    flat = _flat(newer.rows)
    beside = _chosen(flat, in_new) if places is None else flat[places]
    equal = _equal_rows(_chosen(_flat(older.rows), in_old), beside)
    if not equal.all():
        places = np.flatnonzero(in_new) if places is None else places
        in_old[np.flatnonzero(in_old)[~equal]] = False
        in_new[places[~equal]] = False
    return older.chosen(~in_old), newer.chosen(~in_new)


def _chosen(rows: pl.DataFrame, mask: Mask) -> pl.DataFrame:
    """Return some rows; column by column, which for short columns takes less than a query."""
    chosen = pl.Series(mask)
    return pl.DataFrame([column.filter(chosen) for column in rows.get_columns()])


def _is_equal(left: pl.Series, right: pl.Series) -> Mask:
    """Compare columns, NULL being equal to NULL; without one, a plain comparison is quicker."""
    has_null = left.null_count() or right.null_count()
    return (left.eq_missing(right) if has_null else left == right).to_numpy()


def _as_bits(column: pl.Series) -> pl.Series:
    """Return floats as the whole numbers of the same bits: 0.0 is not -0.0, and a NaN equals itself only."""
    kind = SAME_BITS.get(type(column.dtype))
    return column if kind is None else pl.Series(pl.from_arrow(column.rechunk().to_arrow().view(kind)))
