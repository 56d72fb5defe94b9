"""What is known of a table format before there is a session: a package of a format has one of these, and makes it cheaply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.model.options import Options
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.format_contract import TableFormat
    from trickle.tables.logs import OpenLog

    MakeFormat = Callable[[SparkSession, Options, ColumnCache | None], TableFormat]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFacts:
    """A table format. Its libraries are loaded by what is called here, not before.

    Attributes:
        name: What Spark calls it; a query names a table by its path as ``name.`path` ``.
        make: Makes the format for a session.
        open_log: Opens the log of the table at a location, without Spark; reads nothing yet.
        errors: Returns what the libraries raise that read and write it.
        reserved_columns: Names, in lower case, that a result's columns cannot have.
        own_properties: Properties of results that users cannot set.
        keep_longer: What to do so that versions are kept longer.
    """

    name: str
    make: MakeFormat
    open_log: OpenLog
    errors: Callable[[], tuple[type[Exception], ...]]
    reserved_columns: frozenset[str] = frozenset()
    own_properties: frozenset[str] = frozenset()
    keep_longer: str = ""

    def path_in(self, name: str) -> str | None:
        """Return the path in the name of a table, None if it is not a name by path in this format.

        >>> facts = FormatFacts(name="delta", make=None, open_log=None, errors=tuple)
        >>> facts.path_in("delta.`/data/orders`"), facts.path_in("orders")
        ('/data/orders', None)
        """
        prefix = f"{self.name}.`"
        return name.removeprefix(prefix).removesuffix("`") if name.startswith(prefix) else None
