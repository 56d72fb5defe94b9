"""The facts about types hold in Arrow, in polars and in the statistics of a log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.types import (
    DECIMAL,
    NOT_STORED,
    TYPES,
    UNKNOWN,
    decimal_digits,
    facts_of,
    facts_of_json,
    is_equated,
    is_stored,
    is_text,
    is_widening,
    mentions_collation,
    mentions_floating,
)
from trickle.tables.arrow.types import (
    ARROW_TYPES,
    arrow_facts,
    computed_type,
    holds_the_same,
    is_narrower,
    plain_type,
    polars_digits,
    polars_facts,
    value_type,
)
from trickle.tables.delta.driver.write import statistics

DECIMALS = ("decimal(9,2)", "decimal(18,0)", "decimal(38,10)")
NAMES = (*TYPES, *DECIMALS)


def arrow_type(name: str) -> pa.DataType:
    return ARROW_TYPES[name] if name in ARROW_TYPES else pa.decimal128(*(decimal_digits(name) or ()))


def as_decimal(units: int, scale: int) -> Decimal:
    """Exactly, whatever the precision of Python's own arithmetic."""
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))


def values(name: str) -> st.SearchStrategy[Any]:
    """Values of a type, NULL among them, the same ones often."""
    facts = facts_of(name)
    if facts.is_whole:
        end = 2 ** (8 * facts.bytes - 1)
        some = st.integers(-end, end - 1) | st.integers(-3, 3)
    elif facts is DECIMAL:
        precision, scale = decimal_digits(name) or (0, 0)
        some = st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: as_decimal(n, scale))
    else:
        some = {
            "string": st.sampled_from(["", "a", "B", "é", "e\u0301", "\U0001d11e", "\uffff", "ab"])
            | st.text(max_size=3),
            "date": st.dates(),
            "boolean": st.booleans(),
            "float": st.floats(width=32),
            "double": st.floats(),
            "timestamp": st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)),
            "timestamp_ntz": st.datetimes(),
            "binary": st.binary(max_size=3),
        }[name]
    return st.none() | some


def columns(name: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(values(name), max_size=8)


def in_order(value: Any) -> Any:
    """Spark orders texts by their bytes."""
    return value.encode() if isinstance(value, str) else value


def test_every_type_has_an_arrow_type_and_the_facts_of_it() -> None:
    assert ARROW_TYPES.keys() == TYPES.keys()
    for name in NAMES:
        assert arrow_facts(arrow_type(name)) is facts_of(name)
    assert (
        facts_of("string collate UNICODE_CI")
        is facts_of("map<int,int>")
        is arrow_facts(pa.map_(pa.int8(), pa.int8()))
        is UNKNOWN
    )


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_compared])
def test_compared_values_are_ordered_alike(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name))
    def check(column: list[Any]) -> None:
        known = [value for value in column if value is not None]
        expected = sorted(known, key=in_order)
        array = pa.array(column, arrow_type(name))

        assert array.take(pc.sort_indices(array)).to_pylist() == [*expected, *[None] * (len(column) - len(known))]
        assert pl.Series(pl.from_arrow(array)).drop_nulls().sort().to_list() == expected

    check()


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_grouped or facts_of(n).is_looked_up])
def test_equal_values_are_one_group_and_found_by_key(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name), keys=columns(name))
    def check(column: list[Any], keys: list[Any]) -> None:
        array, some = pa.array(column, arrow_type(name)), pa.array(keys, arrow_type(name))
        expected = [value is not None and value in keys for value in column]

        assert len(array.unique()) == len(set(column)) == pl.Series(pl.from_arrow(array)).n_unique()
        assert pc.is_in(array, value_set=pc.drop_null(some)).to_pylist() == expected
        found = pl.Series(pl.from_arrow(array)).is_in(pl.Series(pl.from_arrow(some)).drop_nulls().implode())
        assert [bool(one) for one in found] == expected

    check()


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_summed])
def test_sums_are_exact(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name))
    def check(column: list[Any]) -> None:
        digits = decimal_digits(name) or (38, 0)
        expected = sum(Fraction(value) for value in column if value is not None)
        if abs(expected) >= 10 ** (digits[0] - digits[1]):
            return
        wide = pa.array(column, arrow_type(name)).cast(pa.decimal128(38, digits[1]))
        assert Fraction(pc.sum(wide).as_py() or 0) == expected

    check()


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_held])
def test_held_values_come_back_from_polars(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name))
    def check(column: list[Any]) -> None:
        array = pa.array(column, arrow_type(name))
        back = pl.Series(pl.from_arrow(array)).to_arrow().cast(array.type)
        assert list(map(repr, back.to_pylist())) == list(map(repr, array.to_pylist()))

    check()


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_bounded])
def test_statistics_hold_bounds_exactly(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name))
    def check(column: list[Any]) -> None:
        stored = json.loads(statistics(pa.table({"c": pa.array(column, arrow_type(name))})))
        known = [value for value in column if value is not None]
        assert stored["minValues"].get("c") == min(known, default=None)
        assert stored["maxValues"].get("c") == max(known, default=None)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_polars_and_stored_schemas_know_a_type_by_the_same_facts(name: str) -> None:
    held = pl.Series(pl.from_arrow(pa.array([], arrow_type(name)))).dtype
    assert polars_facts(held) is facts_of(name)
    assert polars_digits(held) == decimal_digits(name)
    assert facts_of_json(facts_of(name).json.replace("decimal", name)) is facts_of(name)


