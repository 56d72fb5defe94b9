"""Every kind of node stands in every table that goes by kinds of node, or here with the reason why not."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trickle.algebra.plan as language
import trickle.catalyst
from trickle.algebra.expr import Call, Col, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.node import OneInput, shape_of
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    Values,
    When,
    Window,
)
from trickle.algebra.render import WORDS, describe, render
from trickle.algebra.walk import rebuild, transform, walk
from trickle.catalyst.lower import LOWERERS
from trickle.catalyst.stored_classes import STORED_PLANS
from trickle.compile.narrow_scans import narrow_scans
from trickle.compile.order_joins import FEW_ROWS
from trickle.compile.prune import prune
from trickle.compile.push_keys import THROUGH
from trickle.compute.driver.plans import DriverExecution
from trickle.compute.key_propagation import KeyPropagation
from trickle.rules import CHANGE_RULES
from trickle.testing.evaluate import EVALUATORS, evaluate

from .random_plans import BUILDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KINDS = tuple(
    kind
    for kind in vars(language).values()
    if isinstance(kind, type) and issubclass(kind, Plan) and is_dataclass(kind) and kind is not Join
)

_DERIVED = "only the laws make it: it occurs in change plans"
_LEAF = "a leaf: there is nothing below it"
DERIVED = dict.fromkeys((Shared, When, Repeat, Iterate), _DERIVED)
CONSTANT = dict.fromkeys((Values, Empty), "constant rows never change")
ONCE = "computed once for all its readers"


@dataclass(frozen=True)
class Table:
    """A table that goes by kinds of node: what is in it, and what is not, with the reason."""

    file: str
    present: Iterable[type[Plan]]
    absent: Mapping[type[Plan], str]

    def complaints(self, kinds: Iterable[type[Plan]] = KINDS) -> list[str]:
        present = set(self.present)
        missing = [k for k in kinds if k not in present and k not in self.absent]
        stale = [k for k in self.absent if k in present]
        return [
            *(f"{k.__name__} is missing in {self.file}: give it a row, or say in {__name__} why not" for k in missing),
            *(f"{k.__name__} is in {self.file}, though {__name__} says: {self.absent[k]}" for k in stale),
        ]


def lifted() -> set[type[Plan]]:
    """Find the nodes that are built by the modules which lift."""
    folder = Path(trickle.catalyst.__file__).parent
    trees = [ast.parse(file.read_text()) for file in folder.glob("lift*.py")]
    calls = [n.func.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return {kind for kind in KINDS if kind.__name__ in calls}


NOT_STORED: set[str] = set()
"""Classes that occur in no stored plan."""


def matched(function: object) -> set[type[Plan]]:
    """Find the nodes that a function has a case for; a case for a kind of nodes is one for each."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {n.cls.id for n in ast.walk(tree) if isinstance(n, ast.MatchClass) and isinstance(n.cls, ast.Name)}
    named = tuple(kind for kind in vars(language).values() if isinstance(kind, type) and kind.__name__ in names)
    return {kind for kind in KINDS if issubclass(kind, named)}


