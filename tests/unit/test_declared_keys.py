"""Declared keys: what a change tells of the rows before and after is what a search would have found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.algebra.expr import Column
from trickle.algebra.plan import Scan
from trickle.compile.program import SELF
from trickle.compute.declared_keys import DeclaredKeys
from trickle.compute.inputs import Inputs
from trickle.errors import SourceError
from trickle.model.definition import SourceVersion
from trickle.model.keys import ForeignKey, TableKeys

ORDER_KEYS = TableKeys(primary=("id",))
LINE_KEYS = TableKeys(foreign=(ForeignKey(columns=("order_id",), table="orders-id", name="orders"),))
COLUMNS = {"orders": ("id", "day"), "lines": ("order_id", "price")}

orders_at = st.dictionaries(st.integers(0, 7), st.integers(0, 2), max_size=6)


@st.composite
def versions(draw):
    """Two versions of orders and lines in which both keys hold."""
    found = []
    for _ in range(2):
        orders = draw(orders_at)
        of_orders = st.sampled_from([*orders, None]) if orders else st.none()
        lines = draw(st.lists(st.tuples(of_orders, st.integers(0, 2)), max_size=8))
        found.append({"orders": list(orders.items()), "lines": lines})
    return found


class Source:
    """Its keys, and rows to search."""

    def __init__(self, *keys: TableKeys) -> None:
        self.declared = keys
        self.rows: list[list[tuple[int | None, ...]]] = []
        self.searched: list[dict[str, list[int]]] = []

    def keys(self, version: int) -> TableKeys:
        return self.declared[version] if len(self.declared) > 1 else self.declared[0]

    def find(self, version: int, columns, keys) -> pa.Table:
        self.searched.append({name: values.to_pylist() for name, values in keys.items()})
        found = [r for r in self.rows[version] if all(r[columns.index(n)] in v.to_pylist() for n, v in keys.items())]
        return table([r for r in found if None not in r], columns)


def table(rows, names) -> pa.Table:
    return pa.table([pa.array([r[i] for r in rows], pa.int64()) for i, _ in enumerate(names)], names=list(names))


def change(old, new, names) -> pa.Table:
    net = Counter(new)
    net.subtract(Counter(old))
    return table([(*row, weight) for row, weight in net.items() if weight], (*names, "__weight"))


def declared(old, new, sources, searched) -> Inputs:
    for name, source in sources.items():
        source.rows, source.searched = [old[name], new[name]], searched
    at = [{n: SourceVersion(version=v, identity=f"{n}-id") for n in sources} for v in (0, 1)]
    changes = {n: change(old[n], new[n], COLUMNS[n]) for n in sources if Counter(old[n]) != Counter(new[n])}
    return Inputs(sources, *at, declared=DeclaredKeys(sources, *at, changes))


def scan(source: str, at) -> Scan:
    return Scan(source, tuple(Column(i, name, "bigint") for i, name in enumerate(COLUMNS[source])), at)


@settings(max_examples=400, deadline=None)
@given(versions(), st.sampled_from(("old", "new")), st.sampled_from(tuple(COLUMNS)), st.sets(st.integers(0, 8)))
def test_rows_are_those_a_search_finds(both, at, source, keys):
    old, new = both
    searched: list[dict[str, list[int]]] = []
    known = declared(old, new, {"orders": Source(ORDER_KEYS), "lines": Source(LINE_KEYS)}, searched)
    wanted = {COLUMNS[source][0]: pa.array(sorted(keys), pa.int64())}

    found = known.lookup(scan(source, at), wanted)

    rows = [r for r in (old if at == "old" else new)[source] if r[0] in keys]
    assert Counter(zip(*(c.to_pylist() for c in found.columns), strict=True)) == Counter(rows)
    moved = {k for k, _ in set(old["orders"]) ^ set(new["orders"])}
    if source == "orders":
        assert not any(moved & set(s["id"]) for s in searched)
    elif old["orders"] != new["orders"]:
        came_or_went = {k for k, _ in old["orders"]} ^ {k for k, _ in new["orders"]}
        assert not any(came_or_went & set(s["order_id"]) for s in searched)


def find(old, new, source, at, keys=(1, 2), line_keys=LINE_KEYS):
    searched: list[dict[str, list[int]]] = []
    known = declared(old, new, {"orders": Source(ORDER_KEYS), "lines": Source(line_keys)}, searched)
    return known.lookup(scan(source, at), {COLUMNS[source][0]: pa.array(keys, pa.int64())}), searched


def test_two_rows_of_one_primary_key_are_an_error():
    with pytest.raises(SourceError, match=r"KEY_VIOLATED.*orders has several rows whose id is 1"):
        find({"orders": [], "lines": []}, {"orders": [(1, 0), (1, 1)], "lines": []}, "orders", "new")


@pytest.mark.parametrize("at", ["old", "new"])
def test_a_line_that_came_as_its_order_went_is_an_error(at):
    with pytest.raises(SourceError, match=r"KEY_VIOLATED.*lines.order_id has 1, which orders does not have any more"):
        find({"orders": [(1, 0)], "lines": []}, {"orders": [], "lines": [(1, 5)]}, "lines", at)


def test_a_line_that_went_as_its_order_came_is_an_error():
    with pytest.raises(SourceError, match=r"lines.order_id has 1, which orders does not have before"):
        find({"orders": [], "lines": [(1, 5)]}, {"orders": [(1, 0)], "lines": []}, "lines", "old")


def test_a_key_that_the_query_does_not_read_tells_nothing():
    old, new = {"orders": [], "lines": []}, {"orders": [(1, 0)], "lines": [(1, 5)]}
    searched: list[dict[str, list[int]]] = []
    known = declared(old, new, {"orders": Source(ORDER_KEYS), "lines": Source(LINE_KEYS)}, searched)
    changes = {**known.declared.changes, "orders": known.declared.changes["orders"].drop_columns(["id"])}
    known = replace(known, declared=replace(known.declared, changes=changes, _known={}))

    found = known.lookup(scan("lines", "new"), {"order_id": pa.array([1], pa.int64())})

    assert found.num_rows == 1
    assert searched == [{"order_id": [1]}]


def test_rows_of_the_stream_table_itself_are_searched_for():
    itself: Any = SimpleNamespace(small_rows=lambda to_search: table([(1, 0)], ("id", "day")) if to_search else None)
    known = Inputs({}, {}, {}, itself, declared=DeclaredKeys({}, {}, {}, {}))

    found = known.lookup(Scan(SELF, scan("orders", "new").base, "new"), {"id": pa.array([1], pa.int64())})

    assert found.num_rows == 1


def test_keys_declared_since_the_last_refresh_tell_nothing_of_it():
    old, new = {"orders": [], "lines": [(1, 5)]}, {"orders": [(1, 0)], "lines": [(1, 5)]}
    searched: list[dict[str, list[int]]] = []
    sources = {"orders": Source(ORDER_KEYS), "lines": Source(TableKeys(), LINE_KEYS)}

    found = declared(old, new, sources, searched).lookup(scan("lines", "old"), {"order_id": pa.array([1], pa.int64())})

    assert found.num_rows == 1
    assert searched == [{"order_id": [1]}]
