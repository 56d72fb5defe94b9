"""By arrays rows are joined, grouped and ordered in the driver as by numbers in the same order."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.algebra.expr import Call, Col, Column, Expr, KeyPair, Lit, Output
from trickle.algebra.plan import Aggregate, InnerJoin, OuterJoin, Plan, Scan, SemiJoin, TopK, Window
from trickle.compute.driver.expressions import Expressions, run
from trickle.compute.driver.groups import first_rows, group_rows
from trickle.compute.driver.joins import join_rows
from trickle.compute.driver.windows import ranked_rows

ARRAYS: dict[int | None, Any] = {
    None: None,
    0: [],
    1: [None],
    2: ["B"],
    3: ["a"],
    4: ["a", None],
    5: ["a", "b"],
    6: ["é"],
}
"""In Spark's order."""

some = st.lists(st.tuples(st.sampled_from([*ARRAYS]), st.integers(0, 2)), max_size=10)
Rows = list[tuple[int | None, int]]


def columns(kind: str, first: int) -> tuple[Column, Column]:
    return Column(first, "k", kind), Column(first + 1, "n", "int")


def frame(rows: Rows, kind: str, first: int) -> pl.DataFrame:
    is_array = kind != "int"
    types = {str(first): pl.List(pl.String) if is_array else pl.Int32, str(first + 1): pl.Int32}
    shown = [(ARRAYS[key] if is_array else key, number) for key, number in rows]
    return pl.DataFrame(shown, schema=types, orient="row")


def as_arrays(rows: list[tuple], *places: int) -> list[tuple]:
    return [tuple(ARRAYS[v] if at in places else v for at, v in enumerate(row)) for row in rows]


def both(compute: Any) -> tuple[list[tuple], list[tuple]]:
    return tuple(compute(kind).rows() for kind in ("int", "array<string>"))


NOTHING = Expressions(lambda _: None)


@pytest.mark.parametrize("how", ["inner", "left", "full", "semi", "anti"])
@given(left=some, right=some, null_safe=st.booleans())
def test_rows_are_joined(how: str, left: Rows, right: Rows, null_safe: bool) -> None:
    def joined(kind: str) -> pl.DataFrame:
        ours, theirs = (Scan(name, columns(kind, first), "new") for name, first in (("l", 1), ("r", 3)))
        keys = (KeyPair(Col(ours.columns[0]), Col(theirs.columns[0]), null_safe),)
        more: dict[str, Any] = {} if how == "inner" else {"kind": how}
        node = {"inner": InnerJoin, "left": OuterJoin, "full": OuterJoin}.get(how, SemiJoin)
        plan = node(ours, theirs, keys, (), **more)
        return run(join_rows(plan, frame(left, kind, 1), frame(right, kind, 3), NOTHING))

    numbers, arrays = both(joined)

    places = (0, 2) if how in ("inner", "left", "full") else (0,)
    assert sorted(arrays, key=repr) == sorted(as_arrays(numbers, *places), key=repr)


@given(rows=some)
def test_rows_are_grouped(rows: Rows) -> None:
    def grouped(kind: str) -> pl.DataFrame:
        key, number = columns(kind, 1)
        outputs = (
            Output(Column(9, "s", "bigint"), Call("sum", (Col(number),))),
            Output(Column(8, "k", kind), Col(key)),
        )
        plan = Aggregate((Col(key),), outputs, Scan("t", (key, number), "new"))
        return group_rows(plan, frame(rows, kind, 1), NOTHING)

    numbers, arrays = both(grouped)

    assert sorted(arrays, key=repr) == sorted(as_arrays(numbers, 1), key=repr)


def ordered(key: Column, number: Column, *, descending: bool, nulls_last: bool) -> tuple[Expr, ...]:
    return Call("order", (Col(key), Lit(descending), Lit(nulls_last))), Col(number)


@given(rows=some, descending=st.booleans(), nulls_last=st.booleans())
def test_rows_are_ordered(rows: Rows, descending: bool, nulls_last: bool) -> None:
    def first(kind: str) -> pl.DataFrame:
        scan = Scan("t", columns(kind, 1), "new")
        plan = TopK(ordered(*scan.columns, descending=descending, nulls_last=nulls_last), 4, 1, scan)
        return first_rows(plan, frame(rows, kind, 1), NOTHING)

    numbers, arrays = both(first)

    assert arrays == as_arrays(numbers, 0)


@given(rows=some, descending=st.booleans(), nulls_last=st.booleans())
def test_rows_are_ranked(rows: Rows, descending: bool, nulls_last: bool) -> None:
    def ranked(kind: str) -> pl.DataFrame:
        scan: Plan = Scan("t", columns(kind, 1), "new")
        key, number = scan.columns
        functions = tuple(
            Output(Column(10 + i, n, "int"), Call(n, ())) for i, n in enumerate(("row_number", "dense_rank"))
        )
        order = ordered(key, number, descending=descending, nulls_last=nulls_last)
        return ranked_rows(Window(functions, (Col(number),), order[:1], scan), frame(rows, kind, 1), NOTHING)

    numbers, arrays = both(ranked)

    assert sorted(arrays, key=repr) == sorted(as_arrays(numbers, 0), key=repr)
