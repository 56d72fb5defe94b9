"""Runs cases: stream tables over a random database, compared with plain Spark after each round of changes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from trickle.errors import NotDifferentiableError, TrickleError
from trickle.testing.fuzz.case import Case, Failure, Outcome, Refreshed, View
from trickle.testing.fuzz.choose import RESULT_ROWS
from trickle.testing.fuzz.compare import differences
from trickle.testing.fuzz.database import Database, Plain
from trickle.testing.fuzz.known import known
from trickle.testing.fuzz.regimes import under
from trickle.testing.jvm import INTERPRETED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle import Trickle
    from trickle.testing.fuzz.tables import Row, Table

#: Why a query may be refused; see docs/reference/reasons-and-errors.md. Every LIMIT here has its ORDER BY, but Spark 4.1 drops
#: one that stands below a correlated scalar subquery.
REFUSALS: Final = frozenset({"UNSUPPORTED_SUBQUERY", "NON_LINEAR_RECURSION", "LIMIT_WITHOUT_ORDER"})
#: Compiling takes far longer than ten rows do; two tasks, so that rows are split.
QUICK: Final = {**INTERPRETED, "spark.sql.shuffle.partitions": "2"}

_numbers: Final = count(1)


class Bench:
    """Where cases are run: a session made by ``local_session``, each case in a schema of its own."""

    def __init__(self, spark: SparkSession) -> None:
        """Make two sessions beside a session: one for the engine, one that has nothing of it."""
        self.spark, self.plain = _quick(spark.newSession()), Plain(_quick(spark.newSession()))

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

    def run(self, case: Case, *, verify_every: int = 1) -> Outcome:
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
                verify = (number + 1) % verify_every == 0 or number + 1 == len(case.rounds)
                views = [view for view in views if view.refresh(number, verify=verify)]
                if not views:
                    break
        return outcome


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
        self._answer: tuple[list[Row], float] = ([], 0.0)

    def create(self) -> bool:
        """Make it; False if it is of no use."""
        if not self._ask():
            return False
        try:
            self.engine.create(self.name, self.view.sql, mode="differential")
        except NotDifferentiableError as error:
            self.outcome.refused.append(error.code)
            return error.code not in REFUSALS and self._fail(0, f"refused {error.code}", str(error))
        except Exception as error:
            return self._fail(0, f"create: {_code(error)}", _text(error))
        self.outcome.count_created()
        return self._compare(0)

    def refresh(self, number: int, *, verify: bool) -> bool:
        """Refresh it and compare; False if something is wrong."""
        # While its tables stay as they are, so does the answer.
        if any(self.view.reads(change.table) for change in self.case.rounds[number]) and not self._ask():
            return False
        began = time.perf_counter()
        try:
            report = self.engine.refresh(self.name)
        except Exception as error:
            return self._fail(number + 1, f"refresh: {_code(error)}", _text(error))
        seconds = time.perf_counter() - began
        if report.mode == "full":
            return self._fail(number + 1, f"full: {report.reason and report.reason.code}", str(report.reason))
        if not self._compare(number + 1):
            return False
        changed = bool(report.rows_inserted or report.rows_deleted)
        self.outcome.refreshes.append(Refreshed(self.view, report.mode, changed, seconds, self._answer[1]))
        return not verify or self._verify(number + 1)

    def _verify(self, rounds: int) -> bool:
        self.outcome.count_verified()
        try:
            report = self.engine.verify(self.name)
        except Exception as error:
            return self._fail(rounds, f"verify: {_code(error)}", _text(error))
        return report.ok or self._fail(rounds, "verify disagrees", str(report))

    def _ask(self) -> bool:
        """Have plain Spark answer the query; False if it does not, or at too great a length."""
        began = time.perf_counter()
        try:
            rows = self.database.plain_rows(self.view.sql)
        except PySparkException as error:
            self.outcome.unusable.append(error.getCondition() or str(error)[:80])
            return False
        self._answer = rows, time.perf_counter() - began
        if len(rows) > RESULT_ROWS:
            self.outcome.unusable.append("too many rows")
        return len(rows) <= RESULT_ROWS

    def _compare(self, rounds: int) -> bool:
        extra, missing = differences(self.database.rows(self.name), self._answer[0])
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


def _code(error: Exception) -> str:
    if isinstance(error, TrickleError):
        return error.code
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or type(error).__name__


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:1500]}"


Check = Callable[[Case], Failure | None]


def check(bench: Bench, case: Case) -> Failure | None:
    """Run a case of one view; return its failure, if there is one."""
    return next(iter(bench.run(case, verify_every=len(case.rounds) or 1).failures), None)
