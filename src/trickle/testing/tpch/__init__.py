"""TPC-H for tests and benchmarks: the 22 queries, their data at any scale, and refresh functions that change it.

    sources = tpch.load(spark, scale=0.01, location=folder)
    for name, sql in tpch.QUERIES.items(): ...
    tpch.mutate(sources, tpch.Mutation(rate=0.01, pattern="random"), cycle=1)

The queries are the standard's, with its validation parameters, in Spark's dialect.
"""

from __future__ import annotations

from trickle.testing.tpch.data import TABLES, Sources, declare, generate, load, store
from trickle.testing.tpch.draw import Mutation
from trickle.testing.tpch.mutate import REFRESH_FUNCTIONS, Mutated, mutate
from trickle.testing.tpch.queries import QUERIES, sources_of

__all__ = [
    "QUERIES",
    "REFRESH_FUNCTIONS",
    "TABLES",
    "Mutated",
    "Mutation",
    "Sources",
    "declare",
    "generate",
    "load",
    "mutate",
    "sources_of",
    "store",
]
