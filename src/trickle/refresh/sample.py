"""A sample of a stream table by its keys: the same rows of the table and of its query."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.compile.program import find_result_key
from trickle.model.names import quote
from trickle.model.types import facts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.refresh.prepare import Prepared


@dataclass(frozen=True, slots=True)
class Sample:
    """One in so many values of some columns.

    Attributes:
        part: One in so many.
        chosen: Which of them.
    """

    columns: tuple[str, ...]
    part: int
    chosen: int

    def of(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a frame that belong to it."""
        from pyspark.sql import functions as F

        digest = F.xxhash64(*(quote(name) for name in self.columns))
        return frame.where(F.pmod(digest, F.lit(self.part)) == self.chosen)


def choose_sample(prepared: Prepared, stored: DataFrame, rows: int, most: int) -> Sample | None:
    """Choose at random which of a table's keys are compared, None if all are.

    If the query groups, its group keys decide, so that Spark computes no other groups; else all columns do. A floating-point
    value may differ in its last digits, so it decides nothing.
    """
    part = -(-rows // most)
    exact = [f.name for f in stored.schema.fields if facts_of(f.dataType.simpleString()).is_exact]
    keyed = find_result_key(prepared.program.whole)
    columns = exact
    if keyed is not None and keyed.keys:
        ids = {column.id for column in keyed.keys}
        pairs = zip(prepared.program.whole.columns, prepared.names, strict=True)
        keys = [name for column, name in pairs if column.id in ids]
        columns = keys if keys and set(keys) <= set(exact) else exact
    if part <= 1 or not columns:
        return None
    return Sample(tuple(columns), part, random.randrange(part))
