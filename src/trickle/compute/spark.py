"""What Spark computes: plans lowered to DataFrames over given leaves, run, their rows kept in the driver or the cluster.

A result that is small comes to the driver as rows of Spark's own making and goes back as a local relation, whose size the
planner knows: joins with it are broadcast, and a result that turns out empty removes the work that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from trickle.algebra.plan import Iterate, Loop, LoopRef, Plan, Scan, Shared
from trickle.catalyst.lower import Lower
from trickle.compute.rows import Rows
from trickle.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm

_TWO_ROWS: Final = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
_OVERFLOWS: Final = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


def is_overflow(error: Exception) -> bool:
    """Return whether Spark failed because a number does not fit its type."""
    return isinstance(error, Py4JJavaError | PySparkException) and any(code in str(error) for code in _OVERFLOWS)


@dataclass(frozen=True, slots=True)
class SparkExecution:
    """Runs plans by Spark for one refresh.

    Attributes:
        in_driver: True to bring results to the driver, False to keep them in the cluster.
        key_ranges: True to read big tables only within the range of the changed keys.
    """

    jvm: Jvm
    in_driver: bool = True
    key_ranges: bool = False
    _persisted: list[DataFrame] = field(default_factory=list)

    @property
    def narrows(self) -> bool:
        """True if scans are to be narrowed to the range of the changed keys."""
        return self.in_driver and self.key_ranges

    def frame(self, plan: Plan, leaf_frame: Callable[[Plan], DataFrame]) -> DataFrame:
        """Return a plan as a DataFrame over the DataFrames of its leaves, not yet run."""
        in_one_task = self.narrows and _is_in_driver(plan)
        return Lower(self.jvm, leaf_frame, hints=self.in_driver, in_one_task=in_one_task).frame(plan)

    def compute(self, frame: DataFrame) -> Rows:
        """Run a DataFrame and keep its rows, in the driver or in the cluster."""
        if self.in_driver:
            return _collect(self.jvm, frame)
        kept = frame.persist()
        self._persisted.append(kept)
        count = kept.count()
        return Rows(self.jvm.persisted(kept), count)

    def release(self) -> None:
        """Release the cluster's memory."""
        for frame in self._persisted:
            frame.unpersist()
        self._persisted.clear()


def _is_in_driver(plan: Plan) -> bool:
    """Return whether a plan reads nothing but what the driver holds."""
    match plan:
        case Shared() | Iterate():
            return True
        case Scan(at=at):
            return at == "change"
        case Loop() | LoopRef():
            return False
    return all(_is_in_driver(p) for p in plan.inputs)


def _collect(jvm: Jvm, frame: DataFrame) -> Rows:
    """Run a DataFrame; return its rows as a local relation."""
    try:
        return Rows(*jvm.collected(frame))
    except (Py4JJavaError, PySparkException) as error:
        if _TWO_ROWS not in str(error):
            raise
        text = "a scalar subquery of the query returned more than one row; the stream table is unchanged."
        hint = "Correct the data, or let the subquery aggregate (max, first) its rows."
        raise SourceError(_TWO_ROWS, text, hint=hint) from error
