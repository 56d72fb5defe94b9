"""Runs one case: after every round the maintained table must equal a recompute.

The recompute is plain Spark, in a session of its own whose tables hold the same rows, so it shares nothing with the
engine. Where plain Spark leaves the answer open (``fixed_order``), the engine's own full result is taken instead.

Everything the corpus asks of the engine goes through ``Maintained``. ``maintain`` makes one over tables in memory,
``maintain_on_delta`` several over the same Delta tables, each under a regime, through the public face alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from trickle import Trickle
from trickle.errors import StateError, TrickleError
from trickle.layout import WAREHOUSE_CONF
from trickle.model.options import DEFAULT, Options
from trickle.model.reason import DEFINITION_CHANGED
from trickle.tables.arrow.local import arrow_table, as_schema, local_frame
from trickle.tables.arrow.spark import arrow_frame
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.testing.lab import Lab

from .rounds import Change, Round, apply, generate, in_pairs, initial_state
from .tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.testing.s3 import S3Server

    from .case import Case
    from .tables import Row


class Sources(Protocol):
    """The tables of a case."""

    is_stored: bool  # stored tables, so views are stored too, and a changed one is noticed

    def commit(self, table: str, change: Change) -> None:
        """Change a table by one commit."""
        ...


class Maintained(Protocol):
    """A stream table of a case's query over its tables."""

    is_constant: bool  # Spark proves that the query reads no table

    def refresh(self) -> str:
        """Refresh, and give the mode it was done in."""
        ...

    def rows(self) -> list[Row]:
        """Return the maintained rows."""
        ...

    def full_rows(self) -> list[Row]:
        """Return what the engine computes anew from the sources of the last refresh."""
        ...


# -- the engine

_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS {table} ({ddl}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
)


Regimes = Mapping[str, Options]
_DEFAULT: Final[Regimes] = {"default": DEFAULT}


def maintain(spark: SparkSession, case: Case, regimes: Regimes) -> tuple[Sources, dict[str, Maintained]]:
    """Make the stream table of a case over tables in memory."""
    ((name, options),) = regimes.items()
    made = _InMemory(spark, case, options)
    return made, {name: made}


def maintain_on_delta(spark: SparkSession, case: Case, regimes: Regimes) -> tuple[Sources, dict[str, Maintained]]:
    """Make stream tables of a case over Delta tables."""
    return _on_delta(_DeltaSources(spark, case, spark.conf.get(WAREHOUSE_CONF) or ""), regimes)


def maintain_on_s3(
    server: S3Server, spark: SparkSession, case: Case, regimes: Regimes
) -> tuple[Sources, dict[str, Maintained]]:
    """Make stream tables of a case over Delta tables on S3; the current schema lies in the bucket ``lake``."""
    folder = f"s3://lake/{spark.catalog.currentDatabase()}"
    return _on_delta(_DeltaSources(spark, case, folder, server.client_options), regimes)


def _on_delta(sources: _DeltaSources, regimes: Regimes) -> tuple[Sources, dict[str, Maintained]]:
    tables = {name: f"corpus_result_{number}" for number, name in enumerate(regimes)}
    return sources, {name: _OnDelta(sources, table, regimes[name]) for name, table in tables.items()}


def refusal(spark: SparkSession, case: Case) -> str | None:
    """Return the code of the first reason why a case's query cannot be maintained; None if it can."""
    for table in case.tables:
        spark.catalog.dropTempView(table)
        spark.sql(_CREATE.format(table=table, ddl=TABLES[table].ddl))
    _set_up(spark, case, is_stored=True)
    try:
        validation = Trickle(spark).validate(_defined(spark, case))
    except TrickleError as error:
        return error.code
    return validation.obstacles[0].code if validation.obstacles else None


def _lab(spark: SparkSession, case: Case, options: Options) -> Lab:
    tables = {name: (TABLES[name].ddl, TABLES[name].rows) for name in case.tables}
    lab = Lab(spark, tables, options=options)
    _set_up(spark, case)
    return lab


class _InMemory:
    is_stored = False

    def __init__(self, spark: SparkSession, case: Case, options: Options) -> None:
        self.lab = _lab(spark, case, options)
        prepared = self.lab.define(_defined(spark, case))
        assert not prepared.obstacles, f"cannot be maintained: {', '.join(map(str, prepared.obstacles))}"
        self.is_constant = not prepared.sources

    def commit(self, table: str, change: Change) -> None:
        self.lab.sources[table].commit(inserts=change.inserts, deletes=change.deletes)

    def refresh(self) -> str:
        return self.lab.refresh().mode

    def rows(self) -> list[Row]:
        assert self.lab.target is not None
        return self.lab.target.rows()

    def full_rows(self) -> list[Row]:
        missing, extra = self.lab.differences()
        has = Counter(bag(self.rows()))
        return list((has + Counter(missing) - Counter(extra)).elements())