TABLES = (
    Table(
        "src/trickle/rules/__init__.py",
        CHANGE_RULES,
        {**DERIVED, **CONSTANT},
    ),
    Table(
        "src/trickle/rules/__init__.py (the law in a sentence)",
        [k for k, rule in CHANGE_RULES.items() if rule.law],
        {**DERIVED, **CONSTANT, Scan: _LEAF, LoopRef: _LEAF},
    ),
    Table("src/trickle/catalyst/lift.py", lifted(), DERIVED),
    Table("src/trickle/catalyst/lower.py", LOWERERS, {}),
    Table("src/trickle/testing/evaluate.py", EVALUATORS, {}),
    Table(
        "src/trickle/compile/push_keys.py",
        THROUGH,
        {
            **dict.fromkeys((Scan, LoopRef, Values, Empty), _LEAF),
            **dict.fromkeys((Shared, Iterate), ONCE),
            When: "its child is restricted before the law wraps it",
            Repeat: "it stands over a change, which is small itself",
            GroupMap: "its function may give a key's rows other values",
            Expand: "its columns are computed, and some are NULL",
            TopK: "fewer rows have another top",
            Loop: "rows of other keys lead to those of a key",
        },
    ),
    Table(
        "src/trickle/compile/order_joins.py",
        FEW_ROWS,
        {
            Empty: "pruned before joins are ordered",
            LoopRef: "few as a change, many as all rows of a recursion",
            When: "as big as what it guards",
            OuterJoin: "keeps all rows of a side",
            Window: "as its input, which a restriction above it makes few",
            GroupMap: "a function may make many rows",
            Expand: "several rows of each",
            Union: "few as a sum of changes",
            Loop: "a recursion may make many rows",
        },
    ),
    Table(
        "src/trickle/compute/driver/plans.py",
        DriverExecution.OPERATORS,
        {
            **dict.fromkeys((Scan, LoopRef, Shared, Iterate), "a leaf: the driver has its rows, or not"),
            **dict.fromkeys((Values, RowWise, GroupMap), "only Catalyst knows what it does"),
            Empty: "pruned before",
            Expand: "left to Spark",
            Loop: "left to Spark",
        },
    ),
    Table(
        "src/trickle/compute/key_propagation.py",
        matched(KeyPropagation.visit),
        {
            **dict.fromkeys((LoopRef, Values, Empty), _LEAF),
            Iterate: "a recursion may lead from rows of other keys to those of a key",
            Loop: "a recursion may lead from rows of other keys to those of a key",
            When: "its trigger is computed before; the laws make it above restrictions",
            Repeat: "it stands over a change, which is not looked up",
            GroupMap: "its function may give a key's rows other values",
            Expand: "its columns are computed, and some are NULL",
            TopK: "fewer rows have another top",
        },
    ),
    Table(
        "tests/laws/random_plans.py",
        BUILDERS,
        {
            **DERIVED,
            **dict.fromkeys((Scan, Values), "a leaf of every random plan"),
            Empty: "what laws and prune make of nothing",
            **dict.fromkeys((Loop, LoopRef), "has a test of its own over edges without cycles"),
        },
    ),
)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.file)
def test_no_node_is_forgotten(table):
    assert table.complaints() == []


def test_what_lowering_builds_can_be_stored_and_read_again():
    """A DataFrame's query is stored as its plan, lifted and lowered: ``src/trickle/catalyst/stored_classes.py`` admits it."""
    folder = Path(trickle.catalyst.__file__).parent
    trees = [ast.parse(file.read_text()) for file in folder.glob("lower*.py")]
    calls = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
    built = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "plan" and isinstance(call.args[0], ast.Constant)
    }

    assert len(built) > 10
    assert built - set(STORED_PLANS) == NOT_STORED


@dataclass(frozen=True, slots=True, eq=False)
class Sample(OneInput):
    """A new node that nobody knows yet."""

    share: int
    seed: Col
    child: Plan


def test_a_new_node_is_missed_by_the_name_of_each_file():
    complaints = [c for table in TABLES for c in table.complaints((*KINDS, Sample))]

    assert [c.split(" is missing in ")[1].split(":")[0] for c in complaints] == [table.file for table in TABLES]


def table(name: str = "t") -> Scan:
    return Scan(name, (new_column("a", "bigint"), new_column("b", "bigint")))


def test_a_new_node_is_walked_rebuilt_checked_and_shown_by_its_fields():
    old, new = table(), table("u")
    sample = Sample(3, Col(old.columns[0]), old)

    assert sample.inputs == (old,)
    assert sample.exprs == (Col(old.columns[0]),)
    assert [type(n) for n in walk(sample)] == [Scan, Sample]
    assert describe(sample) == f"Sample 3 {old.columns[0]}"
    with pytest.raises(ValueError, match=r"Sample: .* that its input does not give"):
        rebuild(sample, (new,))


@dataclass(frozen=True, slots=True, eq=False)
class Perhaps(Plan):
    """A node whose input walking would pass over."""

    child: Plan | None


def test_an_input_that_would_be_passed_over_is_refused():
    with pytest.raises(TypeError, match=r"Perhaps.child: an input is declared as Plan or tuple\[Plan, ...\]"):
        Perhaps(table())


