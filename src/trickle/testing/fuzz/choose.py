"""Chooses the views of a case that tell something: a stream table that stays as it is costs as much as any."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from trickle.testing.fuzz.compare import differences
from trickle.testing.fuzz.tables import Row, Table, draw_rows

if TYPE_CHECKING:
    from trickle.testing.fuzz.case import Case, View
    from trickle.testing.fuzz.database import Plain

RESULT_ROWS: Final = 2_000
ANYWAY: Final = 0.08
"""Of views that are taken as they come: empty results, and those that stay the same, are maintained too."""


def choose(plain: Plain, case: Case, count: int) -> Case:
    """Keep some views: those that have rows, and other rows over other tables."""
    rng = Random(repr(case.rounds))
    for table in case.tables:
        plain.show(table, table.rows)
    before = [_answer(plain, view) for view in case.views]
    for table in case.tables:
        plain.show(table, _other_rows(rng, table))
    kept: list[View] = []
    for view, rows in zip(case.views, before, strict=True):
        if len(kept) == count:
            break
        if rng.random() < ANYWAY or (rows and differences(_answer(plain, view), rows) != ([], [])):
            kept.append(view)
    return replace(case, views=tuple(kept))


def _answer(plain: Plain, view: View) -> list[Row]:
    """Return plain Spark's rows; none if they are of no use."""
    try:
        rows = plain.rows(view.sql)
    except PySparkException:
        return []
    return rows if len(rows) <= RESULT_ROWS else []


def _other_rows(rng: Random, table: Table) -> list[Row]:
    """Return what the table may be like some changes later."""
    return [row for row in table.rows if rng.random() < 0.7] + list(draw_rows(rng, table, 3))
