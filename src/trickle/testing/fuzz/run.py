"""Runs cases: stream tables over a random database, compared with plain Spark after each round of changes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable
from pyarrow.dataset import ParquetReadOptions
from pyspark.errors import PySparkException

from trickle.errors import NotDifferentiableError, TrickleError
from trickle.session import WAREHOUSE_CONF
from trickle.tables.arrow.local import local_frame
from trickle.testing.fuzz.changes import Round, Writer, draw_rounds
from trickle.testing.fuzz.compare import differences
from trickle.testing.fuzz.known import known
from trickle.testing.fuzz.queries import Queries
from trickle.testing.fuzz.regimes import draw_regime, under
from trickle.testing.fuzz.sql import Relation, constructs, render
from trickle.testing.fuzz.tables import Table, draw_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle import Trickle

#: Why a query may be refused; see docs/reference/reasons-and-errors.md.
REFUSALS: Final = frozenset({"UNSUPPORTED_SUBQUERY", "NON_LINEAR_RECURSION"})
#: Compiling takes far longer than ten rows do; two tasks, so that rows are split.
QUICK: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
RESULT_ROWS: Final = 5_000
SLOW: Final = 10.0
SLOW_SECONDS: Final = 1.0


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


def draw_case(seed: int, number: int, *, views: int = 6, rounds: int = 6, regime: str | None = None) -> Case:
    """Draw a case; the same for the same seed and number."""
    of_tables, of_changes, of_views = (Random(f"{seed}/{number}/{part}") for part in ("tables", "changes", "views"))
    tables = tuple(draw_table(of_tables, name) for name in ("a", "b", "c")[: of_tables.choice((2, 3, 3))])
    names = [regime or draw_regime(of_views) for _ in range(2)]
    queries = Queries(of_views, tables)
    drawn = tuple(View(queries.draw(), of_views.choice(names)) for _ in range(views))
    return Case(tables, drawn, draw_rounds(of_changes, tables, rounds))


_numbers: Final = count(1)


class Bench:
    """Where cases are run: a session made by ``local_session``, each case in a schema of its own."""

    def __init__(self, spark: SparkSession) -> None:
        """Make two sessions beside a session: one for the engine, one that has nothing of it."""
        self.spark, self.plain = _quick(spark.newSession()), _quick(spark.newSession())

    @contextmanager
    def database(self, tables: tuple[Table, ...]) -> Iterator[Database]:
        """Make tables in a schema of their own, which is the current one until they are thrown away."""
        schema = f"fuzz{next(_numbers)}"
        self.spark.sql(f"CREATE SCHEMA {schema}")
        self.spark.sql(f"USE {schema}")
        database = Database(self.spark, self.plain, schema, tables)
        try:
            database.writer.create()
            database.show()
            yield database
        finally:
            self.spark.sql("USE default")
            shutil.rmtree(database.folder, ignore_errors=True)

    def run(self, case: Case, *, verify_every: int = 4) -> Outcome:
        """Run a case. Each view ends at its first failure."""
        outcome = Outcome()
        with self.database(case.tables) as database:
            engines = {regime: under(self.spark, regime) for regime in sorted({v.regime for v in case.views})}
            views = [
                _Maintained(database, engines[view.regime], f"view{n}", view, case, outcome)
                for n, view in enumerate(case.views)
            ]
            views = [view for view in views if view.create()]
            for number, round_ in enumerate(case.rounds):
                database.change(round_)
                verify = number % verify_every == verify_every - 1
                views = [view for view in views if view.refresh(number, verify=verify)]
                if not views:
                    break
        return outcome


class Database:
    """Tables, as the engine sees them and as plain Spark does."""

    def __init__(self, spark: SparkSession, plain: SparkSession, schema: str, tables: tuple[Table, ...]) -> None:
        """Name the tables; nothing is made yet."""
        self.spark = spark
        self.schema = schema
        self.folder = Path(str(spark.conf.get(WAREHOUSE_CONF))) / f"{schema}.db"
        self.writer = Writer(spark, schema, self.folder, tables)
        self._plain = plain
        self._tables = tables

    def change(self, round_: Round) -> None:
        """Make changes, each by a commit of its own."""
        for change in round_:
            self.writer.write(change)
        if round_:
            self.show({change.table for change in round_})

    def show(self, names: Collection[str] | None = None) -> None:
        """Show plain Spark the newest rows of each table, read once for all queries."""
        for table in self._tables:
            if names is None or table.name in names:
                rows = self._read(table.name, by_spark=table.by_spark)
                local_frame(self._plain, rows, table.schema).createOrReplaceTempView(table.name)

    def plain_rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on plain Spark."""
        return _rows(self._plain.sql(sql).toArrow())

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a stream table."""
        return self._read(name, by_spark=bool(DeltaTable(self.folder / name).protocol().reader_features))

    def _read(self, name: str, *, by_spark: bool) -> list[tuple[Any, ...]]:
        """Read a table; delta-rs does it in a tenth of the time, where it can."""
        path = self.folder / name
        if by_spark:
            return _rows(self._plain.read.format("delta").load(str(path)).toArrow())
        # Timestamps of 96 bits reach further than nanoseconds of 64.
        options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
        return _rows(DeltaTable(path).to_pyarrow_dataset(parquet_read_options=options).to_table())


class _Maintained:
    """One stream table of a case."""

    def __init__(
        self, database: Database, engine: Trickle, name: str, view: View, case: Case, outcome: Outcome
    ) -> None:
        self.database = database
        self.engine = engine
        self.name = name
        self.view = view
        self.case = case
        self.outcome = outcome

    def create(self) -> bool:
        """Make it; False if it is of no use."""
        try:
            expected = self._expected()
        except PySparkException as error:
            self.outcome.unusable.append(error.getCondition() or str(error)[:80])
            return False
        if len(expected[0]) > RESULT_ROWS:
            self.outcome.unusable.append("too many rows")
            return False
        try:
            self.engine.create(self.name, self.view.sql, mode="differential")
        except NotDifferentiableError as error:
            self.outcome.refused.append(error.code)
            return error.code not in REFUSALS and self._fail(0, f"refused {error.code}", str(error))
        except Exception as error:
            return self._fail(0, f"create: {_code(error)}", _text(error))
        self.outcome.created += 1
        return self._compare(0, expected[0])

    def refresh(self, number: int, *, verify: bool) -> bool:
        """Refresh it and compare; False if something is wrong."""
        try:
            expected, plain_seconds = self._expected()
        except PySparkException as error:
            self.outcome.unusable.append(error.getCondition() or str(error)[:80])
            return False
        began = time.perf_counter()
        try:
            report = self.engine.refresh(self.name)
        except Exception as error:
            return self._fail(number + 1, f"refresh: {_code(error)}", _text(error))
        seconds = time.perf_counter() - began
        if report.mode == "full":
            return self._fail(number + 1, f"full: {report.reason and report.reason.code}", str(report.reason))
        if not self._compare(number + 1, expected):
            return False
        changed = bool(report.rows_inserted or report.rows_deleted)
        self.outcome.refreshes.append(Refreshed(self.view, report.mode, changed, seconds, plain_seconds))
        return not verify or self._verify(number + 1)

    def _verify(self, rounds: int) -> bool:
        self.outcome.verified += 1
        try:
            report = self.engine.verify(self.name)
        except Exception as error:
            return self._fail(rounds, f"verify: {_code(error)}", _text(error))
        return report.ok or self._fail(rounds, "verify disagrees", str(report))

    def _expected(self) -> tuple[list[tuple[Any, ...]], float]:
        began = time.perf_counter()
        rows = self.database.plain_rows(self.view.sql)
        return rows, time.perf_counter() - began

    def _compare(self, rounds: int, expected: list[tuple[Any, ...]]) -> bool:
        extra, missing = differences(self.database.rows(self.name), expected)
        if not extra and not missing:
            return True
        when = f"after round {rounds}" if rounds else "at creation"
        return self._fail(rounds, "rows differ", f"{when}: too many {extra[:5]}, missing {missing[:5]}")

    def _fail(self, rounds: int, kind: str, text: str) -> bool:
        if why := known(kind, f"{text}\n{self.view.sql}"):
            self.outcome.known.append(why)
            return False
        case = replace(self.case, views=(self.view,), rounds=self.case.rounds[:rounds])
        self.outcome.failures.append(Failure(case, kind, text))
        return False


def _quick(spark: SparkSession) -> SparkSession:
    for key, value in QUICK.items():
        spark.conf.set(key, value)
    return spark


def _rows(table: Any) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _code(error: Exception) -> str:
    if isinstance(error, TrickleError):
        return error.code
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or type(error).__name__


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:1500]}"


Check = Callable[[Case], Failure | None]


def check(bench: Bench, case: Case) -> Failure | None:
    """Run a case of one view; give its failure, if there is one."""
    return next(iter(bench.run(case, verify_every=len(case.rounds) or 1).failures), None)
