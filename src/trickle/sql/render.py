"""Writes statements as SQL that ``parse`` reads back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from trickle.model.names import shown_part
from trickle.model.schedule import Cron, Downstream, Every, OnCommit, write_duration
from trickle.sql.statements import (
    Clauses,
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
from trickle.sql.tokens import quote_string

if TYPE_CHECKING:
    from trickle.model.schedule import Schedule


def render(statement: Statement) -> str:
    """Write a statement.

    >>> print(render(RefreshStreamTable("daily", full=True)))
    REFRESH STREAM TABLE daily FULL
    """
    match statement:
        case CreateStreamTable():
            return _create(statement)
        case RefreshStreamTable(name, full):
            return _words("REFRESH STREAM TABLE", name, "FULL" if full else None)
        case SuspendStreamTable(name):
            return f"ALTER STREAM TABLE {name} SUSPEND"
        case ResumeStreamTable(name, how):
            return _words("ALTER STREAM TABLE", name, "RESUME", how and how.upper())
        case SetClauses(name, clauses):
            return _words("ALTER STREAM TABLE", name, "SET", *_clauses(clauses))
        case DropSchedule(name):
            return f"ALTER STREAM TABLE {name} DROP SCHEDULE"
        case UnsetProperties(name, keys):
            return f"ALTER STREAM TABLE {name} UNSET TBLPROPERTIES ({', '.join(map(quote_string, keys))})"
        case ReplaceQuery(name, query):
            return f"ALTER STREAM TABLE {name} AS\n{query}"
        case RenameStreamTable(name, new_name):
            return f"ALTER STREAM TABLE {name} RENAME TO {new_name}"
        case DropStreamTable(name, if_exists, cascade):
            return _words("DROP STREAM TABLE", "IF EXISTS" if if_exists else None, name, "CASCADE" if cascade else None)
        case ShowStreamTables(schema, pattern):
            like = None if pattern is None else f"LIKE {quote_string(pattern)}"
            return _words("SHOW STREAM TABLES", schema and f"IN {schema}", like)
        case ShowRefreshHistory(name, limit):
            return _words("SHOW REFRESH HISTORY", name and f"FOR {name}", f"LIMIT {limit}" if limit else None)
        case DescribeStreamTable(name, extended):
            return _words("DESCRIBE", "EXTENDED" if extended else None, "STREAM TABLE", name)
        case ExplainCreate(create):
            return f"EXPLAIN {_create(create)}"
        case ExplainStreamTable(name):
            return f"EXPLAIN STREAM TABLE {name}"
        case _:
            assert_never(statement)


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word is not None)


def _create(statement: CreateStreamTable) -> str:
    head = _words(
        "CREATE",
        "OR REPLACE" if statement.or_replace else None,
        "STREAM TABLE",
        "IF NOT EXISTS" if statement.if_not_exists else None,
        statement.name,
        f"({', '.join(map(_column, statement.columns))})" if statement.columns else None,
    )
    return "\n".join([head, *(f"  {clause}" for clause in _clauses(statement.clauses)), f"AS\n{statement.query}"])


def _column(column: Column) -> str:
    comment = None if column.comment is None else f"COMMENT {quote_string(column.comment)}"
    return _words(shown_part(column.name), column.type, comment)


def _clauses(clauses: Clauses) -> Iterator[str]:
    if clauses.schedule is not None:
        yield _schedule(clauses.schedule)
    if clauses.policy is not None:
        yield f"REFRESH POLICY {clauses.policy.upper()}"
    if clauses.partitioned_by is not None:
        yield f"PARTITIONED BY {_names(clauses.partitioned_by)}"
    if clauses.cluster_by is not None:
        yield f"CLUSTER BY {_names(clauses.cluster_by)}" if clauses.cluster_by else "CLUSTER BY NONE"
    if clauses.comment is not None:
        yield f"COMMENT {quote_string(clauses.comment)}"
    if clauses.properties is not None:
        pairs = (f"{quote_string(key)} = {quote_string(value)}" for key, value in clauses.properties)
        yield f"TBLPROPERTIES ({', '.join(pairs)})"
    if clauses.location is not None:
        yield f"LOCATION {quote_string(clauses.location)}"


def _names(names: Sequence[str]) -> str:
    return f"({', '.join(map(shown_part, names))})"


def _schedule(schedule: Schedule) -> str:
    match schedule:
        case Every(seconds):
            return f"SCHEDULE EVERY '{write_duration(seconds)}'"
        case Cron(fields, zone):
            return f"SCHEDULE CRON {quote_string(fields)} AT TIME ZONE {quote_string(zone)}"
        case OnCommit(at_most_every):
            most = f" AT MOST EVERY '{write_duration(at_most_every)}'" if at_most_every else ""
            return f"TRIGGER ON UPDATE{most}"
        case Downstream():
            return "TARGET_LAG = DOWNSTREAM"
        case _:
            assert_never(schedule)
