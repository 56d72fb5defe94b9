"""Spark's expressions over rows that the driver holds: evaluated by Catalyst's interpreter in the driver, without a job.

Law    the values are those of a Spark job over the same rows: Spark's optimiser folds projections of local rows by the same
       rule, ``ConvertToLocalRelation``
Why    a job for ten rows costs a twentieth of a second, nearly all of it planning
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from trickle.catalyst.jvm import Jvm, items

if TYPE_CHECKING:
    from trickle.algebra.expr import Opaque


@dataclass(frozen=True, slots=True)
class RowProjection:
    """Expressions, ready to be evaluated over rows.

    Attributes:
        ids: The columns that they read.
        types: The names of these columns' types.
        results: The names of the expressions' types.
    """

    ids: tuple[int, ...]
    types: tuple[str, ...]
    results: tuple[str, ...]
    _attributes: Any
    _outputs: Any

    def evaluate(self, jvm: Jvm, rows: Any) -> Any | None:
        """Return a ``LocalRelation`` of the expressions' values, None if only a job can tell.

        Args:
            jvm: Catalyst.
            rows: A ``LocalRelation`` of the columns that they read.
        """
        relation = jvm.plan("LocalRelation", self._attributes, rows.data(), False, jvm.none)
        rule = jvm.singleton("org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
        try:
            found = rule.apply(jvm.plan("Project", self._outputs, relation))
        except (Py4JError, PySparkException):
            return None  # a value that cannot be computed: the job fails with Spark's own error
        return found if jvm.name(found) == "LocalRelation" else None


def row_projection(jvm: Jvm, exprs: Sequence[Opaque]) -> RowProjection:
    """Prepare expressions."""
    attributes = {int(a.exprId().id()): a for e in exprs for a in items(e.handle.references().toSeq())}
    types = tuple(str(a.dataType().catalogString()) for a in attributes.values())
    results = tuple(str(e.handle.dataType().catalogString()) for e in exprs)
    outputs = [jvm.alias(e.handle, f"e{place}") for place, e in enumerate(exprs)]
    return RowProjection(tuple(attributes), types, results, jvm.seq(attributes.values()), jvm.seq(outputs))
