"""Names: where a table lies, whether it is a stream table, and which source stands behind a leaf of a query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import DefinitionError, SourceError
from trickle.model.names import split_name
from trickle.model.options import DEFAULT, Options
from trickle.tables.delta_jvm import DeltaHandle
from trickle.tables.delta_lake import DeltaSource
from trickle.tables.delta_log import DeltaLogFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.contract import Lane
    from trickle.tables.kept_columns import KeptColumns

SESSION_CATALOG: Final = "spark_catalog"
# Leaves that are constant rows: VALUES, SELECT without FROM, range().
_CONSTANT: Final = frozenset({"LocalRelation", "OneRowRelation", "Range"})


class Catalog:
    """The user's catalog, with what Trickle needs of it. Sources are kept, because their handles hold parsed logs."""

    def __init__(
        self,
        spark: SparkSession,
        lane: Lane = "auto",
        columns: KeptColumns | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Bind to a session."""
        self.spark = spark
        self.lane = lane
        self.columns = columns
        self.options = options
        self._sources: dict[tuple[str, str], DeltaSource] = {}
        self._logs: dict[str, DeltaLogFiles] = {}

    # -- names

    def qualify(self, parts: tuple[str, ...]) -> str:
        """Give a name with its schema, and its catalog if that is not Spark's own: ``shop.orders``."""
        catalog = parts[-3] if len(parts) == 3 else self.spark.catalog.currentCatalog()
        schema = parts[-2] if len(parts) >= 2 else self.spark.catalog.currentDatabase()
        inner = (schema, parts[-1]) if catalog == SESSION_CATALOG else (catalog, schema, parts[-1])
        return ".".join(_quoted(p.lower() if catalog == SESSION_CATALOG else p) for p in inner)

    def refuse_existing(self, name: str) -> None:
        """Refuse a name that a table or view has already."""
        if self.spark.catalog.tableExists(name):
            hint = "Choose another name, or drop what is there."
            raise DefinitionError("NAME_TAKEN", f"there is already a table or view named '{name}'.", hint=hint)

    def location(self, name: str) -> str | None:
        """Give where a Delta table lies, None if there is no such table."""
        session: Any = self.spark._jsparkSession
        parts = split_name(name)
        if len(parts) == 2:
            identifier, some = self._classes
            wanted = identifier(parts[1], some(parts[0]))
            catalog = session.sessionState().catalog()
            if not catalog.databaseExists(parts[0]) or not catalog.tableExists(wanted):
                return None
            return str(catalog.getTableMetadata(wanted).location().toString())
        if not self.spark.catalog.tableExists(name):
            return None
        row = self.spark.sql(f"DESCRIBE DETAIL {name}").select("location").first()
        return str(row[0]) if row else None

    @cached_property
    def _classes(self) -> tuple[Any, Any]:
        """To look a class up by its path takes longer than to ask the catalog."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache.spark.sql.catalyst.TableIdentifier, jvm.scala.Some

    def property(self, location: str, key: str) -> str | None:
        """Give a property of the Delta table that lies somewhere, from its log."""
        log = self._log(location)
        try:
            found = log.metadata(log.head()).get("configuration", {}).get(key)
        except Exception:
            return None
        return str(found) if found is not None else None

    def definitions(self, key: str) -> Iterator[tuple[str, str]]:
        """Give name and property of every table that has it, in all schemas of the current catalog."""
        for database in self.spark.catalog.listDatabases():
            for table in self.spark.catalog.listTables(database.name):
                if table.isTemporary or table.tableType == "VIEW":
                    continue
                name = self.qualify((*(table.namespace or [database.name])[-1:], table.name))
                location = self.location(name)
                found = None if location is None else self.property(location, key)
                if found is not None:
                    yield name, found

    def drop(self, name: str) -> None:
        """Drop a table with its data."""
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")

    # -- sources

    def source_of_leaf(self, leaf: Any, schema: str = "default") -> DeltaSource | None:
        """Give the source behind a leaf of an optimised plan, None for constant rows.

        Raises:
            DefinitionError: ``UNSUPPORTED_SOURCE``, the leaf is not a table with versions.
        """
        kind = str(leaf.getClass().getSimpleName())
        if kind in _CONSTANT:
            return None
        if kind != "LogicalRelation" or "Tahoe" not in _location_class(leaf):
            text = f"the query reads {_describe(leaf, kind)}, which is not a Delta table."
            hint = "Write it to a Delta table and read that, so that its versions and changes can be told."
            raise DefinitionError("UNSUPPORTED_SOURCE", text, hint=hint)
        index = leaf.relation().location()
        if index.isTimeTravelQuery():
            return None
        path = str(index.deltaLog().dataPath().toString())
        name = f"delta.`{path.removeprefix('file:')}`"
        table = leaf.catalogTable()
        if table.isDefined():
            name = _relative(table.get().identifier(), schema)
        return self._source(name, path)

    def source_by_name(self, name: str, *, catalog: str, schema: str) -> DeltaSource:
        """Give the source that a definition made in a catalog and schema calls ``name``.

        Raises:
            SourceError: ``SOURCE_MISSING``.
        """
        if name.startswith("delta.`"):
            path = name.removeprefix("delta.`").removesuffix("`")
        else:
            parts = split_name(name)
            full = (*(catalog, schema)[: 3 - len(parts)], *parts)
            found = self.location(self.qualify(full))
            if found is None:
                hint = "Was it dropped or renamed? Create it again, or drop the stream table."
                raise SourceError("SOURCE_MISSING", f"there is no source table '{name}' any more.", hint=hint)
            path = found
        return self._source(name, path)

    def _source(self, name: str, path: str) -> DeltaSource:
        known = self._sources.get((name, path))
        if known is None:
            # Of two threads that ask, both get the first one's: what it keeps is to serve all.
            made = DeltaSource(self.spark, name, path, lane=self.lane, columns=self.columns, options=self.options)
            known = self._sources.setdefault((name, path), made)
        return known

    def _log(self, location: str) -> DeltaLogFiles:
        known = self._logs.get(location)
        if known is None:
            known = self._logs.setdefault(location, DeltaLogFiles(DeltaHandle(self.spark, location), self.options))
        return known


def _location_class(leaf: Any) -> str:
    relation = leaf.relation()
    if "HadoopFsRelation" not in str(relation.getClass().getName()) and "DeltaLog" not in str(
        relation.getClass().getName()
    ):
        return ""
    return str(relation.location().getClass().getSimpleName())


def _describe(leaf: Any, kind: str) -> str:
    if kind == "LogicalRelation":
        table = leaf.catalogTable()
        return f"'{table.get().identifier().table()}'" if table.isDefined() else "files that have no versions"
    if kind == "LogicalRDD":
        return "rows held in memory (a DataFrame made from Python data, or a temporary view of one)"
    return f"a {kind}"


def _relative(identifier: Any, schema: str) -> str:
    """Name a table as a query in that schema would."""
    database = str(identifier.database().get()) if identifier.database().isDefined() else schema
    catalog = str(identifier.catalog().get()) if identifier.catalog().isDefined() else SESSION_CATALOG
    parts = [str(identifier.table())]
    if catalog != SESSION_CATALOG:
        parts = [catalog, database, *parts]
    elif database != schema:
        parts = [database, *parts]
    return ".".join(parts)


def _quoted(part: str) -> str:
    return part if part.replace("_", "a").isalnum() else f"`{part}`"
