"""How many rows a state table will have, told before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trickle.algebra.expr import Output, new_column
from trickle.algebra.plan import Aggregate, Plan, Project

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trickle.catalyst.jvm import Jvm
    from trickle.compute.evaluation import Evaluation


def has_more_rows(jvm: Jvm, evaluation: Evaluation, plan: Plan, most: int, read: Iterable[int | None]) -> bool:
    """Return whether a plan has more rows than ``most``, as far as that takes less than computing and writing them.

    The groups of an aggregate are estimated from its keys alone, without an exchange. ``read`` has the rows of each source, as
    far as known: few rows are not asked about.
    """
    if all(count is not None and count <= most for count in read):
        return False
    top = plan.child if isinstance(plan, Project) else plan
    if not isinstance(top, Aggregate):
        # Of each partition just enough is counted to know.
        rows = jvm.part_by_part(evaluation.frame(plan), most + 1)
        return rows.count() > most
    if not top.keys:
        return False
    keys = tuple(Output(new_column(f"k{place}"), key) for place, key in enumerate(top.keys))
    frame = evaluation.frame(Project(keys, top.child)).toDF(*(f"k{place}" for place in range(len(keys))))
    row = frame.selectExpr(f"approx_count_distinct(xxhash64({', '.join(frame.columns)}))").first()
    return row is not None and int(row[0]) > most
