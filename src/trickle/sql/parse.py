"""Reads statements about stream tables. The head is read here, the query after ``AS`` is left to Spark's parser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast

from trickle.errors import SqlSyntaxError
from trickle.sql.clauses import IN_ALTER, IN_CREATE, read_clauses, read_key
from trickle.sql.reader import Reader
from trickle.sql.statements import (
    NO_CLAUSES,
    Column,
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
    Statement,
    SuspendStreamTable,
    UnsetProperties,
)
from trickle.sql.tokens import fail

_ALTERATIONS: Final = ("SUSPEND", "RESUME", "SET", "UNSET", "ADD", "ALTER", "DROP", "RENAME", "AS")
_SCHEDULES: Final = ("SCHEDULE", "TRIGGER ON UPDATE")


def parse(text: str) -> Statement | None:
    """Read one statement; None if it is not about stream tables, and so is Spark's.

    >>> parse("REFRESH STREAM TABLE daily FULL")
    RefreshStreamTable(name='daily', full=True)
    >>> parse("SELECT 1")

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``, with the place.
    """
    read = _find(text)
    if read is None:
        return None
    reader = Reader(text)
    statement = read(reader)
    reader.end()
    return statement


def _find(text: str) -> Callable[[Reader], Statement] | None:
    """Return what reads a statement, by its first words; nothing is wrong yet with those that are not ours."""
    reader = Reader(text)
    try:
        return next((read for words, read in _HEADS if reader.sees(*words)), None)
    except SqlSyntaxError:
        return None


def _take_kind(reader: Reader) -> bool:
    return reader.take("STREAM", "TABLE") or reader.take("MATERIALIZED", "VIEW")


def _kind(reader: Reader) -> None:
    if not _take_kind(reader):
        reader.fail("STREAM TABLE", words=("STREAM", "MATERIALIZED"))


def _create(reader: Reader) -> CreateStreamTable:
    reader.expect("CREATE")
    or_replace = reader.take("OR", "REPLACE") or reader.take("OR", "REFRESH")
    _kind(reader)
    at = reader.peek()
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        fail(reader.text, at, "OR REPLACE and IF NOT EXISTS exclude each other.", "Give one of them.")
    name = reader.name()
    columns = _columns(reader) if reader.peek().is_mark("(") else ()
    clauses = read_clauses(reader, IN_CREATE, ("AS",))
    if not reader.take("AS"):
        reader.fail("AS and a query")
    query, start = reader.rest("a query after AS")
    return CreateStreamTable(name, query, columns, clauses, or_replace, if_not_exists, start)


def _columns(reader: Reader) -> tuple[Column, ...]:
    first = reader.peek()
    columns = reader.listed(lambda: _column(reader))
    names = [column.name.lower() for column in columns]
    if twice := [column.name for column in columns if names.count(column.name.lower()) > 1]:
        fail(reader.text, first, f"the column {twice[0]!r} occurs twice.", "Give each column once.")
    if len({column.type is None for column in columns}) > 1:
        fail(reader.text, first, "some columns have a type and others have none.", "Give all of them a type, or none.")
    return columns


def _column(reader: Reader) -> Column:
    name = reader.name_part("the name of a column")
    of_type = _type(reader)
    comment = reader.string("the comment") if reader.take("COMMENT") else None
    return Column(name, of_type, comment)


def _type(reader: Reader) -> str | None:
    """Read a type as text: what is in its brackets belongs to it."""
    if reader.sees("COMMENT") or reader.peek().kind != "word":
        return None
    start = reader.peek().start
    stop, depth = start, 0
    while depth or not (reader.sees("COMMENT") or reader.peek().is_mark(",") or reader.peek().is_mark(")")):
        if any(reader.sees(word) for word in ("NOT", "DEFAULT", "CONSTRAINT", "PRIMARY", "GENERATED")) and not depth:
            reader.fail("COMMENT, a comma or )")
        token = reader.next()
        if token.kind == "end":
            reader.fail("the end of the type", at=token)
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.text if token.kind == "mark" else "", 0)
        stop = token.stop
    return " ".join(reader.text[start:stop].split())


def _refresh(reader: Reader) -> RefreshStreamTable:
    reader.expect("REFRESH")
    _kind(reader)
    return RefreshStreamTable(reader.name(), reader.take("FULL"))


def _alter(reader: Reader) -> Statement:
    reader.expect("ALTER")
    _kind(reader)
    name = reader.name()
    if reader.take("SUSPEND"):
        return SuspendStreamTable(name)
    if reader.take("RESUME"):
        how = next((word.lower() for word in ("APPLY", "FULL", "SKIP") if reader.take(word)), None)
        return ResumeStreamTable(name, cast("Literal['apply', 'full', 'skip'] | None", how))
    if reader.take("RENAME"):
        reader.expect("TO")
        return RenameStreamTable(name, reader.name("the new name"))
    if reader.take("AS"):
        return ReplaceQuery(name, *reader.rest("a query after AS"))
    if reader.take("DROP"):
        reader.expect("SCHEDULE")
        return DropSchedule(name)
    if reader.take("UNSET"):
        reader.expect("TBLPROPERTIES")
        return UnsetProperties(name, reader.listed(lambda: read_key(reader)))
    names = IN_ALTER
    if reader.take("ADD") or reader.take("ALTER"):
        names = _SCHEDULES
    elif not reader.take("SET"):
        reader.fail("SUSPEND, RESUME, SET, UNSET, DROP SCHEDULE, RENAME TO or AS", words=_ALTERATIONS)
    clauses = read_clauses(reader, names, ())
    if clauses == NO_CLAUSES:
        reader.fail("a clause")
    return SetClauses(name, clauses)


def _drop(reader: Reader) -> DropStreamTable:
    reader.expect("DROP")
    _kind(reader)
    if_exists = reader.take("IF", "EXISTS")
    return DropStreamTable(reader.name(), if_exists, reader.take("CASCADE"))


def _show_tables(reader: Reader) -> ShowStreamTables:
    reader.expect("SHOW")
    if not reader.take("STREAM", "TABLES"):
        reader.expect("MATERIALIZED", "VIEWS")
    schema = reader.name("the name of a schema") if reader.take("IN") or reader.take("FROM") else None
    pattern = None
    if reader.take("LIKE") or reader.peek().kind == "string":
        pattern = reader.string("a pattern")
    return ShowStreamTables(schema, pattern)


def _show_history(reader: Reader) -> ShowRefreshHistory:
    reader.expect("SHOW", "REFRESH", "HISTORY")
    name = reader.name() if reader.take("FOR") else None
    limit = None
    if reader.take("LIMIT"):
        at = reader.peek()
        limit = reader.number("a number of refreshes")
        if limit == 0:
            reader.fail("at least one refresh", at=at)
    return ShowRefreshHistory(name, limit)


def _describe(reader: Reader) -> DescribeStreamTable:
    if not reader.take("DESC"):
        reader.expect("DESCRIBE")
    extended = reader.take("EXTENDED")
    _kind(reader)
    return DescribeStreamTable(reader.name(), extended)


def _explain(reader: Reader) -> Statement:
    reader.expect("EXPLAIN")
    if reader.sees("CREATE"):
        return ExplainCreate(_create(reader))
    _kind(reader)
    return ExplainStreamTable(reader.name())


_KINDS: Final = (("STREAM", "TABLE"), ("MATERIALIZED", "VIEW"))
_CREATE_HEADS: Final = (("CREATE",), ("CREATE", "OR", "REPLACE"), ("CREATE", "OR", "REFRESH"))
_HEADS: Final[tuple[tuple[tuple[str, ...], Callable[[Reader], Statement]], ...]] = (
    *(((*head, *kind), _create) for head in _CREATE_HEADS for kind in _KINDS),
    *((("REFRESH", *kind), _refresh) for kind in _KINDS),
    *((("ALTER", *kind), _alter) for kind in _KINDS),
    *((("DROP", *kind), _drop) for kind in _KINDS),
    (("SHOW", "STREAM", "TABLES"), _show_tables),
    (("SHOW", "MATERIALIZED", "VIEWS"), _show_tables),
    (("SHOW", "REFRESH", "HISTORY"), _show_history),
    *(
        ((verb, *extra, *kind), _describe)
        for verb in ("DESCRIBE", "DESC")
        for extra in ((), ("EXTENDED",))
        for kind in _KINDS
    ),
    *((("EXPLAIN", *head, *kind), _explain) for head in _CREATE_HEADS for kind in _KINDS),
    *((("EXPLAIN", *kind), _explain) for kind in _KINDS),
)
