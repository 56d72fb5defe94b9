"""What is drawn, and what came of it: tables, views and rounds of changes; refreshes and failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from trickle.testing.fuzz.changes import Round, draw_rounds
from trickle.testing.fuzz.queries import Queries
from trickle.testing.fuzz.regimes import draw_regime, is_light
from trickle.testing.fuzz.sql import Relation, constructs, render
from trickle.testing.fuzz.tables import Table, draw_table

ROUNDS: Final = 14
ROUNDS_BY_SPARK: Final = 5
"""Where Spark reads, writes or computes, a round takes several times as long."""


@dataclass(frozen=True, slots=True)
class View:
    """A query and the regime it is maintained under."""

    query: Relation | str
    regime: str

    @property
    def sql(self) -> str:
        """Return the query's text."""
        return self.query if isinstance(self.query, str) else render(self.query)

    @property
    def constructs(self) -> frozenset[str]:
        """Name what the query uses."""
        return frozenset() if isinstance(self.query, str) else constructs(self.query)

    def reads(self, table: str) -> bool:
        """Return whether the query reads a table."""
        return f"FROM {table}" in self.sql


@dataclass(frozen=True, slots=True)
class Case:
    """A database, the views over it, and rounds of changes."""

    tables: tuple[Table, ...]
    views: tuple[View, ...]
    rounds: tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one view of a case; the rounds of the case end where it showed."""

    case: Case
    kind: str
    text: str

    @property
    def view(self) -> View:
        """Return the view that failed."""
        return self.case.views[0]


@dataclass(slots=True)
class Refreshed:
    """One refresh that was compared with plain Spark."""

    view: View
    mode: str
    changed: bool
    seconds: float
    plain_seconds: float


@dataclass(slots=True)
class Outcome:
    """What came of a case."""

    refreshes: list[Refreshed] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    created: int = 0
    verified: int = 0

    def count_created(self) -> None:
        """Count a table that was made."""
        self.created += 1

    def count_verified(self) -> None:
        """Count a comparison with plain Spark."""
        self.verified += 1


def draw_case(seed: int, number: int, *, views: int = 10, rounds: int | None = None, regime: str | None = None) -> Case:
    """Draw a case; the same for the same seed and number."""
    of_tables, of_changes, of_views = (Random(f"{seed}/{number}/{part}") for part in ("tables", "changes", "views"))
    tables = tuple(draw_table(of_tables, name) for name in ("a", "b", "c")[: of_tables.choice((2, 3, 3))])
    names = [regime or draw_regime(of_views) for _ in range(2)]
    queries = Queries(of_views, tables)
    drawn = tuple(View(queries.draw(), of_views.choice(names)) for _ in range(views))
    if rounds is None:
        rounds = ROUNDS if all(map(is_light, names)) and not any(t.by_spark for t in tables) else ROUNDS_BY_SPARK
    return Case(tables, drawn, draw_rounds(of_changes, tables, rounds))
