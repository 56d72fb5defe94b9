"""The stream tables of a catalog as a graph: who reads whom, and which base tables they stand on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trickle.errors import SourceError, TrickleError
from trickle.model.graph import Graph
from trickle.model.names import short_name

if TYPE_CHECKING:
    from trickle.engine.open_tables import FoundTable, OpenTable
    from trickle.tables.contract import SourceTable


@dataclass(frozen=True, slots=True)
class Member:
    """A stream table in a graph.

    Attributes:
        reads: By the name that its definition uses for a source, the name of the stream table or the place of the base table.
    """

    table: OpenTable
    reads: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Members:
    """Stream tables, and the base tables that they read.

    Attributes:
        members: The stream tables by name.
        bases: The base tables by their place.
        broken: The stream tables that cannot be opened, with the error.
        broken_at: Their names by their places: to those that read one it is a base table, which stands still.
    """

    members: Mapping[str, Member]
    bases: Mapping[str, SourceTable]
    broken: Mapping[str, TrickleError] = field(default_factory=dict)
    broken_at: Mapping[str, str] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """Who reads whom."""
        return Graph({name: tuple(dict.fromkeys(m.reads.values())) for name, m in self.members.items()})

    def only(self, names: Collection[str]) -> Members:
        """Return the same without base tables that none of these stream tables reads."""
        read = {node for name in names if name in self.members for node in self.members[name].reads.values()}
        return replace(self, bases={node: source for node, source in self.bases.items() if node in read})

    def show(self, node: str) -> str:
        """Name a stream table, or a base table as the definitions that read it do."""
        return self.bases[node].name if node in self.bases else node

    def find_asked(self, at: Mapping[str, int] | None) -> dict[str, int]:
        """Return the versions of base tables that are asked for by name, by their place.

        Raises:
            SourceError: ``UNKNOWN_SOURCE`` or ``NO_SUCH_VERSION``.
        """
        left = dict(at or {})
        asked: dict[str, int] = {}
        for node, source in self.bases.items():
            wanted = left.pop(source.name, None)
            if wanted is None:
                wanted = left.pop(short_name(source.name), None)
            if wanted is None:
                continue
            head = source.head()
            if not 0 <= wanted <= head:
                text = f"base table '{source.name}' has versions 0 to {head}, not {wanted}."
                raise SourceError("NO_SUCH_VERSION", text, hint="Ask for a version that exists.")
            asked[node] = wanted
        if left:
            known = ", ".join(sorted(source.name for source in self.bases.values())) or "none"
            text = f"{', '.join(map(repr, left))} is not a base table of these stream tables."
            raise SourceError("UNKNOWN_SOURCE", text, hint=f"Their base tables are {known}.")
        return asked

    def pin(self, asked: Mapping[str, int] | None = None) -> dict[str, int]:
        """Choose a version of every base table: the one asked for, else the newest.

        One that cannot be read is left out: the refreshes that need it say what is wrong.
        """
        cut = dict(asked or {})
        for node, source in self.bases.items():
            if node in cut:
                continue
            with suppress(TrickleError, OSError):
                cut[node] = source.head()
        return cut


def build_members(tables: Iterable[OpenTable], broken: Mapping[FoundTable, TrickleError]) -> Members:
    """Find out who reads whom: a source that lies where a stream table lies is that stream table."""
    tables = tuple(tables)
    names = {_place(table.location): table.name for table in tables}
    members: dict[str, Member] = {}
    bases: dict[str, SourceTable] = {}
    for table in tables:
        reads: dict[str, str] = {}
        for name, source in table.prepared.sources.items():
            place = _place(source.path)
            reads[name] = names.get(place, place)
            if place not in names:
                bases.setdefault(place, source)
        members[table.name] = Member(table, reads)
    errors = {found.name: error for found, error in broken.items()}
    return Members(members, bases, errors, {_place(found.location): found.name for found in broken})


def _place(location: str) -> str:
    """Write a place in one way: Spark gives local ones as paths or with a scheme."""
    return location.removeprefix("file://").removeprefix("file:").rstrip("/")
