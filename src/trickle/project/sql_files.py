"""SQL files of a project: one query with a header, or statements that create something."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import DefinitionError, SqlSyntaxError
from trickle.project.config import TableWords
from trickle.project.elements import Dataset, Elements, Flow
from trickle.project.places import Place, bad_project
from trickle.project.yaml_lines import Yaml, read_yaml, validate
from trickle.sql.clauses import IN_CREATE, read_clauses
from trickle.sql.meaning import query_of, words_of
from trickle.sql.parse import parse
from trickle.sql.reader import Reader
from trickle.sql.split import Part, split_script
from trickle.sql.statements import CreateStreamTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trickle.sql.statements import Clauses, Column

HEADER: Final = "trickle"
_HEADER_LINE: Final = re.compile(rf"--\s?({HEADER}\s*:.*)")
_MORE: Final = re.compile(r"--\s?(\s+\S.*|)")
_QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE"})
_HINT: Final = "A file has one query, or CREATE STREAM TABLE … AS statements that end with semicolons."


class _Header(TableWords):
    """What stands in the header of a file with one query.

    Attributes:
        name: The name of the table; that of the file if it is not given.
    """

    name: str | None = None


def read_sql(text: str, file: str, elements: Elements) -> None:
    """Take in what a SQL file defines.

    Raises:
        DefinitionError: ``SQL_SYNTAX``, ``NOT_A_QUERY``, ``UNKNOWN_KEY`` … with the place.
    """
    try:
        parts = split_script(text)
    except SqlSyntaxError as error:
        raise _syntax(file, 1, error) from error
    header = _header(text, file)
    if not parts:
        raise bad_project(Place(file), "there is no SQL in this file.", _HINT, code="NOT_A_QUERY")
    if _is_query(parts[0]):
        _one_query(parts, file, header, elements)
        return
    if header is not None:
        text = "a file with statements has no header."
        raise bad_project(Place(file, header[1]), text, "Say it in the clauses of the statements.")
    conf: dict[str, str] = {}
    for part in parts:
        place = Place(file, part.line)
        try:
            _statement(part, place, elements, conf)
        except SqlSyntaxError as error:
            raise _syntax(file, part.line, error) from error


def _is_query(part: Part) -> bool:
    first = Reader(part.text).peek()
    return first.is_mark("(") or (first.kind == "word" and first.text.upper() in _QUERY_WORDS)


def _syntax(file: str, first_line: int, error: SqlSyntaxError) -> DefinitionError:
    """Say on one line what is wrong, and where in the file."""
    said = error.message.partition("\n")[0].partition(": ")[2] or error.message
    return bad_project(Place(file, first_line + error.line - 1), said, error.hint, code=error.code)


def _header(text: str, file: str) -> tuple[_Header, int] | None:
    """Return the header of a file, and its line."""
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip() and _HEADER_LINE.match(line.strip())), None)
    before = lines[: start or 0]
    if start is None or any(line.strip() and not line.strip().startswith("--") for line in before):
        return None
    found = [_HEADER_LINE.match(lines[start].strip())]
    for line in lines[start + 1 :]:
        more = _MORE.match(line.strip())
        if more is None or not more[1].strip():
            break
        found.append(more)
    words = read_yaml("\n".join(one[1] for one in found if one), file, start + 1)
    inner = {path[1:]: line for path, line in words.lines.items() if path[:1] == (HEADER,)}
    return validate(Yaml(file, words.value.get(HEADER), {(): start + 1, **inner}), _Header), start + 1


def _one_query(parts: tuple[Part, ...], file: str, header: tuple[_Header, int] | None, elements: Elements) -> None:
    if len(parts) > 1:
        text = "a second statement begins here."
        raise bad_project(Place(file, parts[1].line), text, _HINT, code="NOT_A_QUERY")
    said = header[0] if header is not None else _Header()
    words = TableWords.model_construct(said.model_fields_set - {"name"}, **said.model_dump(exclude={"name"}))
    name = said.name or PurePath(file).stem
    elements.add(Dataset(name, "stream table", Place(file, parts[0].line), parts[0].text, words))


def _statement(part: Part, place: Place, elements: Elements, conf: dict[str, str]) -> None:
    reader = Reader(part.text)
    if reader.take("SET"):
        key, _, value = reader.rest("a setting")[0].partition("=")
        conf[key.strip()] = value.strip().strip("'\"")
        return
    found = parse(part.text)
    if isinstance(found, CreateStreamTable):
        query, words = query_of(found), _words(found.clauses, place, found.columns)
        place = replace(place, line=place.line + part.text.count("\n", 0, found.query_start) - query.lines_before)
        must = found.must_be_incremental
        elements.add(
            Dataset(found.name, "stream table", place, query.text, words, dict(conf), must_be_incremental=must)
        )
        return
    if found is None and (_stream(reader, place, elements, conf) or _flow(reader, place, elements, conf)):
        return
    if found is None and _view(reader, place, elements, conf):
        return
    shown = " ".join(part.text.split()[:3])
    raise bad_project(place, f"{shown!r} defines nothing that a project can have.", _HINT, code="NOT_A_DEFINITION")


def _stream(reader: Reader, place: Place, elements: Elements, conf: dict[str, str]) -> bool:
    """Read ``CREATE [OR REFRESH] STREAMING TABLE n [(columns)] [clauses] [AS query]``."""
    if not reader.sees("CREATE", "STREAMING") and not reader.sees("CREATE", "OR", "REFRESH", "STREAMING"):
        return False
    reader.take("CREATE")
    reader.take("OR", "REFRESH")
    reader.take("STREAMING")
    reader.expect("TABLE")
    reader.take("IF", "NOT", "EXISTS")
    name = reader.name("the name of a streaming table")
    schema = _columns(reader)
    clauses = read_clauses(reader, IN_CREATE, ("AS",))
    elements.add(Dataset(name, "streaming table", place, words=_words(clauses, place), schema=schema, conf=dict(conf)))
    if reader.take("AS"):
        elements.add_flow(Flow(name, name, reader.rest("a query after AS")[0], place, dict(conf)))
    else:
        reader.end()
    return True


def _columns(reader: Reader) -> str | None:
    """Read a column list as text."""
    if not reader.peek().is_mark("("):
        return None
    start, depth = reader.peek().stop, 0
    while True:
        token = reader.next()
        depth += {"(": 1, ")": -1}.get(token.text if token.kind == "mark" else "", 0)
        if depth == 0:
            return reader.text[start : token.start].strip()
        if token.kind == "end":
            reader.fail(")", at=token)


def _flow(reader: Reader, place: Place, elements: Elements, conf: dict[str, str]) -> bool:
    """Read ``CREATE FLOW f AS INSERT INTO t BY NAME query``."""
    if not reader.take("CREATE", "FLOW"):
        return False
    name = reader.name("the name of a flow")
    if reader.take("COMMENT"):
        reader.string("the comment")
    reader.expect("AS", "INSERT", "INTO")
    target = reader.name("the name of a streaming table")
    reader.expect("BY", "NAME")
    elements.add_flow(Flow(name, target, reader.rest("a query")[0], place, dict(conf)))
    return True


def _view(reader: Reader, place: Place, elements: Elements, conf: dict[str, str]) -> bool:
    """Read ``CREATE TEMPORARY VIEW n [COMMENT text] AS query``."""
    if not reader.sees("CREATE"):
        return False
    reader.take("CREATE")
    reader.take("OR", "REPLACE")
    if not (reader.take("TEMPORARY", "VIEW") or reader.take("TEMP", "VIEW")):
        return False
    name = reader.name("the name of a view")
    if reader.take("COMMENT"):
        reader.string("the comment")
    reader.expect("AS")
    elements.add(Dataset(name, "view", place, reader.rest("a query after AS")[0], conf=dict(conf)))
    return True


def _words(clauses: Clauses, place: Place, columns: Sequence[Column] = ()) -> TableWords:
    words: dict[str, Any] = dict(words_of(clauses, columns))
    if (location := words.pop("location", None)) is not None:
        hint = "Leave it out: the tables of a project lie where its warehouse or catalog puts them."
        raise bad_project(place, f"LOCATION {location!r} cannot be given in a project.", hint)
    if clauses.schedule is not None:
        words["schedule"] = str(clauses.schedule)
    if clauses.mode is not None:
        words["mode"] = clauses.mode
    return validate(Yaml(place.file, words, {(): place.line}), TableWords)
