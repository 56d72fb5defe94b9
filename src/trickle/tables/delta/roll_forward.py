"""Rows of a version found in an older one, whose columns are cached, and rolled forward by the change between the two.

Law    rows(v, keys) = rows(b, keys) + change(b, v) with these keys
Cost   rows of the change. Commits that rewrite or mask files, most of whose rows are those of before, are not searched anew
Needs  a change that is small against the table; else ``b`` is given up for ``v``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trickle.model.options import DEFAULT, Options
from trickle.tables.arrow.rows import near, with_keys, with_places
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.driver.read import net_rows

if TYPE_CHECKING:
    from trickle.tables.delta.actions import FileAction

ChangeOf = Callable[[int, int, Sequence[str], int], "pa.Table | None"]
"""Returns the change between two versions, its weights the last column; None if it has more rows than a bound, or is not
cheap to have."""


@dataclass(frozen=True, slots=True)
class Base:
    """A version whose files are read for later ones.

    Attributes:
        generation: Of the log; another one is that of another table.
        files: The files at the version.
        columns: The columns of the changes.
        changes: The changes since, step by step: from a version, to a version.
    """

    generation: int
    version: int
    files: Sequence[FileAction]
    columns: tuple[str, ...] = ()
    changes: Mapping[tuple[int, int], pa.Table] | None = None

    def is_part_of(self, files: Sequence[FileAction]) -> bool:
        """Return whether all of its files are still among some, with the same rows: then nothing of it was rewritten."""
        return {file.key for file in self.files} <= {file.key for file in files}

    def extended(
        self, version: int, columns: Sequence[str], rows: int, change_of: ChangeOf, options: Options = DEFAULT
    ) -> Base | None:
        """Learn the change up to a later version with some columns; None if it is too much for a table of so many rows.

        To look through many changed rows costs what decoding the columns does.
        """
        every = tuple(dict.fromkeys((*self.columns, *columns)))
        before = self.changes or {}
        known = before if every == self.columns else {}
        ends = sorted({self.version, version, *(upto for _, upto in before)})
        if len(ends) > options.roll_forward_steps:
            return None
        changes: dict[tuple[int, int], pa.Table] = {}
        room = min(rows // options.roll_forward_share, options.roll_forward_rows)
        for step in pairwise(ends):
            change = known.get(step)
            if change is None:
                change = change_of(*step, every, room)
            if change is None or change.num_rows > room:
                return None
            room -= change.num_rows
            changes[step] = change
        return Base(self.generation, self.version, self.files, every, changes)

    def roll_forward(self, found: pa.Table, version: int, keys: Mapping[str, pa.Array]) -> pa.Table | None:
        """Return rows with some keys, found in its files, as they are at a version; None if they are not those of before."""
        steps = [change for (_, upto), change in (self.changes or {}).items() if upto <= version]
        names = [*found.column_names, WEIGHT]
        change = with_keys(pa.concat_tables([step.select(names) for step in steps]), keys)
        if not change.num_rows:
            return found
        went = change.filter(pc.less(change[WEIGHT], 0)).drop_columns([WEIGHT])
        places = near(found, went)
        some = with_places(found, places)
        weighted = some.append_column(change.schema.field(WEIGHT), pa.array(np.ones(some.num_rows, np.int64)))
        netted = net_rows(pa.concat_tables([weighted.cast(change.schema), change]), change.schema)
        weights = netted[WEIGHT].to_numpy()
        if len(weights) and weights.min() < 0:
            return None
        rows = with_places(netted.drop_columns([WEIGHT]), np.repeat(np.arange(len(weights)), weights))
        others = np.ones(found.num_rows, np.bool_)
        others[places] = False
        return pa.concat_tables([found.filter(pa.array(others)), rows.cast(found.schema)])
