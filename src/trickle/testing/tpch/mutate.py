"""Cycles of refresh functions: batches of inserts, updates and deletes, one commit per table and function.

References hold after every function: lines have their order and their offer, offers their part and supplier,
suppliers and customers their nation.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trickle.testing.tpch.catalogue import change_catalogue
from trickle.testing.tpch.draw import Draw, Reader
from trickle.testing.tpch.orders import delete_orders, insert_orders, update_lines_and_customers
from trickle.testing.tpch.write import write_with_delta_rs, write_with_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from trickle.testing.tpch.data import Sources
    from trickle.testing.tpch.draw import Mutation
    from trickle.testing.tpch.write import Change

REFRESH_FUNCTIONS: Final[Mapping[str, Callable[[Draw], tuple[Change, ...]]]] = MappingProxyType(
    {
        "RF1": insert_orders,
        "RF2": delete_orders,
        "RF3": update_lines_and_customers,
        "RF4": change_catalogue,
    }
)


@dataclass(frozen=True, slots=True)
class Mutated:
    """What one commit did: for which refresh function, to which table, with how many rows of change."""

    refresh_function: str
    table: str
    rows: int


def mutate(
    sources: Sources,
    mutation: Mutation,
    cycle: int,
    *,
    only: str | None = None,
    spark: SparkSession | None = None,
) -> list[Mutated]:
    """Run a cycle: RF1, RF2, RF3 and RF4, or one of them.

    Args:
        sources: The tables to change.
        mutation: How much of them, and where.
        cycle: Number of the cycle, from 1; the same cycle of the same mutation makes the same choices.
        only: Name of the one refresh function to run.
        spark: Commits with Spark instead of delta-rs: for deletion vectors, and above scale 1.
    """
    return [
        commit
        for name in ([only] if only else REFRESH_FUNCTIONS)
        for commit in _run(sources, mutation, cycle, name, spark)
    ]


def _run(sources: Sources, mutation: Mutation, cycle: int, name: str, spark: SparkSession | None) -> list[Mutated]:
    reader = Reader(sources)
    changes = REFRESH_FUNCTIONS[name](Draw(mutation, cycle, reader.extents()))
    computed = [(change, rows) for change in changes if (rows := reader.query(change.query)).num_rows]
    for change, rows in computed:
        if spark is None:
            write_with_delta_rs(sources.path(change.table), change, rows)
        else:
            write_with_spark(spark, sources.path(change.table), change, rows)
    return [Mutated(name, change.table, rows.num_rows) for change, rows in computed]