def test_other_types_have_no_facts_anywhere() -> None:
    assert polars_facts(pl.List(pl.Int8())) is polars_facts(pl.UInt32()) is UNKNOWN
    assert facts_of_json("bigint") is facts_of_json("variant") is UNKNOWN
    assert decimal_digits("decimal") is decimal_digits("array<decimal(10,2)>") is None


@pytest.mark.parametrize("name", NAMES)
def test_values_are_computed_in_the_layout_of_polars(name: str) -> None:
    type_ = computed_type(name)
    assert (type_ is not None) == facts_of(name).is_computed
    if type_ is not None:
        held = pl.Series(pl.from_arrow(pa.array([], type_)))
        assert held.to_arrow(compat_level=pl.CompatLevel.oldest()).type == type_
        assert value_type(type_) == arrow_type(name)


@pytest.mark.parametrize("name", [n for n in NAMES if facts_of(n).is_counted])
def test_counted_values_are_whole_numbers_underneath(name: str) -> None:
    @settings(deadline=None, max_examples=40)
    @given(column=columns(name))
    def check(column: list[Any]) -> None:
        held = pl.Series(pl.from_arrow(pa.array(column, arrow_type(name))))
        numbers = held.to_physical()
        assert numbers.dtype.is_signed_integer()
        assert numbers.cast(held.dtype).to_list() == column

    check()


@pytest.mark.parametrize(("before", "after"), [(a, b) for a in NAMES for b in NAMES])
def test_a_widened_type_has_all_values(before: str, after: str) -> None:
    old, new = (facts_of(name).json.replace("decimal", name) for name in (before, after))
    if not is_widening(old, new):
        assert before == after or not is_narrower(arrow_type(before), arrow_type(after))
        return

    @settings(deadline=None, max_examples=10)
    @given(column=columns(before))
    def check(column: list[Any]) -> None:
        stored = pa.array(column, arrow_type(before))
        if facts_of(before).is_floating:
            assert list(map(repr, stored.cast(arrow_type(after)).to_pylist())) == list(map(repr, stored.to_pylist()))
        elif before != "date":
            assert list(map(Fraction, pc.drop_null(stored).to_pylist())) == list(
                map(Fraction, pc.drop_null(stored).cast(arrow_type(after)).to_pylist())
            )

    check()


@pytest.mark.parametrize("name", NAMES)
def test_layouts_of_a_type_hold_the_same_values(name: str) -> None:
    type_ = arrow_type(name)
    assert value_type(pa.dictionary(pa.int32(), type_)) == value_type(type_) == plain_type(type_) == type_
    alike = {n for n in NAMES if holds_the_same(arrow_type(n), type_)}
    facts = facts_of(name)
    assert alike == {n for n in NAMES if facts_of(n) is facts or (facts_of(n).is_whole and facts.is_whole)}


def test_texts_and_bytes_have_layouts_at_any_depth() -> None:
    for text in (pa.large_string(), pa.string_view()):
        assert value_type(text) == plain_type(text) == pa.string()
    for some in (pa.large_binary(), pa.binary_view()):
        assert value_type(some) == plain_type(some) == pa.binary()
    assert (value_type(pa.binary(3)), plain_type(pa.binary(3))) == (pa.binary(3), pa.binary())
    deep = pa.large_list(pa.struct([("x", pa.dictionary(pa.int8(), pa.large_string()))]))
    assert plain_type(deep) == pa.list_(pa.struct([("x", pa.string())]))


@pytest.mark.parametrize("name", NAMES)
def test_kinds_of_every_type(name: str) -> None:
    for whole, inside in ((name, name), (f"array<struct<x:{name}>>", f"map<int,{name}>")):
        assert mentions_floating(whole) == facts_of(name).is_floating
        assert not mentions_collation(whole)
        assert is_equated(whole)
        assert is_stored(whole)
        assert is_text(whole) == (whole == "string")
        assert is_equated(inside) == (inside == name)
    assert facts_of(name).is_exact != facts_of(name).is_floating


@pytest.mark.parametrize("name", sorted(NOT_STORED))
def test_kinds_of_what_is_not_stored(name: str) -> None:
    named = {"interval": "interval day to second", "collation": "string collate UNICODE", "map": "map<int,int>"}
    whole = named.get(name, name)
    assert not is_stored(whole)
    assert not is_stored(f"array<struct<x:{whole}>>")
    assert is_equated(whole) == (name not in ("map", "variant"))
    assert is_text(whole) == mentions_collation(whole) == (name == "collation")


def test_what_is_left_to_spark_has_a_counterexample() -> None:
    # Floating point: Spark takes -0.0 for 0.0, and has one NaN.
    zeros = pa.array([0.0, -0.0])
    assert len(zeros.unique()) == 2
    assert not facts_of("double").is_grouped
    # JSON has no dates, decimals or texts of any length: a log's bounds of them are cut or rounded.
    assert not any(facts_of(name).is_bounded for name in ("string", "date", "double", *DECIMALS))


@pytest.mark.parametrize("field", ["x", "a:b", "a<b", "a>b", "a,b", ":", "double", "time"])
def test_no_part_of_a_type_hides_behind_the_name_of_a_field(field):
    assert mentions_floating(f"struct<{field}:double>")
    assert mentions_floating(f"array<struct<y:int,{field}:struct<z:float>>>")
    assert not is_stored(f"struct<{field}:time(6),y:int>")
    assert not is_stored(f"map<string,struct<{field}:int>>")


def test_names_of_fields_are_not_types():
    assert not mentions_floating("struct<double:bigint,float:string>")
    assert is_stored("struct<time:timestamp,interval:date,map:decimal(10,2),void:array<string>>")