class _DeltaSources:
    """Delta tables of the current schema, kept from case to case and written by ``deltalake``, not by Spark.

    Deletes are made by writing the rows that stay.
    """

    is_stored = True

    def __init__(
        self, spark: SparkSession, case: Case, folder: str, storage_options: dict[str, str] | None = None
    ) -> None:
        self.spark, self.case = spark, case
        self.folder, self.storage_options = folder, storage_options
        CHECKPOINTS.finish()
        self.state = initial_state(case.tables)
        for table, rows in self.state.items():
            spark.catalog.dropTempView(table)
            spark.sql(_CREATE.format(table=table, ddl=TABLES[table].ddl))
            self._write(table, rows, mode="overwrite")
        _set_up(spark, case, is_stored=True)

    def commit(self, table: str, change: Change) -> None:
        apply(self.state, {table: change})
        if change.deletes:
            self._write(table, self.state[table], mode="overwrite")
        else:
            self._write(table, change.inserts, mode="append")

    def _write(self, table: str, rows: Sequence[Row], mode: Literal["append", "overwrite"]) -> None:
        found = arrow_table(rows, as_schema(TABLES[table].ddl))
        write_deltalake(f"{self.folder}/{table}", found, mode=mode, storage_options=self.storage_options)


class _OnDelta:
    def __init__(self, sources: _DeltaSources, name: str, options: Options) -> None:
        self.sources, self.spark, self.name = sources, sources.spark, name
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        self.trickle = Trickle(self.spark, options=options)
        made = self.trickle.create(name, _defined(self.spark, sources.case), mode="differential")
        self.is_constant = not made.frontier

    def refresh(self) -> str:
        try:
            return self.trickle.refresh(self.name).mode
        except StateError as error:
            if error.code != DEFINITION_CHANGED:
                raise
            # Mode differential never recomputes unasked.
            return self.trickle.refresh(self.name, full=True).mode

    def rows(self) -> list[Row]:
        # Another reader of Delta than Spark, where it knows all of the table's types; and ten times as fast.
        table = DeltaTable(f"{self.sources.folder}/{self.name}", storage_options=self.sources.storage_options)
        if table.protocol().reader_features:
            return [tuple(row) for row in self.spark.table(self.name).collect()]
        found = table.to_pyarrow_table()
        if not found.num_rows:
            return []
        schema = self.spark.table(self.name).schema
        return [tuple(row) for row in arrow_frame(self.spark, found, schema).collect()]

    def full_rows(self) -> list[Row]:
        report = self.trickle.verify(self.name)
        assert report.ok, report
        return self.rows()


def _defined(spark: SparkSession, case: Case) -> str | DataFrame:
    if case.define is not None:
        return case.define(spark)
    return spark.sql(case.query, args=dict(case.args)) if case.args else case.query


def _set_up(spark: SparkSession, case: Case, *, is_stored: bool = False) -> None:
    if case.register is not None:
        case.register(spark)
    for statement in case.setup:
        spark.sql(_stored(statement) if is_stored else statement)


def _stored(statement: str) -> str:
    """Make a view that other sessions see; views over temporary tables must be temporary themselves."""
    return statement.replace("CREATE OR REPLACE TEMPORARY VIEW", "CREATE OR REPLACE VIEW")


# -- the recompute


def frame_of(spark: SparkSession, table: str, rows: Sequence[Row]) -> DataFrame:
    """Return rows of a fixture table as a DataFrame."""
    return local_frame(spark, rows, StructType.fromDDL(TABLES[table].ddl))


class Recompute:
    """A case's query on plain Spark. What one form of a case was compared with is kept for its other forms."""

    _known: ClassVar[dict[tuple[str, bool], list[list[Row]]]] = {}

    def __init__(self, spark: SparkSession, case: Case, *, pairs: bool = False) -> None:
        """Start with the case's first rows."""
        self._parent = spark
        self.case = case
        self.state = initial_state(case.tables)
        self._stale = set(case.tables)
        # Statements change more than the rows.
        changes_only = not any(round_.statements for round_ in case.rounds or ())
        self._answers = self._known.setdefault((case.title, pairs), []) if changes_only else []
        self._asked = 0

    @cached_property
    def spark(self) -> SparkSession:
        """A session that sees none of the engine's tables and views."""
        session = self._parent.newSession()
        self._show(session, self.case.tables)
        _set_up(session, self.case)
        return session

    def commit(self, table: str, change: Change) -> None:
        """Change a table."""
        apply(self.state, {table: change})
        self._stale.add(table)

    def rows(self) -> list[Row]:
        """Run the query."""
        if self._asked == len(self._answers):
            self._show(self.spark, self._stale)
            self._stale.clear()
            defined = _defined(self.spark, self.case)
            frame = self.spark.sql(defined) if isinstance(defined, str) else defined
            self._answers.append([tuple(row) for row in frame.collect()])
        self._asked += 1
        return self._answers[self._asked - 1]

    def _show(self, session: SparkSession, tables: Iterable[str]) -> None:
        for table in tables:
            frame_of(session, table, self.state[table]).createOrReplaceTempView(table)


