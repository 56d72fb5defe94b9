"""What every target does: one conditional commit per write, exact multiplicities, a record that stays."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from trickle.errors import ConflictError, StateError
from trickle.model.reason import STATE_MISMATCH
from trickle.tables.arrow.local import local_frame, row_key
from trickle.tables.contract import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .conftest import Implementation

# Names that need quoting or are our own, and types that compare in their own ways.
ODD = (
    "`a b` bigint, `x.y` string, `q``q` double, `ü;` array<int>, bin binary, st struct<f:int,`g h`:string>, "
    "__id int, _metadata int"
)
WEIGHTED = f"{ODD}, {WEIGHT} bigint not null"
TWIN = (1, "x", 1.5, [1, 2], b"\x00\xff", (1, "g"), 1, 0)
NULLS = (None,) * 8
NAN = (2, "n", float("nan"), [None], b"", (None, None), 2, 1)
ZERO = (3, "z", -0.0, [], b"q", (3, ""), 3, 2)
NEW = (9, "i", 0.0, None, None, None, 1, 1)

BARE = "k1 int, k2 int, v bigint"
KEYED = f"{BARE}, m map<string,int>"
KEYS = "k1 int, k2 int"


def test_a_bag_change_counts_copies(tables: Implementation, spark: SparkSession) -> None:
    target = tables.target(ODD, [TWIN, TWIN, NULLS, NAN, ZERO])
    created = target.state()
    assert (created.record, created.external) == ("created", ())

    change = [(*TWIN, -1), (*NULLS, -1), (*NAN, -1), (*ZERO, -1), (*NEW, 3)]
    applied = target.apply_bag(local_frame(spark, change, WEIGHTED), "first", created)

    assert (applied.rows_inserted, applied.rows_deleted) == (3, 4)
    assert tables.rows(target) == {row_key(TWIN): 1, row_key(NEW): 3}
    after = target.state()
    assert (after.record, after.record_version, after.external) == ("first", applied.version, ())

    with pytest.raises(StateError) as mismatch:
        target.apply_bag(local_frame(spark, [(*TWIN, -2), (*NEW, 1)], WEIGHTED), "second", after)
    assert mismatch.value.code == STATE_MISMATCH
    assert target.state() == after

    inserts = target.apply_bag(local_frame(spark, [(*NULLS, 2)], WEIGHTED), "third", after)
    assert (inserts.rows_inserted, inserts.rows_deleted) == (2, 0)
    assert tables.rows(target) == {row_key(TWIN): 1, row_key(NEW): 3, row_key(NULLS): 2}


FLOATS = "k int, x double, y float"
NESTED = f"{FLOATS}, s struct<d:double,a:array<double>>"


def test_rows_that_differ_in_last_digits_are_taken_back(tables: Implementation, spark: SparkSession) -> None:
    schema = FLOATS if tables.reads_in_driver else NESTED  # the driver holds no nested values

    def row(k: int | None, x: float | None, nth: int = 0) -> tuple[object, ...]:
        inner = None if x is None else (x + nth * 1e-16, [x, None])
        return (k, x, 1.5, inner)[: 4 if schema == NESTED else 3]

    weighted = f"{schema}, {WEIGHT} bigint not null"
    sum_, other, far = 0.1 + 0.2, 0.30000000000000010, 0.3000001
    target = tables.target(schema, [row(1, 0.3), row(1, other), row(1, far), row(2, 0.3), row(3, None), row(4, 5.0)])

    change = [
        (*row(1, sum_), -1),  # near to two: the nearest goes
        (*row(2, sum_), -1),
        (*row(2, 7.0), 2),
        (*row(5, 9.0), -1),  # never stored, but brought by the change itself
        (*row(5, 9.000000000000002), 2),
        (*row(4, 5.0), -1),
    ]
    applied = target.apply_bag(local_frame(spark, change, weighted), "near", target.state())

    assert (applied.rows_inserted, applied.rows_deleted) == (3, 3)
    expected = [row(1, other), row(1, far), row(2, 7.0), row(2, 7.0), row(3, None), row(5, 9.000000000000002)]
    assert tables.rows(target) == Counter(row_key(one) for one in expected)

    before = target.state()
    with pytest.raises(StateError) as mismatch:
        target.apply_bag(local_frame(spark, [(*row(1, 0.300001), -1)], weighted), "far", before)
    assert mismatch.value.code == STATE_MISMATCH
    with pytest.raises(StateError):
        target.apply_bag(local_frame(spark, [(*row(3, 0.0), -1)], weighted), "null", before)
    assert target.state() == before


def test_keys_are_replaced_null_safe_and_unchanged_rows_stay(tables: Implementation, spark: SparkSession) -> None:
    target = tables.target(KEYED, [(1, None, 5, None), (None, 2, 6, None), (3, 3, 7, None), (4, 4, 8, None)])
    plain = tables.target(BARE, [(1, None, 5), (None, 2, 6), (3, 3, 7), (4, 4, 8)])
    touched = local_frame(spark, [(3, 3), (8, 8), (3, 3), (1, None), (None, 2), (5, 5)], KEYS)

    rows = [(1, None, 5, {"a": 1}), (None, 2, 60, None), (5, 5, 5, None)]
    target.replace_keys(local_frame(spark, rows, KEYED), touched, ["k1", "k2"], "maps", target.state())
    applied = plain.replace_keys(
        local_frame(spark, [row[:3] for row in rows], BARE), touched, ["k1", "k2"], "plain", plain.state()
    )

    assert tables.rows(target) == {row_key(row): 1 for row in [*rows, (4, 4, 8, None)]}
    assert tables.rows(plain) == {row[:3]: 1 for row in [*rows, (4, 4, 8)]}
    assert (applied.rows_inserted, applied.rows_deleted) == (2, 2)
    tables.check_io(applied)

    again = plain.replace_keys(
        local_frame(spark, [row[:3] for row in rows], BARE), touched, ["k1", "k2"], "again", plain.state()
    )
    assert (again.rows_inserted, again.rows_deleted) == (0, 0)
    assert plain.state().record == "again"


def test_without_keys_the_one_row_is_replaced(tables: Implementation, spark: SparkSession) -> None:
    schema = "n bigint, total decimal(10,2)"
    target = tables.target(schema, [(0, None)])
    none = spark.createDataFrame([], StructType([]))

    row = (2, Decimal("1.50"))
    applied = target.replace_keys(local_frame(spark, [row], schema), none, [], "one", target.state())

    assert (applied.rows_inserted, applied.rows_deleted) == (1, 1)
    assert tables.rows(target) == {row: 1}
    tables.check_io(applied)

    emptied = target.replace_keys(local_frame(spark, [], schema), none, [], "none", target.state())
    assert (emptied.rows_inserted, emptied.rows_deleted) == (0, 1)
    assert tables.rows(target) == {}


def test_sums_of_long_decimals_keep_every_digit(tables: Implementation, spark: SparkSession) -> None:
    schema = "k string, n bigint, total decimal(38,10)"
    target = tables.target(schema, [("a", 1, Decimal("158.3333333333"))])

    delta = local_frame(spark, [("a", 1, Decimal("-0.0000000002"))], schema)
    target.accumulate(delta, ["k"], "sum", target.state(), "n")

    assert tables.rows(target) == {row_key(("a", 2, Decimal("158.3333333331"))): 1}


def test_sums_are_added_by_key(tables: Implementation, spark: SparkSession) -> None:
    schema = "k string, d double, n bigint, total decimal(38,2)"
    zero, nan = -0.0, float("nan")
    stored = [("a", 0.0, 2, Decimal("1.50")), (None, nan, 1, Decimal("7.00")), ("c", None, 3, Decimal("9.00"))]
    target = tables.target(schema, stored)

    delta = [
        ("a", zero, 1, Decimal("-0.25")),  # a stored key
        (None, nan, -1, Decimal("-7.00")),  # its count becomes 0
        ("c", None, 0, Decimal("0.00")),  # nothing
        ("new", 1.0, 1, Decimal("3.00")),
        ("never", 1.0, 0, Decimal("0.00")),
    ]
    applied = target.accumulate(local_frame(spark, delta, schema), ["k", "d"], "sum", target.state(), "n")

    tables.check_io(applied)
    assert (applied.rows_inserted, applied.rows_deleted) == (2, 2)
    expected = [("a", 0.0, 3, Decimal("1.25")), ("c", None, 3, Decimal("9.00")), ("new", 1.0, 1, Decimal("3.00"))]
    assert tables.rows(target) == {row_key(row): 1 for row in expected}
    assert target.state().record == "sum"

    before = target.state()
    for row, code in (
        (("a", 0.0, -4, Decimal("0.00")), STATE_MISMATCH),
        (("absent", 0.0, -1, Decimal("0.00")), STATE_MISMATCH),
        (("a", 0.0, 2**63 - 1, Decimal("0.00")), "SUM_OVERFLOW"),
        (("c", None, 1, Decimal(10**36 - 1)), "SUM_OVERFLOW"),
    ):
        with pytest.raises(StateError) as refused:
            target.accumulate(local_frame(spark, [row], schema), ["k", "d"], "bad", before, "n")
        assert refused.value.code == code
    assert target.state() == before


def test_without_keys_the_one_sum_stays_at_zero(tables: Implementation, spark: SparkSession) -> None:
    schema = "n bigint, total decimal(10,2)"
    target = tables.target(schema, [(2, Decimal("1.50"))])

    gone = local_frame(spark, [(-2, Decimal("-1.50"))], schema)
    applied = target.accumulate(gone, [], "none", target.state(), "n")

    tables.check_io(applied)
    assert (applied.rows_inserted, applied.rows_deleted) == (1, 1)
    assert tables.rows(target) == {(0, Decimal("0.00")): 1}
    same = target.accumulate(local_frame(spark, [(0, Decimal(0))], schema), [], "same", target.state(), "n")
    assert (same.rows_inserted, same.rows_deleted) == (0, 0)
    assert tables.rows(target) == {(0, Decimal("0.00")): 1}


def test_of_two_writers_from_one_state_the_second_is_refused(tables: Implementation, spark: SparkSession) -> None:
    schema = "id bigint"
    target = tables.target(schema, [(1,)])
    start = target.state()
    rows = local_frame(spark, [(2,), (3,)], schema)

    touched = target.touch("first", start)
    for write in (
        lambda: target.touch("late", start),
        lambda: target.append(rows, "late", start),
        lambda: target.overwrite(rows, "late", start),
    ):
        with pytest.raises(ConflictError) as conflict:
            write()
        assert conflict.value.code == "CONCURRENT_REFRESH"
    assert target.state().record == "first"
    assert touched.version == start.version + 1
    assert tables.rows(target) == {(1,): 1}

    appended = target.append(rows, "second", target.state())
    assert (appended.rows_inserted, appended.rows_deleted) == (2, 0)
    replaced = target.overwrite(rows, "third", target.state())
    for applied in (touched, appended, replaced):
        tables.check_io(applied)
    assert (replaced.rows_inserted, replaced.rows_deleted) == (2, 3)
    assert tables.rows(target) == {(2,): 1, (3,): 1}


def test_rows_changed_by_others_are_seen(tables: Implementation, spark: SparkSession) -> None:
    schema = "id bigint"
    target = tables.target(schema, [(1,)])
    start = target.state()

    tables.tamper(target)

    assert target.state().external == ("DELETE",)
    assert target.state().record_version == start.record_version
    rows = local_frame(spark, [(5,)], schema)
    with pytest.raises(ConflictError):
        target.append(rows, "late", start)
    target.overwrite(rows, "repaired", target.state())
    assert target.state().external == ()
    assert tables.rows(target) == {(5,): 1}
