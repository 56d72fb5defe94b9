"""TPC-DS for tests: the 99 queries, small but dense data, and three rounds of changes in nearly every table.

    sources = tpcds.load(spark, location=folder)
    for number, sql in tpcds.queries().items(): ...
    tpcds.mutate(sources, 1)

Texts and rows come from ``duckdb`` 1.0, whose wheel carries them.
"""

from __future__ import annotations

from trickle.testing.tpcds.data import LIVES, ROUNDS, TABLES, Rows, Sources, load, mutate
from trickle.testing.tpcds.queries import NUMBERS, queries
from trickle.testing.tpcds.suite import Outcome, Suite

__all__ = [
    "LIVES",
    "NUMBERS",
    "ROUNDS",
    "TABLES",
    "Outcome",
    "Rows",
    "Sources",
    "Suite",
    "load",
    "mutate",
    "queries",
]