# -- running


def run_case(
    spark: SparkSession,
    case: Case,
    regimes: Regimes = _DEFAULT,
    *,
    make: Callable[[SparkSession, Case, Regimes], tuple[Sources, dict[str, Maintained]]] = maintain,
    pairs: bool = False,
) -> None:
    """Run all rounds of a case, or two at a time, comparing after each."""
    sources, maintained = make(spark, case, regimes)
    plain = Recompute(spark, case, pairs=pairs)
    _compare(maintained, plain, case, "the first rows")
    rounds = case.rounds if case.rounds is not None else generate(case.tables)
    for round_ in in_pairs(rounds) if pairs else rounds:
        if round_.statements and not sources.is_stored:
            return
        _change(sources, plain, round_, spark)
        _refresh(maintained, round_)
        if round_.fails is None:
            _compare(maintained, plain, case, f"round {round_.title!r}")


def _change(sources: Sources, plain: Recompute, round_: Round, spark: SparkSession) -> None:
    for commit in round_.commits:
        for table, change in commit.items():
            sources.commit(table, change)
            plain.commit(table, change)
    for statement in round_.statements:
        spark.sql(_stored(statement))
        plain.spark.sql(statement)


def _refresh(maintained: Mapping[str, Maintained], round_: Round) -> None:
    for name, table in maintained.items():
        where = f"round {round_.title!r} under {name!r}"
        if round_.fails is not None:
            _expect_failure(table, round_.fails, where)
            continue
        try:
            mode = table.refresh()
        except Exception as error:
            error.add_note(where)
            raise
        # A query that Spark proves to be constant reads no source, so there is never anything new.
        expected = "no_data" if table.is_constant else round_.mode
        assert mode == expected, f"{where}: the refresh was {mode}"


def _compare(maintained: Mapping[str, Maintained], plain: Recompute, case: Case, where: str) -> None:
    answer = None if case.fixed_order else plain.rows()
    for name, table in maintained.items():
        expected = table.full_rows() if answer is None else answer
        wrong = differences(table.rows(), expected, approximate=case.approximate)
        if wrong is not None:
            too_many, missing = wrong
            message = f"{where} under {name!r}: too many {dict(too_many)}, missing {dict(missing)}"
            raise AssertionError(message)


def _expect_failure(maintained: Maintained, code: str, where: str) -> None:
    before = bag(maintained.rows())
    try:
        maintained.refresh()
    except (TrickleError, PySparkException) as error:
        found = error.code if isinstance(error, TrickleError) else error.getCondition()
        assert found == code, f"{where}: failed with {found}"
    else:
        message = f"{where}: the refresh should fail with {code}"
        raise AssertionError(message)
    assert bag(maintained.rows()) == before, f"{where}: the table changed though the refresh failed"


# -- comparing


def bag(rows: Iterable[Sequence[Any]], *, digits: int | None = None) -> Counter[tuple[Any, ...]]:
    """Count rows by value, in a form where NaN equals itself, and lists and maps can be counted."""
    return Counter(tuple(_comparable(value, digits) for value in row) for row in rows)


def differences(
    found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]], *, approximate: bool
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]] | None:
    """Return the rows that are too many and those that are missing, as bags; None if there are neither."""
    digits = 9 if approximate else None
    has, wants = bag(found, digits=digits), bag(expected, digits=digits)
    too_many, missing = has - wants, wants - has
    return (too_many, missing) if too_many or missing else None


def _comparable(value: Any, digits: int | None) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if digits is not None and math.isfinite(value):
            # A sum of doubles that should be nothing may be a little more.
            return float(f"{value:.{digits}g}") if abs(value) > 1e-9 else 0.0
        case list() | tuple():
            return tuple(_comparable(part, digits) for part in value)
        case dict():
            return frozenset((_comparable(k, digits), _comparable(v, digits)) for k, v in value.items())
        case bytearray():
            return bytes(value)
        case _:
            return value
