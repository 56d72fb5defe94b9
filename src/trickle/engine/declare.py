"""``Trickle.declare``: keys of tables, checked and stored with the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from trickle.errors import DefinitionError
from trickle.model.keys import ForeignKey, TableKeys
from trickle.model.reason import KEY_VIOLATED
from trickle.refresh.audit import not_there, not_unique

if TYPE_CHECKING:
    from trickle.tables.contract import ColumnFact
    from trickle.tables.format_contract import TableFormat

Columns = str | Sequence[str]
References = Mapping[str, str] | Mapping[tuple[str, ...], str] | Mapping[str | tuple[str, ...], str]
"""Tables by the columns that refer to them; a mapping's keys are of one type to a type checker, so it is said thrice."""


def declare_keys(
    tables: TableFormat, table: str, primary_key: Columns, foreign_key: References, *, check: bool
) -> None:
    """Make these the declared keys of a table; see ``Trickle.declare``."""
    given: object = foreign_key
    if not isinstance(given, Mapping):
        text = f"foreign_key is a mapping from columns to a table, not {given!r}."
        raise DefinitionError("BAD_FOREIGN_KEY", text, hint='For instance {"customer_id": "customers"}.')
    source = tables.source(table, tables.location_of(table))
    version = source.head()
    facts = source.columns(version)
    primary = _facts(table, facts, primary_key)
    rows = source.snapshot(version, ())
    broken: list[str] = []
    if primary and check:
        broken += not_unique(table, rows, [f.name for f in primary])
    foreign = []
    for columns, other in foreign_key.items():
        mine = _facts(table, facts, columns)
        parent = tables.source(other, tables.location_of(other))
        newest = parent.head()
        identity = parent.identity(newest)
        is_itself = identity == source.identity(version)
        theirs = primary if is_itself else _facts(other, parent.columns(newest), parent.keys(newest).primary)
        _check_pair(table, mine, other, theirs)
        if check:
            names = [f.name for f in theirs]
            broken += not_there(table, rows, [f.name for f in mine], other, parent.snapshot(newest, ()), names)
        foreign.append(ForeignKey(columns=_identities(mine), table=identity, name=other))
    if broken:
        text = f"the keys do not hold: {'; '.join(broken)}."
        raise DefinitionError(KEY_VIOLATED, text, hint="Correct the data first, or declare what holds.")
    tables.store_keys(table, TableKeys(primary=_identities(primary), foreign=tuple(foreign)))


def _facts(table: str, known: Mapping[str, ColumnFact], columns: Columns) -> list[ColumnFact]:
    """Return columns by the names a user wrote, in any case."""
    by_name = {name.lower(): fact for name, fact in known.items()}
    asked: tuple[object, ...] = (columns,)
    if isinstance(columns, Sequence) and not isinstance(columns, str):
        asked = tuple(columns)
    for name in asked:
        if not isinstance(name, str) or name.lower() not in by_name:
            text = f"{table} has no column {name!r}."
            raise DefinitionError("UNKNOWN_COLUMN", text, hint=f"Its columns are {', '.join(known)}.")
    return [by_name[str(name).lower()] for name in asked]


def _identities(facts: Iterable[ColumnFact]) -> tuple[str, ...]:
    return tuple(f.identity for f in facts)


def _check_pair(table: str, mine: Sequence[ColumnFact], other: str, theirs: Sequence[ColumnFact]) -> None:
    if not theirs:
        hint = f"Declare it first: declare({other!r}, primary_key=…)."
        raise DefinitionError("NO_PRIMARY_KEY", f"{other} has no declared primary key to refer to.", hint=hint)
    if [f.type_json for f in mine] != [f.type_json for f in theirs]:
        of, to = (", ".join(f"{f.name} {f.type_json}" for f in facts) for facts in (mine, theirs))
        text = f"({of}) of {table} cannot refer to the primary key ({to}) of {other}."
        raise DefinitionError(
            "BAD_FOREIGN_KEY", text, hint="Give as many columns, of the same types, in the same order."
        )
