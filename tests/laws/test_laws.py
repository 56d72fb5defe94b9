"""The laws of change over random plans and bags: old result + change == new result, in every form."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.algebra.expr import Call, Col, Column, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    InnerJoin,
    Loop,
    LoopRef,
    Plan,
    Project,
    Scan,
    Shared,
    TopK,
    Union,
    Window,
)
from trickle.algebra.walk import sources, transform, walk
from trickle.compile.change_plan import AddToState, ReplaceKeys
from trickle.compile.narrow_scans import narrow_scans
from trickle.compile.program import SELF, Program, compile_plan
from trickle.compile.prune import prune
from trickle.compute.key_propagation import KeyPropagation, Keys
from trickle.compute.key_ranges import narrow
from trickle.model.options import OPTIMISATIONS
from trickle.rules import CHANGE_RULES, Derive
from trickle.testing.evaluate import Bag, evaluate, plus

from .random_plans import BUILDERS, SOURCES, at_old, change_between, databases, plans, scan, state_form, two

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.algebra.aggregate_state import AggregateState
    from trickle.compute.key_ranges import ReadKeys


@settings(max_examples=400, deadline=None)
@given(plan=plans(), database=databases())
def test_old_result_plus_change_is_new_result(plan, database):
    changed = frozenset(s for s in SOURCES if database[s, "old"] != database[s, "new"])
    change = prune(Derive(changed, CHANGE_RULES).change(plan))

    result = plus(evaluate(at_old(plan), database), evaluate(change, database))

    assert result == evaluate(plan, database)


@settings(max_examples=400, deadline=None)
@given(plan=plans(), database=databases())
def test_passes_keep_the_meaning_of_a_change_plan(plan, database):
    program = compile_plan(plan, OPTIMISATIONS - {"push_keys", "order_joins"})

    change = program.derive(frozenset(SOURCES)).change

    assert plus(evaluate(at_old(plan), database), evaluate(change, database)) == evaluate(plan, database)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), database=databases())
def test_replaced_keys_give_the_new_result(data, database):
    plan = BUILDERS[Aggregate](data.draw, lambda: data.draw(plans(depth=2)))
    program = compile_plan(plan, frozenset({"narrow_scans", "state_tables"}))
    assert program.keyed is not None
    derived = program.derive(frozenset(SOURCES))
    assert isinstance(derived, ReplaceKeys)
    places = [program.plan.columns.index(c) for c in program.keyed.keys]
    touched = set(evaluate(derived.touched, database))
    if not program.keyed.aggregate.keys:
        touched = {()} if touched else set()

    old = evaluate(at_old(program.plan), database)
    kept = Counter({r: n for r, n in old.items() if tuple(r[i] for i in places) not in touched})
    new = evaluate(derived.rows, database) if touched else Counter()

    assert kept + new == evaluate(program.plan, database)


@settings(max_examples=200, deadline=None)
@given(plan=plans(), database=databases())
def test_change_of_no_change_is_empty(plan, database):
    change = prune(Derive(frozenset(), CHANGE_RULES).change(plan))

    assert not evaluate(change, database)


def accumulated(state: AggregateState, stored: Bag, change: Bag) -> Bag:
    """Add a change to a stored state, as a table does."""
    width = len(state.keys)
    found = {row[:width]: row for row in stored}
    for row in change:
        old = found.get(row[:width], (*row[:width], *(0 for _ in state.terms)))
        found[row[:width]] = (*row[:width], *(a + b for a, b in zip(old[width:], row[width:], strict=True)))
    return Counter(row for row in found.values() if row[width] or not width)


def check_merge(part: Program, derived: ReplaceKeys, database: dict[tuple[str, str], Bag]) -> None:
    """Check that the merge of a change into a stored state gives the new state."""
    old, new = evaluate(at_old(part.plan), database), evaluate(part.plan, database)
    database = {**database, (SELF, "new"): old}
    touched, width = set(evaluate(derived.touched, database)), len(part.state_table.state.keys)
    kept = Counter({row: n for row, n in old.items() if width and row[:width] not in touched})
    assert without_magnitudes(part, kept + evaluate(derived.rows, database)) == without_magnitudes(part, new)
    assert not evaluate(derived.broken, database)


def without_magnitudes(part: Program, state: Bag) -> Bag:
    """Leave out what counts the changes that went by."""
    terms = part.state_table.state.terms
    kept = [
        i for i, c in enumerate(part.plan.columns) if not any(t.column == c and t.kind == "magnitude" for t in terms)
    ]
    return Counter(tuple(row[i] for i in kept) for row in state.elements())


@settings(max_examples=400, deadline=None)
@given(plan=plans(), database=databases())
def test_state_tables_added_up_give_the_new_result(plan, database):
    program = compile_plan(plan, frozenset({"narrow_scans", "replace_keys", "stored_top"}))
    database = dict(database)
    for part in (*program.state_tables, program):
        derived = part.derive(frozenset(part.used))
        old, new = evaluate(at_old(part.plan), database), evaluate(part.plan, database)
        if isinstance(derived, AddToState):
            assert accumulated(derived.state, old, evaluate(derived.change, database)) == new
        elif isinstance(derived, ReplaceKeys):
            check_merge(part, derived, database)
        else:
            assert plus(old, evaluate(derived.change, database)) == new
        if part.state_table is not None:
            name = part.state_table.name
            database[name, "old"], database[name, "new"] = old, new
            database[name, "change"] = change_between(old, new)

    assert new == evaluate(plan, database)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), database=databases())
def test_a_merged_state_is_the_new_state(data, database):
    # Over sources: a state over other states alone is not merged.
    node = data.draw(st.sampled_from((Filter, Project, Union, InnerJoin)))
    child = BUILDERS[node](data.draw, lambda: scan(data.draw(st.sampled_from(SOURCES))))
    a, b = child.columns
    functions = data.draw(st.lists(st.sampled_from(("min", "max", "sum", "count")), max_size=2))
    functions.append(data.draw(st.sampled_from(("min", "max", "sum"))))
    values = [Output(new_column("v"), Call(function, (Col(b),))) for function in functions]
    keys = [Output(new_column("k"), Col(a))] if data.draw(st.booleans()) else []
    outputs = (*keys, *values)
    plan = Aggregate(tuple(k.expr for k in keys), outputs, child, state_form(keys, values, is_double=True))
    (state,) = compile_plan(plan, frozenset({"narrow_scans"})).state_tables
    derived = state.derive(frozenset(state.used))
    assert isinstance(derived, ReplaceKeys)
    check_merge(state, derived, database)


def greatest_of(child: Plan) -> Program:
    """Return the state of the greatest second value of each first one."""
    key, most = (
        Output(new_column("k"), Col(child.columns[0])),
        Output(new_column("v"), Call("max", (Col(child.columns[1]),))),
    )
    plan = Aggregate((key.expr,), (key, most), child, state_form((key,), (most,)))
    (state,) = compile_plan(plan, frozenset({"narrow_scans"})).state_tables
    return state


def test_a_row_that_comes_and_goes_in_one_change_is_not_the_greatest():
    left, right = scan("r"), scan("s")
    joined = InnerJoin(left, right, (KeyPair(Col(left.base[0]), Col(right.base[0])),))
    state = greatest_of(two(joined, *left.base))
    old = {"r": Counter({(1, 1): 1, (1, 2): 1}), "s": Counter({(1, 0): 1})}
    new = {"r": Counter({(1, 1): 1}), "s": Counter({(1, 0): 2})}
    database = {}
    for name in old:
        database[name, "old"], database[name, "new"] = old[name], new[name]
        database[name, "change"] = change_between(old[name], new[name])

    check_merge(state, state.derive(frozenset(old)), database)


def test_a_state_without_the_rows_that_go_is_broken():
    state = greatest_of(scan("r"))
    derived = state.derive(frozenset("r"))
    database = {("r", "old"): Counter({(1, 2): 1}), ("r", "new"): Counter(), ("r", "change"): Counter({(1, 2, -1): 1})}

    stored = evaluate(at_old(state.plan), database)

    assert not evaluate(derived.broken, {**database, (SELF, "new"): stored})
    assert evaluate(derived.broken, {**database, (SELF, "new"): Counter()})


@settings(max_examples=200, deadline=None)
@given(plan=plans(depth=2), limit=st.integers(0, 3), database=databases())
def test_a_top_of_stored_rows_and_change_is_the_new_top(plan, limit, database):
    top = TopK(tuple(Col(c) for c in plan.columns), limit, 0, plan)
    derived = compile_plan(top, frozenset({"narrow_scans", "state_tables"})).derive(frozenset(SOURCES))
    old, new = evaluate(at_old(top), database), evaluate(top, database)
    database = {**database, (SELF, "new"): old}

    assert plus(old, evaluate(derived.change, database)) == new
    assert (derived.shortcut is not None) == bool(sources(top))
    if derived.shortcut is not None and not evaluate(derived.shortcut.unless, database):
        assert plus(old, evaluate(derived.shortcut.change, database)) == new


@pytest.mark.parametrize(
    ("change", "is_short"),
    [({(0, 1, 1): 1, (4, 0, 1): 1}, True), ({(3, 3, -1): 1}, True), ({(1, 1, -1): 1, (0, 0, 1): 1}, False)],
    ids=["rows come", "a row that was not stored goes", "a stored row goes"],
)
def test_a_top_is_taken_from_its_stored_rows_unless_one_of_them_goes(change, is_short):
    table = scan("r")
    top = TopK(tuple(map(Col, table.columns)), 2, 0, table)
    derived = compile_plan(top, frozenset({"narrow_scans", "state_tables"})).derive(frozenset("r"))
    old = Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})
    new = plus(old, Counter(change))
    database = {("r", "old"): old, ("r", "new"): new, ("r", "change"): Counter(change)}
    stored = evaluate(at_old(top), database)
    database[SELF, "new"] = stored

    assert bool(evaluate(derived.shortcut.unless, database)) != is_short
    if is_short:
        assert plus(stored, evaluate(derived.shortcut.change, database)) == evaluate(top, database)


def first_ranks(plan: Plan, function: str, most: int, *, by: bool, shows_rank: bool = True) -> Plan:
    """Keep the first rows of each partition, and show them under other names."""
    a, b = plan.columns
    # Rows of one number are alike, as those of a closed order are; ranks are shared.
    order = (Col(b), Col(a)) if function == "row_number" else (Col(b),)
    place = new_column("place")
    window = Window((Output(place, Call(function, ())),), (Col(a),) if by else (), order, plan)
    kept = Filter(Call("<=", (Col(place), Lit(most))), window, keeps_first=True)
    shown = (b, a, place) if shows_rank else (b, a)
    return Project(tuple(Output(new_column(c.name), Col(c)) for c in shown), kept)


@settings(max_examples=400, deadline=None)
@given(
    plan=plans(depth=2),
    function=st.sampled_from(("row_number", "rank", "dense_rank")),
    most=st.integers(0, 3),
    by=st.booleans(),
    shows_rank=st.booleans(),
    database=databases(),
)
def test_first_ranks_of_stored_rows_and_change_are_the_new_ones(plan, function, most, by, shows_rank, database):
    top = first_ranks(plan, function, most, by=by, shows_rank=shows_rank)
    derived = compile_plan(top, frozenset({"narrow_scans", "state_tables"})).derive(frozenset(SOURCES))
    old, new = evaluate(at_old(top), database), evaluate(top, database)
    database = {**database, (SELF, "new"): old}

    assert plus(old, evaluate(derived.change, database)) == new
    assert derived.shortcut is not None
    if derived.shortcut.unless is None or not evaluate(derived.shortcut.unless, database):
        assert plus(old, evaluate(derived.shortcut.change, database)) == new


@pytest.mark.parametrize(
    ("change", "is_read"),
    [({(0, 1, 1): 1, (0, 9, 1): 1}, False), ({(0, 8, -1): 1}, False), ({(0, 1, -1): 1}, True)],
    ids=["rows come", "a row that was not stored goes", "a stored row goes"],
)
def test_a_partition_is_read_if_one_of_its_first_rows_goes(change, is_read):
    table = scan("r")
    top = first_ranks(table, "row_number", 2, by=True)
    quick = compile_plan(top, frozenset({"narrow_scans"})).derive(frozenset("r")).shortcut.change
    old = Counter({(0, 1): 1, (0, 2): 1, (0, 8): 1, (5, 5): 1})
    new = plus(old, Counter(change))
    database = {("r", "old"): old, ("r", "new"): new, ("r", "change"): Counter(change)}
    stored = database[SELF, "new"] = evaluate(at_old(top), database)
    empty = frozenset(p.name for p in walk(quick) if isinstance(p, Shared) and not evaluate(p.child, database))

    settled = prune(quick, empty)

    reads = any(isinstance(p, Scan) and p.source == "r" and p.at == "new" for p in walk(settled))
    assert reads is is_read
    assert plus(stored, evaluate(settled, database)) == evaluate(top, database)


@settings(max_examples=400, deadline=None)
@given(plan=plans(), database=databases())
def test_ranges_of_keys_keep_the_meaning_of_a_change_plan(plan, database):
    program = compile_plan(plan, OPTIMISATIONS - {"push_keys", "order_joins"})
    change = program.derive(frozenset(SOURCES)).change

    assert evaluate(narrow(change, keys_in(database)), database) == evaluate(change, database)


@settings(max_examples=400, deadline=None)
@given(plan=plans(), database=databases())
def test_rows_looked_up_by_keys_keep_the_meaning_of_a_change_plan(plan, database):
    program = compile_plan(plan, OPTIMISATIONS - {"push_keys", "order_joins"})
    change = program.derive(frozenset(SOURCES)).change
    names = (f"found{n}" for n in count())

    class Reader:
        read_keys = staticmethod(keys_in(database))

        def read_scan(self, table: Scan, wanted: Mapping[int, Keys]) -> Plan:
            rows: Plan = table
            for column in table.base:
                if column.id in wanted:
                    some = [Call("=", (Col(column), Lit(v))) for v in wanted[column.id].distinct(10**6).to_pylist()]
                    rows = Filter(reduce(lambda a, b: Call("or", (a, b)), some, Lit(value=False)), rows)
            return Shared(next(names), rows)

        def compute_part(self, part: Plan) -> Plan:
            return Shared(next(names), part)

    propagated = KeyPropagation(Reader()).visit(change)

    assert evaluate(propagated, database) == evaluate(change, database)


def test_a_scan_that_meets_a_change_is_looked_up_by_the_keys_of_the_change():
    left, right = scan("r"), scan("s")
    joined = InnerJoin(left, right, (KeyPair(Col(left.base[0]), Col(right.base[0])),))
    program = compile_plan(joined, OPTIMISATIONS - {"push_keys", "order_joins"})
    change = program.derive(frozenset("r")).change
    rows = Counter({(1, 1, 1): 1, (2, 5, -1): 1, (None, 0, 1): 1})
    database = {("r", "change"): rows, ("s", "new"): Counter({(1, 7): 1, (2, 8): 2, (9, 9): 1})}
    asked = []

    class Reader:
        read_keys = staticmethod(keys_in(database))

        def read_scan(self, table: Scan, wanted: Mapping[int, Keys]) -> Plan:
            asked.append(
                (table.source, {c.name: wanted[c.id].distinct(10).to_pylist() for c in table.base if c.id in wanted})
            )
            return table

        def compute_part(self, part: Plan) -> Plan:
            return part

    KeyPropagation(Reader()).visit(change)
    narrowed = narrow(change, keys_in(database))

    assert asked == [("s", {"a": [1, 2]})]
    filtered = [node.child for node in walk(narrowed) if isinstance(node, Filter) and isinstance(node.child, Scan)]
    assert [table.source for table in filtered] == ["s"]
    assert evaluate(narrowed, database) == evaluate(change, database)


def keys_in(database) -> ReadKeys:
    def keys_of(leaf: Plan, column: Column) -> Keys:
        place = leaf.columns.index(column)
        # The model's columns may hold truth values beside numbers: True is 1 to it.
        values = [None if row[place] is None else int(row[place]) for row in evaluate(leaf, database)]
        return Keys(pa.chunked_array([values], pa.int64()))

    return keys_of


@settings(max_examples=200, deadline=None)
@given(plan=plans(), database=databases())
def test_columns_that_nothing_reads_are_not_missed(plan, database):
    plan = Project(passthrough(plan.columns[:1]), plan)
    scans = {c.id: p for p in walk(plan) if isinstance(p, Scan) for c in p.base}

    def as_it_was(node: Plan) -> Plan:
        return Project(passthrough(node.base), scans[node.base[0].id]) if isinstance(node, Scan) else node

    narrowed = transform(narrow_scans(plan), as_it_was)

    assert evaluate(narrowed, database) == evaluate(plan, database)


def test_a_column_that_is_only_handed_on_is_not_read():
    table = scan("r")
    handed_on = Project(passthrough(table.columns), table)

    narrowed = narrow_scans(Project(passthrough(handed_on.columns[:1]), handed_on))

    assert [p.columns for p in walk(narrowed)] == [table.columns[:1]] * 3


EDGES = st.lists(st.tuples(st.integers(0, 2), st.integers(3, 5)), max_size=3)
LATER = st.lists(st.tuples(st.integers(3, 5), st.integers(6, 8)), max_size=3)


@settings(max_examples=200, deadline=None)
@given(*(st.tuples(EDGES, LATER).map(lambda e: Counter(e[0] + e[1])) for _ in range(2)))
def test_recursion_follows_inserted_and_deleted_edges(old, new):
    edges, more = scan("r"), scan("r")
    ref = LoopRef(1, (new_column("x"), new_column("y")))
    step = InnerJoin(ref, more, (KeyPair(Col(ref.base[1]), Col(more.base[0])),))
    step = two(step, ref.base[0], more.base[1])
    plan = Loop(1, edges, step, (new_column("from"), new_column("to")))
    signed = Counter({(*r, 1): n for r, n in (new - old).items()} | {(*r, -1): n for r, n in (old - new).items()})
    database = {("r", "old"): old, ("r", "new"): new, ("r", "change"): signed}

    change = prune(Derive(frozenset("r"), CHANGE_RULES).change(plan))

    assert plus(evaluate(at_old(plan), database), evaluate(change, database)) == evaluate(plan, database)


def test_a_node_refuses_columns_its_input_does_not_give():
    with pytest.raises(ValueError, match="does not give"):
        Filter(Col(new_column("other")), scan("r"))
