"""Checks for every row that declared keys hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trickle.model.keys import NO_KEYS
from trickle.model.names import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from trickle.model.definition import SourceVersion
    from trickle.tables.contract import SourceTable


def broken_keys(sources: Mapping[str, SourceTable], at: Mapping[str, SourceVersion]) -> Iterator[str]:
    """Name the declared keys of some sources that do not hold at some versions, each with a value that shows it.

    A declaration that was changed since then is not looked at: the next refresh stands on the new one.
    """
    by_id = {at[name].identity: name for name in sources}
    for name, source in sources.items():
        keys = source.keys(at[name].version)
        if keys == NO_KEYS or keys != source.keys(source.head()):
            continue
        read = dict.fromkeys((*keys.primary, *(column for key in keys.foreign for column in key.columns)))
        rows = source.snapshot(at[name].version, tuple(read))
        if keys.primary:
            yield from not_unique(name, rows, keys.primary)
        for key in keys.foreign:
            other = by_id.get(key.table)
            primary = () if other is None else sources[other].keys(at[other].version).primary
            if other is not None and len(primary) == len(key.columns):
                parents = sources[other].snapshot(at[other].version, primary)
                yield from not_there(name, rows, key.columns, other, parents, primary)


def not_unique(name: str, rows: DataFrame, columns: Sequence[str]) -> Iterator[str]:
    """Name a value that several rows have, or none: NULL identifies nothing."""
    quoted = [quote(c) for c in columns]
    is_null = " or ".join(f"{c} is null" for c in quoted)
    found = rows.groupBy(*quoted).count().where(f"`count` > 1 or {is_null}").first()
    if found is not None:
        *values, count = found
        yield f"{_shown(name, columns)} is {_value(values)} in {count} rows"


def not_there(
    name: str, rows: DataFrame, columns: Sequence[str], other: str, parents: DataFrame, primary: Sequence[str]
) -> Iterator[str]:
    """Name a value that refers to no row of the other table."""
    mine = rows.select(*(rows[quote(c)].alias(f"k{n}") for n, c in enumerate(columns))).dropna()
    theirs = parents.select(*(parents[quote(c)].alias(f"k{n}") for n, c in enumerate(primary)))
    found = mine.join(theirs, [f"k{n}" for n in range(len(columns))], "left_anti").first()
    if found is not None:
        yield f"{_shown(name, columns)} has {_value(list(found))}, which {other} does not have"


def _shown(name: str, columns: Sequence[str]) -> str:
    return f"{name}.{columns[0]}" if len(columns) == 1 else f"({', '.join(columns)}) of {name}"


def _value(values: Sequence[object]) -> str:
    return repr(values[0]) if len(values) == 1 else repr(tuple(values))
