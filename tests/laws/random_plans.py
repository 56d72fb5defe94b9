"""Random plans over two sources, and random bags for these, old and new."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trickle.algebra.aggregate_state import AggregateState, Term
from trickle.algebra.expr import Call, Col, KeyPair, Lit, Output, new_column, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
    OuterJoin,
    Plan,
    Project,
    RowWise,
    Scan,
    SemiJoin,
    TopK,
    Union,
    Values,
    Window,
)
from trickle.algebra.walk import sources
from trickle.rules import CHANGE_RULES, Derive

if TYPE_CHECKING:
    from trickle.testing.evaluate import Bag

SOURCES = ("r", "s")
VALUES = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=4).map(Counter)


def scan(source: str) -> Scan:
    return Scan(source, (new_column("a", "bigint"), new_column("b", "bigint")))


def values() -> Values:
    """Some constant rows."""
    return Values((new_column("a", "bigint"), new_column("b", "bigint")), [(0, 1), (1, None), (1, None)])


LEAVES = (*(partial(scan, source) for source in SOURCES * 2), values)


@st.composite
def plans(draw: st.DrawFn, depth: int = 3) -> Plan:
    """Return a plan with two columns, of any operators."""
    if depth == 0:
        return draw(st.sampled_from(LEAVES))()
    build = draw(st.sampled_from(tuple(BUILDERS.values())))
    return build(draw, lambda: draw(plans(draw(st.integers(0, depth - 1)))))


def _filter(draw, child):
    plan = child()
    return Filter(Call(">", (Col(draw(st.sampled_from(plan.columns))), Lit(0))), plan)


def _project(draw, child):
    plan = child()
    chosen = [draw(st.sampled_from(plan.columns)) for _ in range(2)]
    return Project(tuple(Output(new_column("p"), Col(c)) for c in chosen), plan)


def _union(draw, child):
    return Union((child(), child()), (new_column("u"), new_column("u")))


def _keys(draw, left, right):
    if draw(st.integers(0, 4)) == 0:
        return (), (Call(">", (Col(left.columns[0]), Col(right.columns[0]))),)
    count = draw(st.integers(1, 2))
    safe = draw(st.booleans())
    return tuple(KeyPair(Col(left.columns[i]), Col(right.columns[i]), safe) for i in range(count)), ()


def two(plan, *columns):
    return Project(passthrough(columns), plan)


def _inner(draw, child):
    left, right = child(), child()
    return two(InnerJoin(left, right, *_keys(draw, left, right)), left.columns[0], right.columns[1])


def _outer(draw, child):
    left, right = child(), child()
    kind = draw(st.sampled_from(("left", "right", "full")))
    return two(OuterJoin(left, right, *_keys(draw, left, right), kind=kind), left.columns[0], right.columns[1])


def _semi(draw, child):
    left, right = child(), child()
    keys, residual = _keys(draw, left, right)
    kind = draw(st.sampled_from(("semi", "anti", "existence")))
    if kind != "existence":
        return SemiJoin(left, right, keys, residual, kind=kind)
    flag = new_column("flag")
    joined = SemiJoin(left, right, keys, residual, kind=kind, flag=flag)
    return two(joined, left.columns[0], flag)


def _aggregate(draw, child):
    plan = child()
    a, b = plan.columns
    function = draw(st.sampled_from(("count", "sum", "min", "max")))
    value = Output(new_column("v"), Call(function, (Col(b),)))
    is_double = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        count = Output(new_column("n"), Call("count", (Col(a),)))
        return Aggregate((), (count, value), plan, state_form((), (count, value), is_double=is_double))
    key = Output(new_column("k"), Col(a))
    return Aggregate((Col(a),), (key, value), plan, state_form((key,), (value,), is_double=is_double))


def _distinct(draw, child):
    plan = child()
    outputs = tuple(Output(new_column("d"), Col(c)) for c in plan.columns)
    return Aggregate(tuple(Col(c) for c in plan.columns), outputs, plan, state_form(outputs, ()))


def _aggregate_or_distinct(draw, child):
    return draw(st.sampled_from((_aggregate, _aggregate, _distinct)))(draw, child)


def state_form(keys, values, *, is_double=False):
    """Return the form as a state; sums are kept as those of doubles are, if so wished."""
    terms = [Term(new_column("n"))]
    results = []
    for output in values:
        (value,) = output.expr.args
        count = Term(new_column("n"), None, (Call("isnotnull", (value,)),))
        terms.append(count)
        match output.expr.name:
            case "count":
                results.append(Output(output.column, Col(count.column)))
            case "sum":
                total = Term(new_column("s"), value)
                if is_double:
                    bound = Term(new_column("m"), value, kind="magnitude")
                    total = Term(new_column("s", "double"), value, kind="double", bound=bound.column)
                    terms.append(bound)
                terms.append(total)
                is_empty = Call("=", (Col(count.column), Lit(0)))
                results.append(Output(output.column, Call("if", (is_empty, Lit(None), Col(total.column)))))
            case name:
                extreme = Term(new_column("s"), value, kind="least" if name == "min" else "greatest")
                terms.append(extreme)
                results.append(Output(output.column, Col(extreme.column)))
    stored = tuple(Output(new_column("k"), k.expr) for k in keys)
    handed_on = (Output(k.column, Col(s.column)) for k, s in zip(keys, stored, strict=True))
    columns = tuple(o.column for o in (*keys, *values))
    return AggregateState(stored, tuple(terms), (*handed_on, *results), passthrough(columns))


def _top_k(draw, child):
    plan = child()
    return TopK(tuple(Col(c) for c in plan.columns), draw(st.integers(0, 2)), draw(st.integers(0, 1)), plan)


def _window(draw, child):
    plan = child()
    a, b = plan.columns
    function = draw(st.sampled_from(("row_number", "rank", "dense_rank", "count", "sum", "max")))
    call = Call(function, () if function in ("row_number", "rank", "dense_rank") else (Col(b),))
    partition = draw(st.sampled_from(((), (Col(a),))))
    # Rows of one number are alike, as those of a closed order are.
    window = Window((Output(new_column("w"), call),), partition, (Col(a), Col(b)), plan)
    return two(window, draw(st.sampled_from(plan.columns)), window.columns[-1])


def _row_wise(draw, child):
    plan = child()
    column = draw(st.sampled_from(plan.columns))
    made = RowWise((new_column("i"),), plan, "Generate", frozenset((column.id,)), _up_to)
    return two(made, draw(st.sampled_from(plan.columns)), made.columns[-1])


def _up_to(value):
    """Return a row for each number up to a value, and one for none."""
    return [(None,)] if value is None else [(i,) for i in range(int(value))]


def _expand(draw, child):
    plan = child()
    a, b = (Col(c) for c in plan.columns)
    projections = draw(st.lists(st.sampled_from(((a, b), (a, Lit(None)), (Lit(None), b))), min_size=1, max_size=3))
    return Expand(tuple(projections), (new_column("x"), new_column("x")), plan)


def _group_map(draw, child):
    inputs = tuple(child() for _ in range(draw(st.integers(1, 2))))
    width = draw(st.integers(0, 2))
    keys = tuple(tuple(Col(c) for c in plan.columns[:width]) for plan in inputs)
    return GroupMap(keys, inputs, (new_column("g"), new_column("g")), "ends", _ends)


def _ends(*groups):
    """Return how many rows there are in each group, and a row for each that is there twice."""
    yield len(groups[0]), len(groups[-1]) if len(groups) > 1 else None
    yield from (row for row, count in Counter(groups[0]).items() if count > 1)


BUILDERS = {
    Filter: _filter,
    Project: _project,
    Union: _union,
    InnerJoin: _inner,
    OuterJoin: _outer,
    SemiJoin: _semi,
    Aggregate: _aggregate_or_distinct,
    Window: _window,
    RowWise: _row_wise,
    Expand: _expand,
    TopK: _top_k,
    GroupMap: _group_map,
}


@st.composite
def databases(draw: st.DrawFn) -> dict[tuple[str, str], Bag]:
    """Return old and new bags of the sources, and the change between them; some sources stay as they are."""
    found = {}
    for source in SOURCES:
        old = draw(ROWS)
        new = draw(ROWS) if draw(st.booleans()) else old
        found[source, "old"], found[source, "new"] = old, new
        found[source, "change"] = change_between(old, new)
    return found


def change_between(old: Bag, new: Bag) -> Bag:
    came, went = new - old, old - new
    return Counter({(*r, 1): n for r, n in came.items()} | {(*r, -1): n for r, n in went.items()})


def at_old(plan: Plan) -> Plan:
    """Return the plan over the old frontier; without sources to change it is the same at both."""
    return Derive(sources(plan), CHANGE_RULES).old(plan)
