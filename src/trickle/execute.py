"""Carries out SQL: statements about stream tables by the verbs, all others by Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from trickle.answers import as_frame, describe_table, list_refreshes, list_tables
from trickle.engine.arguments import check_differentiable
from trickle.errors import DefinitionError, UnknownTableError, kind_of
from trickle.sql.meaning import MAPS, QueryText, query_of, split_properties, words_of
from trickle.sql.parse import parse
from trickle.sql.statements import (
    Clauses,
    CreateStreamTable,
    DescribeStreamTable,
    DropSchedule,
    DropStreamTable,
    ExplainCreate,
    ExplainStreamTable,
    RefreshStreamTable,
    RenameStreamTable,
    ReplaceQuery,
    ResumeStreamTable,
    SetClauses,
    ShowRefreshHistory,
    ShowStreamTables,
    SuspendStreamTable,
    UnsetProperties,
)
from trickle.sql.tokens import syntax_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.api import Trickle
    from trickle.handle import StreamTable
    from trickle.model.explanation import Explanation
    from trickle.model.report import RefreshReport
    from trickle.model.suspension import Suspension
    from trickle.model.table_options import TableOptions
    from trickle.sql.statements import Statement

    Answer: TypeAlias = DataFrame | StreamTable | RefreshReport | Suspension | Explanation | None

_Made = TypeVar("_Made")

_PLACE: Final = re.compile(r"[;(]?\s*line (\d+),? pos (\d+)\)?")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+")


def execute(trickle: Trickle, text: object, args: Any = None) -> Answer:
    """Carry out one statement; what is not about stream tables goes to Spark as it is.

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``, or ``BAD_SQL`` with the place in the query.
        TrickleError: What the verb raises.
    """
    if not isinstance(text, str):
        hint = "Give the text of one statement."
        raise DefinitionError("BAD_OPTION", f"a statement is a text, not {kind_of(text)}.", hint=hint)
    statement = parse(text)
    if statement is None:
        spark = trickle.spark
        return spark.sql(text) if args is None else spark.sql(text, args=args)
    return carry_out(trickle, statement, text, args)


def carry_out(trickle: Trickle, statement: Statement, text: str, args: Any = None) -> Answer:
    """Carry out a statement about stream tables; ``text`` is what it was read from, for errors in its query."""
    if args:
        what = "a statement about stream tables takes no parameters."
        raise DefinitionError("BAD_OPTION", what, hint="Its query is stored: write the values into it.")
    answer: Answer = _VERBS[type(statement)](trickle, statement, text)
    return answer


def _create(trickle: Trickle, statement: CreateStreamTable, text: str) -> StreamTable:
    query, clauses = query_of(statement), statement.clauses
    words, schedule = words_of(clauses, statement.columns), None if clauses.schedule is None else str(clauses.schedule)
    mode = clauses.mode or "auto"

    def make() -> StreamTable:
        if statement.if_not_exists and trickle._engine.is_stream_table(statement.name):
            return trickle.table(statement.name)
        if statement.must_be_incremental and mode == "auto":
            check_differentiable(statement.name, "differential", trickle.validate(query.text).obstacles)
        return trickle.create(
            statement.name, query.text, mode=mode, schedule=schedule, replace=statement.or_replace, **words
        )

    return _located(make, text, statement.query_start, query)


def _replace_query(trickle: Trickle, statement: ReplaceQuery, text: str) -> StreamTable:
    query = QueryText(statement.query)
    return _located(lambda: trickle.alter(statement.name, query.text), text, statement.query_start, query)


def _set(trickle: Trickle, statement: SetClauses, _: str) -> StreamTable:
    clauses = statement.clauses
    words: dict[str, Any] = dict(words_of(clauses))
    options = trickle.table(statement.name).options
    # As in Spark, properties that are not named stay.
    if clauses.properties is not None:
        words["properties"] = {**options.properties, **words.get("properties", {})}
        for word in MAPS:
            if word in words:
                words[word] = {**getattr(options, word), **words[word]}
    words |= _other_layout(clauses)
    if clauses.policy == "incremental":
        table = trickle.table(statement.name)
        if table.query is not None:
            check_differentiable(statement.name, "differential", trickle.validate(table.query).obstacles)
    if clauses.schedule is not None:
        words["schedule"] = str(clauses.schedule)
    return trickle.alter(statement.name, mode=clauses.mode, **words)


def _other_layout(clauses: Clauses) -> dict[str, Any]:
    """Return what a new layout takes the place of: a table is either partitioned or clustered."""
    if clauses.partitioned_by:
        return {"cluster_by": ()}
    return {"partition_by": ()} if clauses.cluster_by else {}


def _unset(trickle: Trickle, statement: UnsetProperties, _: str) -> StreamTable:
    options: TableOptions = trickle.table(statement.name).options
    own, others = split_properties(dict.fromkeys(statement.keys, "1"))
    maps = {word: own.pop(word, {}) for word in MAPS} | {"properties": others}
    words: dict[str, Any] = {name: type(options).model_fields[name].get_default() for name in own}
    for word, gone in maps.items():
        words[word] = {key: value for key, value in getattr(options, word).items() if key not in gone}
    return trickle.alter(statement.name, **words)


def _resume(trickle: Trickle, statement: ResumeStreamTable, _: str) -> Answer:
    how = {} if statement.how is None else {statement.how: True}
    return trickle.resume(statement.name, **how) or trickle.table(statement.name)


def _drop(trickle: Trickle, statement: DropStreamTable, _: str) -> None:
    try:
        trickle.drop(statement.name, cascade=statement.cascade)
    except UnknownTableError as error:
        engine = trickle._engine
        # Of a plain table it would look as if it had been dropped.
        if (
            not statement.if_exists
            or error.code != "UNKNOWN_TABLE"
            or engine.catalog.is_there(engine.qualify(statement.name))
        ):
            raise


def _explain_create(trickle: Trickle, statement: ExplainCreate, text: str) -> Explanation:
    create = statement.create
    query, clauses = query_of(create), create.clauses
    words = words_of(clauses, create.columns)

    def explain() -> Explanation:
        return trickle._explain_definition(
            create.name, query.text, clauses.mode or "auto", words, create.must_be_incremental
        )

    return _located(explain, text, create.query_start, query)


_VERBS: Final[dict[type, Callable[[Any, Any, str], Any]]] = {
    CreateStreamTable: _create,
    RefreshStreamTable: lambda t, s, _: t.refresh(s.name, full=s.full),
    SuspendStreamTable: lambda t, s, _: t.suspend(s.name),
    ResumeStreamTable: _resume,
    SetClauses: _set,
    DropSchedule: lambda t, s, _: t.alter(s.name, schedule=None),
    UnsetProperties: _unset,
    ReplaceQuery: _replace_query,
    RenameStreamTable: lambda t, s, _: t.rename(s.name, s.new_name),
    DropStreamTable: _drop,
    ShowStreamTables: lambda t, s, _: list_tables(t, s.schema, s.pattern),
    ShowRefreshHistory: lambda t, s, _: list_refreshes(t, s.name, s.limit),
    DescribeStreamTable: lambda t, s, _: describe_table(t, s.name, extended=s.extended),
    ExplainCreate: _explain_create,
    ExplainStreamTable: lambda t, s, _: t.explain(s.name),
}


def _located(work: Callable[[], _Made], text: str, start: int, query: QueryText) -> _Made:
    """Do something with the query of a statement; Spark's complaint about it is told with its place in the whole text."""
    try:
        return work()
    except DefinitionError as error:
        said = str(error.__cause__ or "").strip()
        found = _PLACE.search(said)
        if error.code != "BAD_SQL" or found is None or "== SQL of " in said:
            raise
        line, column = int(found[1]) - query.lines_before, int(found[2])
        lines = text[start:].split("\n")
        if not 1 <= line <= len(lines):
            raise
        at = start + sum(len(before) + 1 for before in lines[: line - 1]) + min(column, len(lines[line - 1]))
        word = re.compile(r"\w*").match(text, at)
        stop = max(word.end() if word else at, at + 1)
        what = _STATE.sub("", _PLACE.sub("", said.partition("\n")[0])).strip(" ;")
        raise syntax_error(text, at, stop, what, "Correct the query.", code="BAD_SQL") from error


def enable(spark: SparkSession, trickle: Trickle) -> Callable[[], None]:
    """Let ``spark.sql`` of one session object understand statements about stream tables; return what undoes it.

    Python callers of this object are served. Other sessions, Thrift, JDBC and Scala are not. Each answer is a DataFrame.
    """
    before: Any = spark.sql
    plain = vars(spark).get("sql")

    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        statement = parse(sqlQuery) if isinstance(sqlQuery, str) else None
        if statement is None:
            frame: DataFrame = before(sqlQuery, **({} if args is None else {"args": args}), **kwargs)
            return frame
        return as_frame(self, carry_out(trickle, statement, sqlQuery, args or kwargs))

    def undo() -> None:
        if plain is None:
            vars(spark).pop("sql", None)
        else:
            spark.sql = plain  # type: ignore[method-assign]

    spark.sql = MethodType(sql, spark)  # type: ignore[method-assign]
    return undo
