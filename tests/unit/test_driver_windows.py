"""Ranks computed in the driver are those that SQL means."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from trickle.algebra.expr import Call, Col, Column, Lit, Output
from trickle.algebra.plan import Scan, Window
from trickle.compute.driver.expressions import Expressions
from trickle.compute.driver.windows import ranked_rows

A, B, C = (Column(i, name, "int") for i, name in enumerate("abc", 1))
RANKS = tuple(Column(10 + i, name, "int") for i, name in enumerate(("row_number", "rank", "dense_rank")))

some = st.one_of(st.none(), st.integers(0, 2))


@given(
    rows=st.lists(st.tuples(some, some, some), max_size=12),
    partition=st.sampled_from([(), (A,), (A, B)]),
    descending=st.booleans(),
    nulls_last=st.booleans(),
)
def test_ranks_are_those_of_a_sort(rows, partition, descending, nulls_last):
    order = (Call("order", (Col(B), Lit(descending), Lit(nulls_last))), Col(C))
    functions = tuple(Output(c, Call(c.name, ())) for c in RANKS)
    plan = Window(functions, tuple(map(Col, partition)), order, Scan("t", (A, B, C), "new"))
    frame = pl.DataFrame(rows, schema={str(c.id): pl.Int32 for c in (A, B, C)}, orient="row")

    found = ranked_rows(plan, frame, Expressions(lambda _: None)).rows()

    def key(row):
        b, c = row[1], row[2]
        first = (b is None) == nulls_last, (-b if descending else b) if b is not None else 0
        return first, (c is not None, c or 0)

    expected = []
    places = {A: 0, B: 1}
    groups: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[places[c]] for c in partition), []).append(row)
    for members in groups.values():
        keys = sorted(map(key, members))
        for number, row in enumerate(sorted(members, key=key), 1):
            rank = keys.index(key(row)) + 1
            expected.append((*row, number, rank, len({k for k in keys if k < key(row)}) + 1))
    assert sorted(found, key=repr) == sorted(expected, key=repr)
