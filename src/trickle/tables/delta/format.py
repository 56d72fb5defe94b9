"""Delta Lake as a table format: its sources, targets and state tables, all made for one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trickle.errors import SourceError
from trickle.model.definition import DEFINITION_PROPERTY, TABLE_PROPERTY
from trickle.model.options import DEFAULT, Options
from trickle.tables.contract import Located, Marks
from trickle.tables.delta.create import make_target, set_property
from trickle.tables.delta.keys import store_keys
from trickle.tables.delta.leaf import locate_leaf, location_of
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.state_tables import DeltaStateTables
from trickle.tables.delta.table import DeltaTable, open_table
from trickle.tables.delta.target import DeltaTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from trickle.model.keys import TableKeys
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.delta.log import DeltaLogFiles


class DeltaFormat:
    """The Delta tables of a session."""

    def __init__(self, spark: SparkSession, options: Options = DEFAULT, columns: ColumnCache | None = None) -> None:
        """Bind to a session; columns that are read again and again are cached in ``columns``."""
        self.spark = spark
        self.options = options
        self.columns = columns
        self._driver_io = options.has("driver_io")
        self._marked: dict[str, DeltaTable] = {}

    def locate_leaf(self, leaf: Any) -> Located | None:
        """Return the place of the table that a leaf of a plan reads, None if it is not a Delta table."""
        return locate_leaf(leaf)

    def location_of(self, name: str) -> str:
        """Return the place of a table by its name."""
        return location_of(self.spark, name)

    def source(self, name: str, location: str) -> DeltaSource:
        """Return the table at a place to be read."""
        return DeltaSource(
            self.spark, name, location, driver_io=self._driver_io, columns=self.columns, options=self.options
        )

    def target(self, name: str, location: str) -> DeltaTarget:
        """Return the table at a place to be written."""
        return DeltaTarget(self.spark, name, location, driver_io=self._driver_io, options=self.options)

    def state_tables(self, name: str, location: str) -> DeltaStateTables:
        """Return the state tables of the stream table at a place."""
        return DeltaStateTables(self.spark, name, location, driver_io=self._driver_io, options=self.options)

    def create(
        self,
        name: str,
        like: DataFrame,
        fill: Callable[[DeltaTarget], object],
        properties: Mapping[str, str],
        bind: str,
    ) -> DeltaTarget:
        """Make a table and let ``fill`` write to it, or leave nothing behind."""
        return make_target(
            self.spark, name, like, fill, properties, driver_io=self._driver_io, options=self.options, bind=bind
        )

    def marks(self, location: str) -> Marks | None:
        """Determine from a table's log what makes it a stream table."""
        log = self._log(location)
        try:
            head = log.head()
        except SourceError as error:
            if error.code == "SOURCE_MISSING":
                return None
            raise
        metadata = log.metadata(head)
        properties = metadata.get("configuration") or {}
        found = properties.get(DEFINITION_PROPERTY)
        return None if found is None else Marks(str(found), properties.get(TABLE_PROPERTY) != metadata.get("id"))

    def bind(self, name: str, location: str) -> None:
        """Make the definition that a table carries its own."""
        log = self._log(location)
        set_property(self.spark, name, TABLE_PROPERTY, str(log.metadata(log.head())["id"]))

    def store_keys(self, table: str, keys: TableKeys) -> None:
        """Write the keys that were declared of a table into its properties."""
        store_keys(self.spark, table, keys)

    def _log(self, location: str) -> DeltaLogFiles:
        known = self._marked.get(location)
        if known is None:
            known = self._marked.setdefault(location, open_table(self.spark, location, self.options))
        return known.log
