"""Reads the clauses of a stream table: when and how it is refreshed, and what its table is like. Any order, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from trickle.errors import DefinitionError
from trickle.model.schedule import Cron, Downstream, Every, OnCommit, Schedule, read_duration, read_schedule
from trickle.sql.quartz import read_quartz
from trickle.sql.statements import Clauses, Policy
from trickle.sql.tokens import Token, fail

if TYPE_CHECKING:
    from trickle.sql.reader import Reader

_UNITS: Final[Mapping[str, str]] = {
    name + plural: unit
    for name, unit in (
        *(("MILLISECOND", "ms"), ("SECOND", "s"), ("MINUTE", "m"), ("HOUR", "h"), ("DAY", "d"), ("WEEK", "w")),
    )
    for plural in ("", "S")
}
_POLICIES: Final = ("AUTO", "INCREMENTAL", "FULL")


def read_clauses(reader: Reader, names: tuple[str, ...], ends: tuple[str, ...]) -> Clauses:
    """Read clauses up to one of the words that end them, or the end of the text.

    Raises:
        SqlSyntaxError: ``SQL_SYNTAX``: a clause is unknown, occurs twice, or says what another one has said.
    """
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    first = reader.peek()
    while not any(reader.sees(end) for end in ends):
        token = reader.peek()
        if token.kind == "end" or token.is_mark(";"):
            break
        name = next((name for name in names if reader.sees(*name.split())), None)
        if name is None:
            words = [*names, *ends]
            reader.fail(" or ".join(filter(None, ["a clause", *ends])), words=[w.split()[0] for w in words])
        clause = CLAUSES[name]
        if (earlier := said.get(clause.field)) is not None:
            what = f"{name} occurs twice." if earlier == name else f"{name} says again what {earlier} says."
            fail(reader.text, token, what, "Give one of them.")
        said[clause.field] = name
        reader.take(*name.split())
        value = clause.read(reader)
        if value is not None:
            found[clause.field] = value
    if found.get("partitioned_by") and found.get("cluster_by"):
        fail(reader.text, first, "a table is either partitioned or clustered, not both.", "Give one of them.")
    return Clauses(**found)


def _schedule(reader: Reader) -> Schedule:
    reader.take("REFRESH")
    if reader.take("EVERY"):
        return Every(read_interval(reader))
    if not reader.take("CRON"):
        reader.fail("EVERY or CRON", words=("EVERY", "CRON"))
    first = reader.peek()
    fields, zone = reader.string("a cron"), "UTC"
    if reader.take("AT", "TIME", "ZONE"):
        zone = reader.string("a time zone")
    return _cron(reader, first, fields, zone)


def _cron(reader: Reader, at: Token, fields: str, zone: str) -> Cron:
    try:
        schedule = read_schedule(f"{read_quartz(fields)} {zone}")
    except DefinitionError as error:
        fail(reader.text, at, error.message, error.hint)
    except ValueError as error:
        hint = "Give five fields: minute, hour, day of the month, month, day of the week; or Quartz's six."
        fail(reader.text, at, f"{fields!r} is not a cron expression: {error}.", hint)
    if not isinstance(schedule, Cron):
        fail(
            reader.text,
            at,
            f"{fields!r} is not a cron expression.",
            "Give five fields: minute, hour, day, month, day of the week.",
        )
    return schedule


def read_interval(reader: Reader) -> float:
    """Read ``5 MINUTES``, ``INTERVAL 1 HOUR 30 MINUTES``, ``'5 minutes'`` or ``INTERVAL '5' MINUTES`` as seconds."""
    reader.take("INTERVAL")
    first = reader.peek()
    if first.kind == "string":
        reader.next()
        if first.text.isdecimal() and reader.peek().text.upper() in _UNITS:
            return _seconds(reader, first, first.text + _UNITS[reader.next().text.upper()])
        return read_words(reader, first)
    text = ""
    while not text or reader.peek().text.isdecimal():
        number = reader.number("a whole number and a unit, as in 5 MINUTES")
        unit = reader.next()
        if unit.kind != "word" or unit.text.upper() not in _UNITS:
            reader.fail("a unit: SECONDS, MINUTES, HOURS, DAYS or WEEKS", words=tuple(_UNITS), at=unit)
        text += f"{number}{_UNITS[unit.text.upper()]} "
    return _seconds(reader, first, text)


def read_words(reader: Reader, token: Token) -> float:
    """Read a duration in a string: ``'1 hour 30 minutes'`` or ``'90s'``."""
    words = [_UNITS.get(word.upper(), word) for word in token.text.split()]
    return _seconds(reader, token, " ".join(words))


def _seconds(reader: Reader, at: Token, text: str) -> float:
    try:
        return read_duration(text)
    except DefinitionError as error:
        hint = "For instance 30 seconds, 5 minutes, 1 hour 30 minutes."
        fail(reader.text, at, error.message.replace(repr(text), f"'{text.strip()}'"), hint)


def _trigger(reader: Reader) -> Schedule:
    return OnCommit(read_interval(reader) if reader.take("AT", "MOST", "EVERY") else 0.0)


def _target_lag(reader: Reader) -> Schedule:
    reader.take_mark("=")
    if reader.take("DOWNSTREAM"):
        return Downstream()
    token = reader.peek()
    reader.string("a duration, or DOWNSTREAM,")
    return Downstream() if token.text.strip().upper() == "DOWNSTREAM" else Every(read_words(reader, token))


def _policy(reader: Reader) -> Policy:
    reader.take_mark("=")
    word = next((word for word in _POLICIES if reader.take(word)), None)
    if word is None:
        reader.fail("AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL", words=_POLICIES)
    strict = word == "INCREMENTAL" and reader.take("STRICT")
    return cast("Policy", word.lower() + (" strict" if strict else ""))


def _columns(reader: Reader) -> tuple[str, ...]:
    first = reader.peek()
    found = reader.listed(lambda: reader.name_part("the name of a column"))
    names = [name.lower() for name in found]
    if twice := [name for name in found if names.count(name.lower()) > 1]:
        fail(reader.text, first, f"the column {twice[0]!r} stands twice.", "Give each column once.")
    return found


def _cluster(reader: Reader) -> tuple[str, ...]:
    return () if reader.take("NONE") else _columns(reader)


def _properties(reader: Reader) -> tuple[tuple[str, str], ...]:
    first = reader.peek()
    found = reader.listed(lambda: _property(reader))
    keys = [key for key, _ in found]
    if twice := [key for key in keys if keys.count(key) > 1]:
        fail(reader.text, first, f"the property {twice[0]!r} occurs twice.", "Give it once.")
    return found


def _property(reader: Reader) -> tuple[str, str]:
    key = read_key(reader)
    if not reader.take_mark("="):
        reader.fail("= and the value of the property")
    token = reader.next()
    if token.kind == "string":
        return key, token.text
    sign = "-" if token.is_mark("-") else ""
    token = reader.next() if sign else token
    if token.kind != "word" or not (token.text[0].isdecimal() or token.text.lower() in ("true", "false")):
        reader.fail("a string, a number, true or false", at=token)
    value = sign + token.text.lower()
    if token.text.isdecimal() and reader.take_mark("."):
        value += f".{reader.number('the digits after the point')}"
    return key, value


def read_key(reader: Reader) -> str:
    """Read the key of a property: a string, or words with dots."""
    if reader.peek().kind == "string":
        return reader.next().text
    parts = [reader.name_part("the key of a property")]
    while reader.take_mark("."):
        parts.append(reader.name_part("the rest of the key"))
    return ".".join(parts)


def _using(reader: Reader) -> None:
    reader.expect("DELTA")  # the only format that stream tables have


@dataclass(frozen=True, slots=True)
class _Clause:
    field: str
    read: Callable[[Reader], Any]


CLAUSES: Final[Mapping[str, _Clause]] = MappingProxyType(
    {
        "SCHEDULE": _Clause("schedule", _schedule),
        "TRIGGER ON UPDATE": _Clause("schedule", _trigger),
        "TARGET_LAG": _Clause("schedule", _target_lag),
        "REFRESH POLICY": _Clause("policy", _policy),
        "REFRESH_MODE": _Clause("policy", _policy),
        "PARTITIONED BY": _Clause("partitioned_by", _columns),
        "CLUSTER BY": _Clause("cluster_by", _cluster),
        "COMMENT": _Clause("comment", lambda reader: reader.string("the comment")),
        "TBLPROPERTIES": _Clause("properties", _properties),
        "LOCATION": _Clause("location", lambda reader: reader.string("the location")),
        "USING": _Clause("using", _using),
    }
)
IN_CREATE: Final = tuple(CLAUSES)
IN_ALTER: Final = tuple(name for name in CLAUSES if name not in ("LOCATION", "USING"))
