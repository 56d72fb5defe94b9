"""The corpus itself: titles, tables, rounds, and that every aggregate function has its case."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from . import ALL, FAMILIES
from .aggregate_functions import FUNCTIONS
from .rounds import generate, states
from .tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Aggregate functions that the registry files elsewhere.
FILED_ELSEWHERE = {"schema_of_variant_agg"}


def test_there_are_enough_cases() -> None:
    assert len(ALL) >= 270
    assert len(FAMILIES) == 11


def test_titles_are_unique() -> None:
    assert not [title for title, count in Counter(case.title for case in ALL).items() if count > 1]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.title)
def test_case_is_told_and_reads_fixture_tables(case) -> None:
    assert case.how
    assert case.cost
    assert case.tables
    assert set(case.tables) <= set(TABLES)
    assert case.query or case.define


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.title)
def test_rounds_delete_only_rows_that_are_there(case) -> None:
    assert len(list(states(case.tables, case.rounds or generate(case.tables)))) >= 4


@pytest.mark.parametrize("names", list(permutations(TABLES, 2)), ids="-".join)
def test_generated_rounds_keep_what_fixture_tables_promise(names: tuple[str, str]) -> None:
    for _, contents in states(names, generate(names)):
        for name, rows in contents.items():
            assert not TABLES[name].unique or len({row[0] for row in rows}) == len(rows)
        assert all(src is None or src < dst for src, dst, _ in contents.get("edges", ()))


def test_every_aggregate_function_has_a_case(spark: SparkSession) -> None:
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    names = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()} - {"!=", "<>", "||", "case"}
    groups = {name: catalog.lookupFunctionInfo(identifier(name)).getGroup() for name in names}
    assert {f.name for f in FUNCTIONS} == {n for n, group in groups.items() if group == "agg_funcs"} | FILED_ELSEWHERE
