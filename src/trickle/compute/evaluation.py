"""Computes plans: key look-ups first, then what can be in the driver, the rest by Spark; each shared result once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trickle.algebra.plan import Empty, Iterate, Plan, Shared
from trickle.algebra.walk import walk
from trickle.compile.prune import prune
from trickle.compute.driver.plans import DriverExecution
from trickle.compute.key_lookups import KeyLookups, LookupBudget
from trickle.compute.key_propagation import KeyPropagation
from trickle.compute.key_ranges import narrow
from trickle.compute.leaves import Leaves
from trickle.compute.rows import Rows
from trickle.compute.spark import SparkExecution
from trickle.errors import SourceError
from trickle.model.options import DEFAULT, Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm
    from trickle.compute.inputs import Inputs


def evaluate_by_spark(jvm: Jvm, inputs: Inputs, options: Options = DEFAULT) -> Evaluation:
    """Compute plans over snapshots by Spark alone."""
    return Evaluation(SparkExecution(jvm), Leaves(jvm, inputs, options))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The computation of one refresh.

    Attributes:
        spark: Runs what is left to Spark.
        leaves: The rows that plans read, and what was computed so far.
        in_driver: True to compute in the driver what the driver has the rows for.
    """

    spark: SparkExecution
    leaves: Leaves
    in_driver: bool = False
    _budget: LookupBudget = field(default_factory=LookupBudget)

    def rows(self, plan: Plan) -> Rows | None:
        """Compute a plan, and before it the shared results it reads; None if it has no rows by construction."""
        plan = self._settle(plan)
        if isinstance(plan, Empty):
            return None
        if isinstance(plan, Shared | Iterate):
            return self.leaves.shared[plan.name]
        return self._compute(plan)

    def rows_in_driver(self, plan: Plan) -> Rows | None:
        """Compute a plan in the driver; None if a part of it needs Spark."""
        plan = self._find_rows(plan)
        return self.leaves.shared[plan.name] if isinstance(plan, Shared) else None

    def frame(self, plan: Plan) -> DataFrame:
        """Return a plan without shared results as a DataFrame, not yet run."""
        return self._lower(self._find_rows(plan))

    def release(self) -> None:
        """Release the memory of the cluster and of the driver."""
        self.spark.release()
        rows = self._budget.rows + sum(rows.count for rows in self.leaves.inputs.changes.values())
        self.leaves.clear()
        if rows > self.leaves.options.release_rows:
            pa.default_memory_pool().release_unused()

    def _settle(self, plan: Plan) -> Plan:
        """Compute the shared results a plan reads, innermost first, and prune by what turned out empty."""
        shared = self.leaves.shared
        plan = prune(plan, self.leaves.empty)
        while True:
            pending = next((p for p in walk(plan) if isinstance(p, Shared | Iterate) and p.name not in shared), None)
            if pending is None:
                return plan
            if isinstance(pending, Iterate):
                shared[pending.name] = self._iterate(pending)
            else:
                shared[pending.name] = self._compute(pending.child)
            if shared[pending.name].count == 0:
                plan = prune(plan, self.leaves.empty)

    def _compute(self, plan: Plan) -> Rows:
        """Run a settled plan."""
        plan = self._find_rows(plan)
        return self.leaves.shared[plan.name] if isinstance(plan, Shared) else self.spark.compute(self._lower(plan))

    def _find_rows(self, plan: Plan) -> Plan:
        """Look up the rows of big tables that a plan needs, and compute what the driver then has all rows for."""
        if not self.spark.in_driver:
            return plan
        driver = DriverExecution(self.leaves, self.leaves.options) if self.in_driver else None
        lookups = KeyLookups(self.leaves, driver, self._budget)
        if self.leaves.looks_up:
            plan = KeyPropagation(lookups).visit(plan)
        return lookups.compute_part(plan)

    def _lower(self, plan: Plan) -> DataFrame:
        if self.spark.narrows:
            plan = narrow(plan, self.leaves.read_keys)
        return self.spark.frame(plan, self.leaves.frame)

    def _iterate(self, node: Iterate) -> Rows:
        """Follow a change through a recursion until a round brings nothing."""
        last = self._compute(node.seed)
        rounds = [last]
        while last.count:
            if 0 <= node.max_depth < len(rounds):
                text = f"a recursive CTE went deeper than {node.max_depth} levels."
                hint = "Raise spark.sql.cteRecursionLevelLimit and create the table again; or is there a cycle?"
                raise SourceError("RECURSION_LIMIT", text, hint=hint)
            inputs = replace(self.leaves.inputs, changes={})
            leaves = replace(self.leaves, inputs=inputs, shared={}, loops={node.loop: last})
            round_ = replace(self, leaves=leaves, _budget=LookupBudget())
            last = round_.rows(node.step) or Rows(last.frame.limit(0), 0)
            rounds.append(last)
        frame = rounds[0].frame
        for one in rounds[1:-1]:
            frame = frame.union(one.frame)
        return self.spark.compute(frame) if len(rounds) > 2 else rounds[0]
