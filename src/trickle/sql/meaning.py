"""What a statement means for the verbs: the query with its column list, and the words of the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from trickle.model.names import quote
from trickle.model.spec import Spec

if TYPE_CHECKING:
    from trickle.model.table_options import TableOptionWords
    from trickle.sql.statements import Clauses, CreateStreamTable

_OWN: Final = "trickle."
_NUMBERS: Final = {"max_change_rows": int, "suspend_after": int, "max_change_ratio": float}
_TEXTS: Final = ("owner", "timeout", "verify_every")


@dataclass(frozen=True, slots=True)
class QueryText:
    """The query of a statement as a stream table stores it.

    Attributes:
        lines_before: How many lines stand before the text that was written.
    """

    text: str
    lines_before: int = 0


def query_of(statement: CreateStreamTable) -> QueryText:
    """Return the query; its columns get the names and types of the column list.

    >>> from trickle.sql.statements import Column, CreateStreamTable
    >>> print(query_of(CreateStreamTable("t", "SELECT 1", (Column("a", "BIGINT"),))).text)
    SELECT CAST(`a` AS BIGINT) AS `a` FROM (
    SELECT 1
    ) AS `t` (`a`)
    """
    columns = statement.columns
    if not columns:
        return QueryText(statement.query)
    names = [quote(column.name) for column in columns]
    shown = [
        name if column.type is None else f"CAST({name} AS {column.type}) AS {name}"
        for name, column in zip(names, columns, strict=True)
    ]
    return QueryText(
        f"SELECT {', '.join(shown)} FROM (\n{statement.query}\n) AS `t` ({', '.join(names)})", lines_before=1
    )


def words_of(clauses: Clauses) -> TableOptionWords:
    """Return the options that clauses name; a property ``trickle.owner`` is the option ``owner``.

    Options that cannot be used are refused by the verb that they are given to.
    """
    words: dict[str, Any] = {
        "partition_by": clauses.partitioned_by,
        "cluster_by": clauses.cluster_by,
        "comment": clauses.comment,
        "location": clauses.location,
    }
    if clauses.properties is not None:
        own, properties = split_properties(dict(clauses.properties))
        words |= own
        words["properties"] = properties or None
    return cast("TableOptionWords", {name: value for name, value in words.items() if value is not None})


def split_properties(properties: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Divide properties into options of Trickle and properties of the table."""
    own: dict[str, Any] = {}
    rest: dict[str, str] = {}
    for key, value in properties.items():
        name = key.removeprefix(_OWN)
        if key.startswith(_OWN) and name in _NUMBERS:
            own[name] = _number(value, _NUMBERS[name])
        elif key.startswith(_OWN) and name in _TEXTS:
            own[name] = value
        elif key.startswith(f"{_OWN}tags."):
            own.setdefault("tags", {})[name.removeprefix("tags.")] = value
        else:
            rest[key] = value
    return own, rest


def _number(text: str, of_type: type) -> object:
    try:
        return of_type(text)
    except ValueError:
        return text  # the verb says what is wrong with it


def to_spec(statement: CreateStreamTable) -> Spec:
    """Return the stream table that a statement describes, as ``apply`` takes it."""
    clauses = statement.clauses
    schedule = None if clauses.schedule is None else str(clauses.schedule)
    return Spec(statement.name, query_of(statement).text, clauses.mode or "auto", schedule, words_of(clauses))
