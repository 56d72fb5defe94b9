"""Rows found at one version and rolled forward to others by the changes between."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.tables.contract import WEIGHT
from trickle.tables.delta.roll_forward import Base

SCHEMA = pa.schema([("k", pa.int64()), ("a", pa.string()), ("b", pa.float64())])
MANY = 10**6

rows = st.tuples(st.integers(0, 3) | st.none(), st.sampled_from("xy") | st.none(), st.sampled_from([0.0, -0.0, 1.5]))
bags = st.lists(rows, max_size=6)


class History:
    """The rows of a table at each version; counts how often a change was read."""

    def __init__(self, versions):
        self.versions = versions
        self.read: list[tuple[int, int, tuple[str, ...]]] = []

    def found(self, version, columns, keys):
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in self.versions[version]], SCHEMA)
        return table.filter(pa.compute.is_in(table["k"], value_set=keys)).select(columns)

    def change(self, since, upto, columns, most):
        if len(self.versions[since]) + len(self.versions[upto]) > most:
            return None
        self.read.append((since, upto, tuple(columns)))
        places = [SCHEMA.names.index(c) for c in columns]
        signed = [(*(r[p] for p in places), w) for v, w in ((since, -1), (upto, 1)) for r in self.versions[v]]
        schema = pa.schema([*(SCHEMA.field(c) for c in columns), pa.field(WEIGHT, pa.int64(), nullable=False)])
        return pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in signed], schema)


def bag(table):
    # The text of a number tells 0.0 from -0.0.
    return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())


@settings(max_examples=200, deadline=None)
@given(st.lists(bags, min_size=3, max_size=5), st.data())
def test_rolled_forward_rows_are_those_of_the_version(versions, data):
    history, base = History(versions), Base(0, 0, ())
    for _ in range(4):
        version = data.draw(st.integers(1, len(versions) - 1))
        columns = data.draw(st.sampled_from([["k"], ["a", "k"], ["k", "b"], ["b", "a", "k"]]))
        keys = pa.array(data.draw(st.sets(st.integers(0, 3), min_size=1)), pa.int64())

        base = base.extended(version, columns, MANY, history.change)
        rolled = base.roll_forward(history.found(0, columns, keys), version, {"k": keys})

        assert rolled.column_names == columns
        assert bag(rolled) == bag(history.found(version, columns, keys))


@pytest.fixture
def history():
    return History([[(n, "x", 1.0) for n in range(version, version + 5)] for version in range(6)])


def test_a_change_is_read_once_and_split_where_a_version_between_is_asked_for(history):
    base = Base(0, 0, ()).extended(3, ["k"], MANY, history.change)
    base = base.extended(3, ["k"], MANY, history.change)
    base = base.extended(5, ["k"], MANY, history.change)
    base = base.extended(2, ["k"], MANY, history.change)

    assert history.read == [(0, 3, ("k",)), (3, 5, ("k",)), (0, 2, ("k",)), (2, 3, ("k",))]


def test_more_columns_are_read_anew(history):
    base = Base(0, 0, ()).extended(3, ["k"], MANY, history.change)
    base.extended(3, ["a", "k"], MANY, history.change)

    assert history.read == [(0, 3, ("k",)), (0, 3, ("k", "a"))]


def test_a_base_is_given_up_for_changes_that_are_large_or_not_to_be_had(history):
    assert Base(0, 0, ()).extended(3, ["k"], 20 * 10, history.change) is not None
    assert Base(0, 0, ()).extended(3, ["k"], 20 * 10 - 1, history.change) is None
    assert len(history.read) == 1
    assert Base(0, 0, ()).extended(3, ["k"], 20 * 10 - 1, lambda *asked: history.change(*asked[:3], MANY)) is None
    assert Base(0, 0, ()).extended(3, ["k"], MANY, lambda *_: None) is None


def test_rows_that_were_not_there_cannot_have_gone(history):
    base = Base(0, 0, ()).extended(1, ["k"], MANY, history.change)
    keys = pa.array([0])

    assert base.roll_forward(history.found(1, ["k"], keys), 1, {"k": keys}) is None
