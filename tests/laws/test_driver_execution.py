"""What the driver computes of a plan is what the plan means."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trickle.algebra.expr import Col, KeyPair, passthrough
from trickle.algebra.plan import Empty, InnerJoin, Plan, Project, Shared, When, Window
from trickle.algebra.walk import transform
from trickle.compile.program import compile_plan
from trickle.compile.prune import prune
from trickle.compute.driver.plans import DriverExecution
from trickle.model.options import OPTIMISATIONS
from trickle.rules import CHANGE_RULES, Derive
from trickle.rules.derive import net
from trickle.testing.evaluate import Bag, evaluate

from .random_plans import BUILDERS, SOURCES, databases, plans, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from trickle.algebra.expr import Opaque

AT = ("old", "new", "change")
IN_DRIVER = [node for node in BUILDERS if node in DriverExecution.OPERATORS and node is not Window]
"""Operators that the driver computes whenever it has their inputs; of windows it computes ranks alone."""


def in_driver(plan: Plan, database) -> list[tuple[Plan, Bag]]:
    """Return the parts of a plan that are computed in the driver, each with its rows."""
    made = []

    class Leaves:
        def driver_rows(self, leaf: Plan) -> pa.Table:
            rows = list(evaluate(leaf, database).elements())
            arrays = [pa.array([row[i] for row in rows], pa.int64()) for i, _ in enumerate(leaf.columns)]
            return pa.table(arrays, names=[c.name for c in leaf.columns])

        def driver_form(self, _: Opaque) -> None:
            return None

        def evaluate(self, *_: object) -> None:
            return None

        def keep_computed(self, part: Plan, found: pl.DataFrame) -> Plan:
            made.append((part, Counter(found.rows())))
            return Shared(f"made{len(made)}", part)

    def settle(node: Plan) -> Plan:
        """Drop what hangs on nothing, as a refresh does before it computes."""
        if isinstance(node, When):
            return node.child if evaluate(node.trigger, database) else Empty(node.columns)
        return node

    DriverExecution(Leaves()).visit(prune(transform(plan, settle)))
    return made


@pytest.mark.parametrize("node", IN_DRIVER)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), database=databases())
def test_driver_computes_every_operator_and_its_change_as_a_whole(node, data, database):
    plan = BUILDERS[node](data.draw, lambda: scan(data.draw(st.sampled_from(SOURCES))))

    for whole in (plan, Derive(frozenset(SOURCES), CHANGE_RULES).change(plan)):
        ((part, rows),) = in_driver(whole, database)

        assert part.columns == whole.columns
        assert rows == evaluate(whole, database)


@pytest.fixture
def computed() -> Iterator[Counter[str]]:
    """What the driver computed in all examples of a test: if it declined everything, nothing was tested."""
    counts: Counter[str] = Counter()
    yield counts
    assert counts["parts"] > 50
    assert counts["parts with rows"] > 10


#: The count goes over all examples.
OVER_ALL = [HealthCheck.function_scoped_fixture]


@settings(max_examples=300, deadline=None, suppress_health_check=OVER_ALL)
@given(plan=plans(), database=databases())
def test_driver_computes_what_a_plan_means(computed, plan, database):
    for part, rows in in_driver(plan, database):
        assert rows == evaluate(part, database)
        computed.update({"parts": 1, "parts with rows": bool(rows)})


@settings(max_examples=300, deadline=None, suppress_health_check=OVER_ALL)
@given(plan=plans(), database=databases(), state_tables=st.booleans())
def test_driver_computes_what_a_change_plan_means(computed, plan, database, state_tables):
    if state_tables:
        derived = compile_plan(plan, OPTIMISATIONS - {"push_keys", "order_joins"}).derive(frozenset(SOURCES))
        change = derived.change
    else:
        change = Derive(frozenset(SOURCES), CHANGE_RULES).change(plan)
    for part, rows in in_driver(change, database):
        assert rows == evaluate(part, database)
        computed.update({"parts": 1, "parts with rows": bool(rows)})


def test_joins_unions_and_netting_are_all_done_in_the_driver():
    left, right = (scan(source) for source in SOURCES[:2])
    joined = InnerJoin(left, right, (KeyPair(Col(left.columns[0]), Col(right.columns[0])),))
    change = net(Derive(frozenset(SOURCES), CHANGE_RULES).change(Project(passthrough(left.columns), joined)))
    rows = Counter({(1, 2, 1): 1, (3, None, -1): 1})
    database = {(s, at): rows if at == "change" else Counter({(1, 5): 2}) for s in SOURCES for at in AT}

    ((part, _),) = in_driver(change, database)

    assert part.columns == change.columns
