"""Rows that a rewrite carried over are left out of a change, and no others."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.tables.contract import WEIGHT
from trickle.tables.delta.driver.carried import without_carried
from trickle.tables.delta.driver.read import net_rows

NAN = math.nan
TYPES = {"n": pl.Int32, "f": pl.Float64, "s": pl.String, "b": pl.Boolean, "y": pl.Binary, "d": pl.Decimal(10, 2)}
VALUES = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3, -7]),
    st.sampled_from([None, 0.0, -0.0, 1.5, NAN, -NAN, math.inf]),
    st.sampled_from([None, "", "a", "a\0", "straße", "a long text, not held in place"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, b"", b"\0"]),
    st.sampled_from([None, 0, 1]),
)


def frame(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TYPES, orient="row")


def net(before: list[pl.DataFrame], after: list[pl.DataFrame]) -> Counter:
    """The change, netted as all changes are."""
    parts = []
    for frames, sign in ((before, -1), (after, 1)):
        for rows in frames:
            weights = pa.array(np.full(rows.height, sign), pa.int64())
            table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
            parts.append(table.append_column(pa.field(WEIGHT, pa.int64(), nullable=False), weights))
    change = pa.concat_tables(parts)
    netted = net_rows(change, change.schema)
    bits = pa.Table.from_arrays(
        [c.combine_chunks().view(pa.int64()) if pa.types.is_floating(c.type) else c for c in netted.columns],
        names=netted.column_names,
    )
    return Counter({tuple(row.values())[:-1]: row[WEIGHT] for row in bits.to_pylist()})


@st.composite
def rewrites(draw):
    """Files, and what a rewrite made of them: rows gone, changed and new, files split, merged, and now and then reordered."""
    rows = draw(st.lists(VALUES, min_size=1, max_size=12))
    places = draw(st.lists(st.integers(0, len(rows) - 1), max_size=200))
    before = [rows[place] for place in places]
    after = list(before)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(after)))
        after[at : at + draw(st.integers(0, 2))] = draw(st.lists(VALUES, max_size=2))
    if draw(st.integers(0, 3)) == 0:
        after = draw(st.permutations(after))
    return files(draw, before), files(draw, after)


def files(draw, rows):
    ends = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    return [frame(rows[start:end]) for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]


@settings(deadline=None, max_examples=300)
@given(rewrite=rewrites())
def test_what_is_left_nets_to_the_same_change(rewrite):
    before, after = rewrite

    left = without_carried(before, after)

    assert net([left[0]], [left[1]]) == net(before, after)


def numbered(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {"id": rng.permutation(count), "kind": rng.integers(0, 50, count), "f": rng.random(count)}
    ).with_columns(s=pl.concat_str(pl.lit("k"), "kind"))


def test_of_a_rewrite_with_few_changes_little_is_left():
    before = numbered(40_000)
    after = before.with_columns(f=pl.when(pl.col("id") % 1000 == 7).then(0.5).otherwise("f")).filter(
        pl.col("id") % 1000 != 8
    )

    left = without_carried([before], [after[:9000], after[9000:]])

    assert net([left[0]], [left[1]]) == net([before], [after])
    assert len(net([before], [after])) == 40 + 80
    assert left[0].height + left[1].height < 4000


def test_files_that_came_in_another_order_are_found():
    parts = [numbered(4000).with_columns(part=n) for n in range(4)]

    left = without_carried(parts, parts[::-1])

    assert left[0].height == left[1].height < 200


@pytest.mark.parametrize("value", [0.0, NAN])
def test_floats_that_differ_by_a_bit_are_left(value):
    before = numbered(1000).with_columns(f=pl.lit(value))
    after = before.with_columns(f=pl.when(pl.col("id") == 5).then(-value).otherwise("f"))

    left = without_carried([before], [after])

    assert sum(net([left[0]], [left[1]]).values()) == 0
    assert len(net([left[0]], [left[1]])) == 2


def test_equal_hashes_alone_leave_nothing_out(monkeypatch):
    before, after = numbered(500), numbered(500).with_columns(pl.col("id") + 1)
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda rows: numbered(500)["id"].cast(pl.UInt64)[: rows.height])

    left = without_carried([before], [after])

    assert net([left[0]], [left[1]]) == net([before], [after])
    assert left[0].height == 500


@settings(deadline=None, max_examples=100)
@given(
    rows=st.lists(VALUES, min_size=1, max_size=40),
    new=st.dictionaries(st.integers(0, 39), VALUES, max_size=4),
    data=st.data(),
)
def test_rows_that_stay_in_their_places_are_left_out(rows, new, data):
    after = [new.get(place, row) for place, row in enumerate(rows)]
    half = data.draw(st.integers(0, len(rows)))
    before, later = ([frame(some[:half]), frame(some[half:])] for some in (rows, after))

    left = without_carried(before, data.draw(st.permutations(later)))

    assert net([left[0]], [left[1]]) == net(before, later)


def test_rows_that_stay_in_their_places_are_not_hashed(monkeypatch):
    before = numbered(5000)
    after = before.with_columns(kind=pl.when(pl.col("id") == 77).then(-1).otherwise("kind"))
    hashed = []
    hash_rows = pl.DataFrame.hash_rows
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda rows: hashed.append(rows.height) or hash_rows(rows))

    left = without_carried([before], [after])

    assert (left[0].height, left[1].height) == (1, 1)
    assert max(hashed) == 1
