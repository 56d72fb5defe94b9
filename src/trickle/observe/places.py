"""Where tables lie: in a warehouse folder, or as the catalog of a Spark session has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from trickle.errors import DefinitionError, SourceError
from trickle.layout import DEFAULT, is_remote, read_layout
from trickle.model.names import shown_part, split_name
from trickle.tables.formats import path_in
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from trickle.model.definition import Definition
    from trickle.tables.catalog import Catalog

SESSION_CATALOG: Final = "spark_catalog"
_WITH_CATALOG: Final = 3


class Places(Protocol):
    """The tables that there are."""

    def tables(self) -> Iterator[tuple[str, str]]:
        """Return name and location of each table that may be a stream table."""
        ...

    def qualify(self, name: str) -> str:
        """Return a name with its schema.

        Raises:
            DefinitionError: ``BAD_NAME``.
        """
        ...

    def location(self, name: str) -> str | None:
        """Return where a table lies by its qualified name, None if there is none."""
        ...


def find_source(places: Places, source: str, definition: Definition) -> str | None:
    """Return where a source lies that a definition calls so, None if it is not there."""
    by_path = path_in(source)
    if by_path is not None:
        return by_path[1]
    try:
        parts = split_name(source)
        full = (*(definition.catalog, definition.schema_name)[: _WITH_CATALOG - len(parts)], *parts)
        return places.location(places.qualify(".".join(map(shown_part, full))))
    except Exception:  # of whatever catalog: a name that cannot be looked up is not there
        return None


def place_of(location: str) -> str:
    """Write a location in one way: Spark gives local ones as paths or with a scheme."""
    folder = folder_at(location)
    return location.rstrip("/") if folder is None else folder.address


@dataclass(frozen=True, slots=True)
class ListedPlaces:
    """Tables by their qualified names, with their locations.

    Attributes:
        schema: That of names without one.
    """

    known: Mapping[str, str]
    schema: str = DEFAULT

    def tables(self) -> Iterator[tuple[str, str]]:
        """Return name and location of each table."""
        yield from self.known.items()

    def qualify(self, name: str) -> str:
        """Return a name with its schema; the catalog of a folder is Spark's own."""
        parts = split_name(name)
        if len(parts) == _WITH_CATALOG and parts[0] != SESSION_CATALOG:
            raise DefinitionError("BAD_NAME", f"a warehouse folder has no catalog {parts[0]!r}.", hint="Leave it out.")
        return _shown(parts[-2] if len(parts) > 1 else self.schema, parts[-1])

    def location(self, name: str) -> str | None:
        """Return where a table lies."""
        return self.known.get(name)


def warehouse_places(warehouse: str, schema: str = DEFAULT) -> ListedPlaces:
    """Return the tables of a warehouse, by its path or URI; names without a schema are of the one that is given.

    Raises:
        SourceError: ``NEEDS_SPARK``, only Spark knows its storage.
    """
    if is_remote(warehouse) and folder_at(warehouse) is None:
        hint = "Ask in a Spark session: Trickle(spark).status() and history() do."
        raise SourceError("NEEDS_SPARK", f"The warehouse {warehouse} cannot be listed without Spark.", hint=hint)
    found = read_layout(warehouse).tables
    return ListedPlaces({_shown(of, table): place for (of, table), place in sorted(found.items())}, schema)


@dataclass(frozen=True, slots=True)
class CatalogPlaces:
    """The stream tables of a session's catalog; sources are looked up as they are asked for."""

    catalog: Catalog

    def tables(self) -> Iterator[tuple[str, str]]:
        """Return name and location of each table that may be a stream table."""
        for name, _, _ in self.catalog.definitions():
            location = self.location(name)
            if location is not None:
                yield name, location

    def qualify(self, name: str) -> str:
        """Return a name with its schema, and its catalog if that is not Spark's own."""
        return self.catalog.qualify(split_name(name))

    def location(self, name: str) -> str | None:
        """Return where a table lies."""
        return self.catalog.location(name)


def _shown(schema: str, table: str) -> str:
    return ".".join(shown_part(part.lower()) for part in (schema, table))