def with_inputs(below: type[Plan]) -> dict[type[Plan], Plan]:
    """Return a node of each kind that has inputs, all its inputs scans, or all empty."""

    def child() -> Plan:
        scan = table()
        return scan if below is Scan else Empty(scan.columns)

    one, two = child(), child()
    a, b = one.columns
    keys = (KeyPair(Col(a), Col(two.columns[0])),)
    ref = LoopRef(1, (new_column("x"), new_column("y")))
    nodes = (
        Shared("s1", one),
        When(Shared("s1", one) if below is Scan else one, two),
        Filter(Call(">", (Col(a), Lit(0))), one),
        Project(passthrough((b, a)), one),
        InnerJoin(one, two, keys),
        OuterJoin(one, two, keys, kind="full"),
        SemiJoin(one, two, keys),
        Aggregate((Col(a),), (Output(new_column("k"), Col(a)), Output(new_column("n"), Call("count", (Col(b),)))), one),
        Window((Output(new_column("w"), Call("max", (Col(b),))),), (Col(a),), (), one),
        RowWise((new_column("m"),), one, "Generate", frozenset((b.id,)), lambda v: [(v,)]),
        GroupMap(((Col(a),),), (one,), (new_column("g"), new_column("h")), "function", lambda rows: rows),
        Expand(((Col(a), Lit(None)), (Lit(None), Col(b))), (new_column("x"), new_column("y")), one),
        Repeat(one),
        Union((one, two), (new_column("x"), new_column("y"))),
        TopK((Col(a), Col(b)), 2, 0, one),
        Loop(1, one, Filter(Lit(value=False), ref) if below is Scan else two, (new_column("x"), new_column("y"))),
        Iterate("s2", 1, one, ref, 100),
    )
    return {type(n): n for n in nodes}


LEAVES = {Scan, Values, Empty, LoopRef}


def test_there_is_an_example_of_each_node():
    assert {*with_inputs(Scan), *LEAVES} == set(KINDS), "give a new node an example in with_inputs"


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in LEAVES], ids=lambda k: k.__name__)
class TestEachNode:
    """What holds of each kind by its fields alone."""

    def test_it_is_rebuilt_over_other_inputs(self, kind):
        node = with_inputs(Scan)[kind]

        assert rebuild(node, node.inputs) is node
        assert type(rebuild(node, tuple(Shared("copy", p) for p in node.inputs))) is kind

    def test_it_is_shown(self, kind):
        assert describe(with_inputs(Scan)[kind])
        assert render(with_inputs(Scan)[kind]).count("Scan t new [a, b]") >= len(shape_of(kind).inputs) - 1

    def test_over_nothing_it_is_pruned_if_it_has_no_rows(self, kind):
        node = with_inputs(Empty)[kind]

        assert evaluate(node, {}) == {}, "an example with rows over nothing says nothing of prune"
        assert isinstance(prune(node), Empty), "has_no_rows_over in src/trickle/algebra/plan.py"


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in LEAVES and k not in DERIVED], ids=lambda k: k.__name__)
def test_narrow_scans_leaves_what_it_reads(kind):
    node = with_inputs(Scan)[kind]
    plan = Project(passthrough(node.columns[:1]), node)
    whole = {c.id: p for p in walk(plan) if isinstance(p, Scan) for c in p.base}
    database = {("t", "new"): Counter({(1, 2): 1, (3, 1): 2, (3, 2): 1})}

    def some_columns(scan: Plan) -> Plan:
        return Project(passthrough(scan.base), whole[scan.base[0].id]) if isinstance(scan, Scan) else scan

    narrowed = transform(narrow_scans(plan), some_columns)

    assert evaluate(narrowed, database) == evaluate(plan, database), "by_position in src/trickle/algebra/plan.py"


def test_one_row_over_nothing_is_not_pruned():
    plan = Aggregate((), (Output(new_column("n"), Call("count", (Lit(1),))),), Empty(()))

    assert prune(plan) is plan
    assert evaluate(plan, {}) == {(0,): 1}


def test_words_are_of_nodes():
    assert set(WORDS) <= set(KINDS)
