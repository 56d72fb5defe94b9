"""Key look-ups: the rows of big tables that a plan needs, found by their keys in the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.model.types import facts_of

if TYPE_CHECKING:
    from trickle.algebra.expr import Column
    from trickle.algebra.plan import Plan, Scan
    from trickle.compute.driver.plans import DriverExecution
    from trickle.compute.key_propagation import Keys, Wanted
    from trickle.compute.leaves import Leaves


@dataclass(slots=True)
class LookupBudget:
    """How many rows one refresh has found so far."""

    rows: int = 0

    def spend(self, rows: int) -> None:
        """Count rows that were found."""
        self.rows += rows


@dataclass(frozen=True, slots=True)
class KeyLookups:
    """Replaces scans by looked-up rows, during a walk over a plan.

    Attributes:
        driver: Computes parts of the plan as soon as their rows are found; None to leave them to Spark.
    """

    leaves: Leaves
    driver: DriverExecution | None
    budget: LookupBudget

    def read_keys(self, leaf: Plan, column: Column) -> Keys | None:
        """Return the values of a column of a leaf, None if the driver does not have them."""
        return self.leaves.read_keys(leaf, column)

    def read_scan(self, scan: Scan, wanted: Wanted) -> Plan:
        """Find the rows of a scan that have the wanted keys; the scan stays if the driver cannot."""
        options = self.leaves.options
        known = [c for c in scan.base if c.id in wanted and facts_of(c.type).is_looked_up]
        few = {c.name: keys for c in known if (keys := wanted[c.id].distinct(options.lookup_keys)) is not None}
        if not few or self.budget.rows > options.refresh_lookup_rows:
            return scan
        table = self.leaves.inputs.lookup(scan, few)
        if table is None:
            return scan
        self.budget.spend(table.num_rows)
        return self.leaves.keep_found(scan, table)

    def compute_part(self, plan: Plan) -> Plan:
        """Compute in the driver what of a plan can be."""
        return plan if self.driver is None else self.driver.visit(plan)
