"""What a statement means for the verbs: the query with its column list, and the words of the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from trickle.errors import DefinitionError
from trickle.model.names import quote
from trickle.model.schedule import read_schedule
from trickle.model.spec import Spec
from trickle.sql.parse import parse
from trickle.sql.render import render
from trickle.sql.split import split_script
from trickle.sql.statements import Clauses, CreateStreamTable

if TYPE_CHECKING:
    from trickle.model.definition import Definition, Mode
    from trickle.model.table_options import TableOptionWords
    from trickle.sql.statements import Column, Policy

_OWN: Final = "trickle."
_NUMBERS: Final = {"max_change_rows": int, "suspend_after": int, "max_change_ratio": float}
_POLICIES: Final[Mapping[Mode, Policy | None]] = {"auto": None, "differential": "incremental strict", "full": "full"}
_HINT: Final = "Give CREATE STREAM TABLE statements, or the text of export()."
MAPS: Final = ("tags", "column_comments")
"""Options that a property of a name of its own says a part of: ``trickle.tags.tier``."""

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


def words_of(clauses: Clauses, columns: Sequence[Column] = ()) -> TableOptionWords:
    """Return the options that clauses and a column list name; a property ``trickle.owner`` is the option ``owner``.

    Options that cannot be used are refused by the verb that they are given to.
    """
    comments = {column.name: column.comment for column in columns if column.comment is not None}
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
    if comments:
        words["column_comments"] = {**words.get("column_comments", {}), **comments}
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
        elif key.startswith(_OWN) and name.partition(".")[0] in MAPS and "." in name:
            word, _, item = name.partition(".")
            own.setdefault(word, {})[item] = value
        else:
            rest[key] = value
    return own, rest


def _number(text: str, of_type: type) -> object:
    try:
        return of_type(text)
    except ValueError:
        return text  # the verb says what is wrong with it


def write_script(definitions: Sequence[tuple[str, Definition]]) -> str:
    """Write definitions as statements that ``read_script`` and ``trickle sql`` read.

    Raises:
        DefinitionError: ``BAD_OPTION``, one is defined by a DataFrame.
    """
    return "".join(f"{render(_to_statement(name, definition))}\n;\n\n" for name, definition in definitions)


def read_script(text: str) -> tuple[Spec, ...]:
    """Read a set of definitions from statements.

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``, with the place in the text.
        DefinitionError: ``BAD_DEFINITIONS``, a statement is not one that creates a stream table.
    """
    specs = []
    for part in split_script(text):
        found = parse(part.placed)
        if not isinstance(found, CreateStreamTable):
            what = f"line {part.line}: {' '.join(part.text.split()[:3])!r} creates no stream table."
            raise DefinitionError("BAD_DEFINITIONS", what, hint=_HINT)
        specs.append(to_spec(found))
    if not specs:
        raise DefinitionError("BAD_DEFINITIONS", "a set of definitions cannot be an empty text.", hint=_HINT)
    return tuple(specs)


def _to_statement(name: str, definition: Definition) -> CreateStreamTable:
    """Return the statement that makes a stream table of this definition, in the schema that it was made in."""
    if definition.query is None:
        text = f"stream table '{name}' is defined by a DataFrame, which is not SQL."
        raise DefinitionError("BAD_OPTION", text, hint='Export it as JSON: format="json".')
    options = definition.options
    own = options.model_dump(include={*_TEXTS, *_NUMBERS}, exclude_defaults=True)
    properties = {
        **options.properties,
        **{f"{_OWN}{key}": str(value) for key, value in own.items()},
        **{f"{_OWN}{word}.{key}": value for word in MAPS for key, value in getattr(options, word).items()},
    }
    clauses = Clauses(
        schedule=read_schedule(definition.schedule),
        policy=_POLICIES[definition.mode],
        partitioned_by=options.partition_by or None,
        cluster_by=options.cluster_by or None,
        comment=options.comment,
        properties=tuple(properties.items()) or None,
        location=options.location,
    )
    return CreateStreamTable(name, definition.query, clauses=clauses)


def to_spec(statement: CreateStreamTable) -> Spec:
    """Return the stream table that a statement describes, as ``apply`` takes it."""
    clauses = statement.clauses
    schedule = None if clauses.schedule is None else str(clauses.schedule)
    words = words_of(clauses, statement.columns)
    return Spec(statement.name, query_of(statement).text, clauses.mode or "auto", schedule, words)
