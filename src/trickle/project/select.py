"""Selects tables of a graph: ``daily``, ``+daily`` with what it reads, ``daily+`` with its readers, ``shop.*``, ``tag:x``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from trickle.errors import DefinitionError
from trickle.model.graph import Graph
from trickle.model.names import short_name

_TAG: Final = "tag:"


def select(
    patterns: Sequence[str], reads: Mapping[str, Sequence[str]], tags: Mapping[str, Collection[str]]
) -> tuple[str, ...]:
    """Return the stream tables that fit one of some patterns, in the order of their names.

    Args:
        patterns: Each a name, with ``*`` for any letters, or ``tag:NAME``; ``+`` before it takes in what it reads, ``+``
            after it what reads it.
        reads: By stream table, the stream tables that it reads.
        tags: By stream table, its tags.

    >>> select(["+weekly"], {"s.daily": [], "s.weekly": ["s.daily"]}, {})
    ('s.daily', 's.weekly')

    Raises:
        DefinitionError: ``NOTHING_SELECTED``.
    """
    graph = Graph({name: tuple(source for source in sources if source in reads) for name, sources in reads.items()})
    found: set[str] = set()
    for pattern in patterns:
        core = pattern.removeprefix("+").removesuffix("+").lower()
        named = {name for name in reads if _fits(core, name, tags.get(name, ()))}
        if not named:
            names = ", ".join(sorted(reads)) or "none"
            hint = f"There are {names}."
            raise DefinitionError("NOTHING_SELECTED", f"{pattern!r} selects no stream table.", hint=hint)
        found |= named
        found |= graph.upstream(named) if pattern.startswith("+") else frozenset()
        found |= graph.downstream(named) if pattern.endswith("+") else frozenset()
    return tuple(sorted(found))


def _fits(core: str, name: str, tags: Collection[str]) -> bool:
    if core.startswith(_TAG):
        return any(fnmatchcase(tag.lower(), core.removeprefix(_TAG)) for tag in tags)
    return fnmatchcase(name.lower(), core) or fnmatchcase(short_name(name).lower(), core)
