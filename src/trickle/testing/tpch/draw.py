"""Which rows a cycle touches: the same for the same seed and cycle.

Choices are SQL expressions over the keys (for the query engine inside ``deltalake``, which needs no session and
milliseconds), so nothing depends on the order or the files of the rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from trickle.testing.tpch.data import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from trickle.testing.tpch.data import Sources

RECENT_SHARE: Final = 0.05
"""Share of the key range that counts as recent, unless the rate asks for more."""

PRIME: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Mutation:
    """What a cycle changes.

    Attributes:
        rate: Share of rows that each refresh function touches.
        pattern: Where the touched keys lie: ``random`` over the whole table, ``recent`` in its last few per cent.
        seed: Another seed draws other rows.
        renamed_nations: Nations renamed per cycle. One rename reaches a 25th of all suppliers and customers, whatever
            the rate, so a benchmark of small changes sets it to 0.
    """

    rate: float = 0.01
    pattern: Literal["random", "recent"] = "random"
    seed: int = 1
    renamed_nations: int = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows a table has, and its highest key."""

    rows: int
    highest: int


@dataclass(frozen=True, slots=True)
class Draw:
    """The random choices of one cycle, as SQL text."""

    mutation: Mutation
    cycle: int
    extents: Mapping[str, Extent]

    def number(self, purpose: str, *columns: str) -> str:
        """Return an expression: a random number below ``PRIME`` for these columns."""
        choose = random.Random(f"{self.mutation.seed} {self.cycle} {purpose}")
        value = str(choose.randrange(PRIME))
        for column in columns:
            value = f"({value} + {column} % {PRIME} * {choose.randrange(1, PRIME)}) % {PRIME}"
        return value

    def below(self, limit: int, purpose: str, *columns: str) -> str:
        """Return an expression: a random number from 0 to ``limit - 1``."""
        return f"({self.number(purpose, *columns)}) % {limit}"

    def one_of(self, words: str, purpose: str, *columns: str) -> str:
        """Return an expression: one of the words in a text that separates them by commas."""
        return f"split_part('{words}', ',', 1 + {self.below(words.count(',') + 1, purpose, *columns)})"

    def sample(self, table: str, rows: int, purpose: str, *, where: str = "true") -> str:
        """Return a query: that many rows of a table in a drawn order, numbered from 1 in ``rank``."""
        keys = TABLES[table]
        order = ", ".join((self.number(purpose, *keys), *keys))
        return (
            f"SELECT *, CAST(row_number() OVER (ORDER BY {order}) AS bigint) AS rank FROM "
            f"(SELECT * FROM {table} WHERE {self._pool(table)} AND {where} ORDER BY {order} LIMIT {rows})"
        )

    def rows(self, table: str, *, share: float = 1.0, least: int = 1) -> int:
        """Return how many rows of a table make the rate, or a share of it."""
        return max(least, round(self.extents[table].rows * self.mutation.rate * share))

    def highest(self, table: str) -> int:
        """Return the highest key of a table."""
        return self.extents[table].highest

    def _pool(self, table: str) -> str:
        if self.mutation.pattern == "random":
            return "true"
        share = min(1.0, max(RECENT_SHARE, 2 * self.mutation.rate))
        return f"{TABLES[table][0]} > {int(self.highest(table) * (1 - share))}"


class Reader:
    """Queries over the newest versions of the source tables."""

    def __init__(self, sources: Sources) -> None:
        """Open all tables as they stand now."""
        from deltalake import DeltaTable, QueryBuilder

        self._engine = QueryBuilder()
        for table in TABLES:
            self._engine.register(table, DeltaTable(sources.path(table)))

    def query(self, text: str) -> pa.Table:
        """Run a query."""
        import pyarrow as pa

        from trickle.tables.arrow.spark import in_plain_layout

        return in_plain_layout(pa.table(self._engine.execute(text).read_all()))

    def extents(self) -> Mapping[str, Extent]:
        """Return the extent of every table."""
        return {
            table: Extent(
                **self.query(f"SELECT count(*) AS rows, max({keys[0]}) AS highest FROM {table}").to_pylist()[0]
            )
            for table, keys in TABLES.items()
        }
