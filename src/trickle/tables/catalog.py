"""Resolves names: the location of a table, whether it is a stream table, and the source of a leaf of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from trickle.errors import DefinitionError, SourceError
from trickle.model.cache import Cache
from trickle.model.names import check_session_name, quote, shown_part, split_name, sql_name
from trickle.model.options import DEFAULT, Options
from trickle.tables.formats import FORMATS, RESULT_FORMAT, path_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.contract import SourceTable
    from trickle.tables.format_contract import Marks, TableFormat

SESSION_CATALOG: Final = "spark_catalog"
# Leaves that are constant rows: VALUES, SELECT without FROM, range().
_CONSTANT: Final = frozenset({"LocalRelation", "OneRowRelation", "Range"})


class Catalog:
    """The user's catalog, with what Trickle needs of it. Sources are kept, because they hold parsed logs.

    Attributes:
        results: The format of stream tables: it makes their targets and state tables.
    """

    def __init__(self, spark: SparkSession, columns: ColumnCache | None = None, options: Options = DEFAULT) -> None:
        """Bind to a session."""
        self.spark = spark
        self._formats = {name: facts.make(spark, options, columns) for name, facts in FORMATS.items()}
        self.results = self._formats[RESULT_FORMAT.name]
        self._sources: Cache[tuple[str, str], SourceTable] = Cache("sources", options.tables_kept)

    # -- names

    def qualify(self, parts: tuple[str, ...]) -> str:
        """Return a name with its schema, and its catalog if that is not Spark's own: ``shop.orders``.

        Raises:
            DefinitionError: ``BAD_NAME``, Spark's own catalog does not take it.
        """
        catalog = parts[-3] if len(parts) == 3 else self.spark.catalog.currentCatalog()
        schema = parts[-2] if len(parts) >= 2 else self.spark.catalog.currentDatabase()
        if catalog != SESSION_CATALOG:
            return ".".join(map(shown_part, (catalog, schema, parts[-1])))
        check_session_name((schema, parts[-1]))
        return ".".join(shown_part(p.lower()) for p in (schema, parts[-1]))

    def refuse_existing(self, name: str) -> None:
        """Refuse a name that a table or view already has."""
        if self.is_there(name):
            hint = "Choose another name, or drop what is there."
            raise DefinitionError("NAME_TAKEN", f"there is already a table or view named '{name}'.", hint=hint)

    def is_there(self, name: str) -> bool:
        """Return whether there is a table or view of a name."""
        return bool(self.spark.catalog.tableExists(sql_name(name)))

    def location(self, name: str) -> str | None:
        """Return where a table lies, None if there is no such table."""
        session: Any = self.spark._jsparkSession
        parts = split_name(name)
        if len(parts) == 2:
            identifier, some = self._classes
            wanted = identifier(parts[1], some(parts[0]))
            try:
                table = session.sessionState().catalog().getTableMetadata(wanted)
            except AnalysisException as error:
                if error.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
                    return None
                raise
            # As text, Some(…) or None: one call into the JVM instead of three.
            place = str(table.storage().locationUri().toString())
            return None if place == "None" else place.removeprefix("Some(").removesuffix(")")  # a view has none
        if not self.is_there(name):
            return None
        row = self.spark.sql(f"DESCRIBE DETAIL {sql_name(name)}").select("location").first()
        return str(row[0]) if row else None

    @cached_property
    def _classes(self) -> tuple[Any, Any]:
        """Looking up a class by its path takes longer than asking the catalog."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache.spark.sql.catalyst.TableIdentifier, jvm.scala.Some

    def marks(self, location: str) -> Marks | None:
        """Say what makes the table at a place a stream table; None if it is an ordinary one."""
        return self.results.marks(location)

    def definitions(self) -> Iterator[tuple[str, str, Marks | Exception]]:
        """Return name, place and marks of every table that has a definition, in all schemas of the current catalog.

        If the log of a table cannot be read, the error is returned: it may be a stream table.
        """
        for schema, table in self._tables():
            name, location = f"{schema}.{table}", None
            try:
                name = self.qualify((schema, table))
                location = self.location(name)
                marks = None if location is None else self.marks(location)
            except Exception as error:
                yield name, location or "", error
                continue
            if location is not None and marks is not None:
                yield name, location, marks

    def _tables(self) -> Iterator[tuple[str, str]]:
        """Return schema and name of every table. The catalog's own listing opens each, and fails with the first it cannot."""
        if self.spark.catalog.currentCatalog() == SESSION_CATALOG:
            external: Any = self.spark._jsparkSession.sharedState().externalCatalog()
            # As text: one call into the JVM for all names.
            for schema in sorted(filter(None, external.listDatabases().mkString("\n").split("\n"))):
                for table in filter(None, external.listTables(schema).mkString("\n").split("\n")):
                    yield schema, table
            return
        for database in self.spark.catalog.listDatabases():
            for row in self.spark.sql(f"SHOW TABLES IN {quote(database.name)}").collect():
                if not row["isTemporary"]:
                    yield database.name, row["tableName"]

    def drop(self, name: str) -> None:
        """Drop a table with its data."""
        self.results.settle(self.location(name))
        self.spark.sql(f"DROP TABLE IF EXISTS {sql_name(name)}")

    def rename(self, name: str, new_name: str) -> None:
        """Rename a table in its schema."""
        self.spark.sql(f"ALTER TABLE {sql_name(name)} RENAME TO {sql_name(new_name)}")

    def cluster(self, name: str, columns: Sequence[str]) -> None:
        """Let the files of a table be clustered by some columns, or by none."""
        by = f"({', '.join(map(quote, columns))})" if columns else "NONE"
        self.spark.sql(f"ALTER TABLE {sql_name(name)} CLUSTER BY {by}")

    # -- sources

    def source_of_leaf(self, leaf: Any, schema: str = "default") -> SourceTable | None:
        """Return the source behind a leaf of an optimised plan, None for rows that never change.

        Raises:
            DefinitionError: ``UNSUPPORTED_SOURCE``, the leaf is not a table with versions.
        """
        kind = str(leaf.getClass().getSimpleName())
        if kind in _CONSTANT:
            return None
        for table_format in self._formats.values():
            found = table_format.locate_leaf(leaf)
            if found is not None:
                name = _catalog_name(leaf, schema) or found.name
                return None if found.is_pinned else self._source(table_format, name, found.location)
        text = f"the query reads {_describe(leaf, kind)}, which is not a Delta table."
        hint = "Write it to a Delta table, which has versions and changes, and read that."
        raise DefinitionError("UNSUPPORTED_SOURCE", text, hint=hint)

    def source_by_name(self, name: str, *, catalog: str, schema: str) -> SourceTable:
        """Return the source that a definition made in a catalog and schema calls ``name``.

        Raises:
            SourceError: ``SOURCE_MISSING``.
        """
        by_path = path_in(name)
        if by_path is not None:
            facts, path = by_path
            return self._source(self._formats[facts.name], name, path)
        parts = split_name(name)
        full = (*(catalog, schema)[: 3 - len(parts)], *parts)
        found = self.location(self.qualify(full))
        if found is None:
            hint = "Was it dropped or renamed? Create it again, or drop the stream table."
            raise SourceError("SOURCE_MISSING", f"source table '{name}' no longer exists.", hint=hint)
        return self._source(self.results, name, found)

    def _source(self, table_format: TableFormat, name: str, path: str) -> SourceTable:
        # If two threads ask, both get the first one's object, so that they share its caches.
        return self._sources.get((name, path), lambda: table_format.source(name, path))


def _describe(leaf: Any, kind: str) -> str:
    if kind == "LogicalRelation":
        table = leaf.catalogTable()
        return f"'{table.get().identifier().table()}'" if table.isDefined() else "files that have no versions"
    if kind == "LogicalRDD":
        return "rows held in memory (a DataFrame made from Python data, or a temporary view of one)"
    return f"a {kind}"


def _catalog_name(leaf: Any, schema: str) -> str | None:
    """Name a table as a query in that schema would, None if the catalog has no name for it."""
    table = leaf.catalogTable()
    if not table.isDefined():
        return None
    identifier = table.get().identifier()
    database = str(identifier.database().get()) if identifier.database().isDefined() else schema
    catalog = str(identifier.catalog().get()) if identifier.catalog().isDefined() else SESSION_CATALOG
    parts = [str(identifier.table())]
    if catalog != SESSION_CATALOG:
        parts = [catalog, database, *parts]
    elif database != schema:
        parts = [database, *parts]
    return ".".join(p if p.replace("_", "a").isalnum() else quote(p) for p in parts)
