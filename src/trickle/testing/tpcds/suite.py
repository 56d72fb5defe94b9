"""Stream tables of the queries, refreshed after each round and compared with what plain Spark answers."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trickle.api import Trickle
from trickle.model.options import DEFAULT, Options
from trickle.testing.tpcds.data import TABLES, Sources, load, mutate
from trickle.testing.tpcds.queries import queries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from trickle.model.report import RefreshReport


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a refresh gave, beside the query itself.

    Attributes:
        report: What the refresh says of itself; None for the creation.
        seconds: How long the refresh took.
        query_seconds: How long the query took.
        rows: How many rows the query gives.
        missing: Rows that the stream table lacks.
        extra: Rows that it has too many.
    """

    report: RefreshReport | None
    seconds: float
    query_seconds: float
    rows: int
    missing: Counter[tuple[Any, ...]]
    extra: Counter[tuple[Any, ...]]

    def wrong(self) -> str:
        """Say what is wrong: the mode, or the rows; empty if nothing is."""
        if self.report is not None and self.report.mode != "differential":
            return f"the refresh was {self.report.mode}: {self.report.reason}"
        if not self.missing and not self.extra:
            return ""
        lines = [f"{self.missing.total()} rows missing, {self.extra.total()} extra, of {self.rows}"]
        lines += [f"  missing {row}" for row in list(self.missing.elements())[:5]]
        lines += [f"  extra   {row}" for row in list(self.extra.elements())[:5]]
        return "\n".join(lines)


class Suite:
    """Stream tables over sources of their own, in the current schema."""

    def __init__(self, spark: SparkSession, location: Path, *, options: Options = DEFAULT) -> None:
        """Make the sources."""
        self.spark = spark
        self.sources: Sources = load(spark, location=location)
        self.stream_tables = Trickle(spark, options=options)
        self._plain = spark.newSession()
        self._show(0)

    def mutate(self, round_: int) -> None:
        """Make the changes of a round."""
        mutate(self.sources, round_)
        self._show(round_)

    def _show(self, round_: int) -> None:
        """Show plain Spark the rows of a round, in Parquet files, so that its answer does not depend on Delta tables."""
        import pyarrow.parquet as pq

        rows = self.sources.rows
        for table in TABLES:
            file = str(self.sources.location / f"{table}.{round_}.parquet")
            pq.write_table(rows.read(rows.at(table, round_)), file)
            self._plain.read.parquet(file).createOrReplaceTempView(table)

    def create(self, number: int) -> Outcome:
        """Create the stream table of a query."""
        start = time.perf_counter()
        self.stream_tables.create(self.name(number), queries()[number], mode="differential")
        return self._outcome(number, None, time.perf_counter() - start)

    def refresh(self, number: int) -> Outcome:
        """Refresh it."""
        start = time.perf_counter()
        report = self.stream_tables.refresh(self.name(number))
        return self._outcome(number, report, time.perf_counter() - start)

    def name(self, number: int) -> str:
        """Return the name of the stream table of a query."""
        return f"ds{number:02d}"

    def _outcome(self, number: int, report: RefreshReport | None, seconds: float) -> Outcome:
        found = _bag(self.spark.table(self.name(number)).collect())
        start = time.perf_counter()
        answer = self._plain.sql(queries()[number]).collect()
        query_seconds = time.perf_counter() - start
        expected = _bag(answer)
        return Outcome(report, seconds, query_seconds, len(answer), expected - found, found - expected)


def _bag(rows: Iterable[Iterable[Any]]) -> Counter[tuple[Any, ...]]:
    """Count rows; of doubles nine digits count, as in ``verify``."""
    return Counter(tuple(_comparable(value) for value in row) for row in rows)


def _comparable(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "NaN"
    return float(f"{value:.9g}")
