"""Delta Lake as a table format: its sources, targets and state tables, all made for one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trickle.errors import SourceError
from trickle.model.cache import Cache
from trickle.model.definition import DEFINITION_PROPERTY, TABLE_PROPERTY
from trickle.model.options import DEFAULT, Options
from trickle.model.suspension import SUSPENDED_PROPERTY
from trickle.model.table_options import NO_OPTIONS
from trickle.model.verification import VERIFIED_PROPERTY
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.tables.delta.create import admit_columns, default_place, make_target
from trickle.tables.delta.history import DeltaAppends
from trickle.tables.delta.keys import store_keys
from trickle.tables.delta.leaf import locate_leaf, location_of
from trickle.tables.delta.properties import set_column_comments, set_properties
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.state_tables import DeltaStateTables
from trickle.tables.delta.table import DeltaTable, open_table
from trickle.tables.delta.table_log import DeltaTableLog
from trickle.tables.delta.target import DeltaTarget
from trickle.tables.delta.upkeep import DeltaUpkeep
from trickle.tables.delta.wreck import find_wreck
from trickle.tables.format_contract import LocatedTable, Marks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from trickle.model.keys import TableKeys
    from trickle.model.table_options import TableOptions
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
        self._marked: Cache[str, DeltaTable] = Cache("tables looked at", options.tables_kept)

    def locate_leaf(self, leaf: Any) -> LocatedTable | None:
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
        return DeltaTarget(
            self.spark, name, location, driver_io=self._driver_io, columns=self.columns, options=self.options
        )

    def state_tables(self, name: str, location: str, generation: int = 0) -> DeltaStateTables:
        """Return the state tables of the stream table at a place, those of one of its queries."""
        return DeltaStateTables(
            self.spark,
            name,
            location,
            generation=generation,
            driver_io=self._driver_io,
            columns=self.columns,
            options=self.options,
        )

    def create(
        self,
        name: str,
        like: DataFrame,
        fill: Callable[[DeltaTarget], object],
        properties: Mapping[str, str],
        bind: str,
        options: TableOptions = NO_OPTIONS,
    ) -> DeltaTarget:
        """Make a table and let ``fill`` write to it, or leave nothing behind."""
        return make_target(
            self.spark,
            name,
            like,
            fill,
            properties,
            driver_io=self._driver_io,
            columns=self.columns,
            options=self.options,
            bind=bind,
            table=options,
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
        if found is None:
            return None
        is_copy = properties.get(TABLE_PROPERTY) != metadata.get("id")
        return Marks(str(found), is_copy, properties.get(SUSPENDED_PROPERTY), properties.get(VERIFIED_PROPERTY))

    def wreck(self, name: str, location: str | None, ours: str | None) -> str | None:
        """Return the id of a stream table whose log can no longer be read."""
        if location is None:
            place = default_place(self.spark, name)
            location = None if place is None else place.location
        return None if location is None else find_wreck(self._log(location), is_ours=location == ours)

    def delete_rest(self, name: str, location: str | None) -> None:
        """Delete what DROP TABLE left of a table without a log."""
        place = default_place(self.spark, name)
        if place is not None and location in (None, place.location) and place.folder_exists():
            place.delete_folder()

    def table_log(self, location: str) -> DeltaTableLog:
        """Return the log of the table at a place, for observers."""
        return DeltaTableLog(self._log(location), location)

    def bind(self, name: str, location: str) -> None:
        """Make the definition that a table carries its own."""
        log = self._log(location)
        self.set_properties(name, {TABLE_PROPERTY: str(log.metadata(log.head())["id"])})

    def admit_columns(self, name: str, location: str, like: DataFrame) -> None:
        """Make a table able to have the columns of ``like``, whatever their names."""
        log = self._log(location)
        admit_columns(self.spark, name, log.metadata(log.head()), like)

    def set_properties(self, name: str, properties: Mapping[str, str | None]) -> None:
        """Set properties of a table, or take them away where the value is None."""
        set_properties(self.spark, name, properties)

    def set_column_comments(self, name: str, comments: Mapping[str, str]) -> None:
        """Set the comments of columns of a table."""
        set_column_comments(self.spark, name, comments)

    def settle(self, location: str | None = None) -> None:
        """Wait for checkpoints."""
        CHECKPOINTS.finish(location)

    def upkeep(self, location: str) -> DeltaUpkeep:
        """Return what keeps the table at a place in shape."""
        return DeltaUpkeep(self.spark, open_table(self.spark, location, self.options))

    def appends(self, name: str, schema: pa.Schema) -> DeltaAppends:
        """Open a plain table to append to."""
        return DeltaAppends(self.spark, name, schema)

    def store_keys(self, table: str, keys: TableKeys) -> None:
        """Write the keys that were declared of a table into its properties."""
        store_keys(self.spark, table, keys)

    def _log(self, location: str) -> DeltaLogFiles:
        return self._marked.get(location, lambda: open_table(self.spark, location, self.options)).log
