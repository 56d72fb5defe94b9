"""Keeps the catalog of a `local_session` equal to its warehouse folder.

Spark's in-memory catalog forgets its tables with the process, and the embedded Derby metastore admits one process at
a time. So the folder is the truth: a Delta table is a folder with a log, and `sync` registers what the catalog does
not know and forgets what is gone. Several processes may work on one folder.

`trickle.layout` knows how a folder is laid out.

A warehouse on an object store is listed at most every two seconds: each look costs requests.

Out of scope: tables made with their own LOCATION outside this layout, views, and tables of other formats. They live
as long as the process, as Spark's catalog has it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trickle.layout import DEFAULT, WAREHOUSE_CONF, is_remote, read_layout
from trickle.model.cache import Cache
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A table whose log is younger may be about to be registered by a CREATE TABLE that runs in this process.
SETTLE_SECONDS: Final = 1.0

#: A warehouse on an object store is not listed again before so many seconds are over.
LISTED_SECONDS: Final = 2.0

_lock: Final = threading.Lock()

#: By warehouse folder: tables of the catalog seen not to be of it. Asked about one by one they would be most of a sync.
_elsewhere: Final[dict[str, set[tuple[str, str]]]] = {}

#: When a warehouse on an object store was last listed, and when each of its tables was first seen.
_listed: Final[dict[str, float]] = {}
_first_seen: Final[Cache[str, float]] = Cache("tables first seen", 100_000)


def sync(spark: SparkSession, *, is_new: bool = False) -> None:
    """Register and forget tables and databases until the catalog equals the warehouse folder.

    Does nothing on a session that `local_session` did not make. Costs about a millisecond when nothing changed. In a session
    that ``is_new`` nobody can be making a table.
    """
    folder = spark.conf.get(WAREHOUSE_CONF, None)
    if not folder:
        return
    with _lock:
        if (
            is_remote(folder)
            and not is_new
            and time.monotonic() - _listed.get(folder, -LISTED_SECONDS) < LISTED_SECONDS
        ):
            return
        catalog = _Catalog(spark)
        if not _step(catalog, folder, is_settled=is_new and is_remote(folder)):
            _step(catalog, folder, is_settled=True)
        _listed[folder] = time.monotonic()


def _step(catalog: _Catalog, folder: str, *, is_settled: bool = False) -> bool:
    """Bring catalog and folder together once; False after waiting for a table that is just being made."""
    found = read_layout(folder)
    known = catalog.databases()
    for database in found.databases.keys() - known:
        catalog.add_database(database, found.databases[database])
    for database in known - found.databases.keys():
        if database != DEFAULT and catalog.has_database_at(database, f"{folder}/{database}.db"):
            catalog.forget_database(database)
            known.discard(database)

    registered = {(database, table) for database in known for table in catalog.tables(database)}
    new = {key: path for key, path in found.tables.items() if key not in registered and _has_commit(path)}
    if new and not is_settled:
        young = SETTLE_SECONDS - min(_age(path) for path in new.values())
        if young > 0:
            time.sleep(min(young, SETTLE_SECONDS))
            return False
    for (database, table), path in new.items():
        catalog.add_table(database, table, path)
    missing = registered - found.tables.keys()
    elsewhere = _elsewhere.get(folder, set()) & missing
    gone = missing - elsewhere
    _elsewhere[folder] = elsewhere | {(d, t) for d, t in gone if not catalog.forget_table_if_gone(d, t, folder)}
    return True


def _log(table: str) -> str:
    return f"{table}/_delta_log"


def _age(table: str) -> float:
    """Return the seconds since a table's log was last added to; one that another thread or process dropped has settled.

    On an object store, since the table was first seen here.
    """
    if is_remote(table):
        return time.monotonic() - _first_seen.get(table, time.monotonic)
    try:
        return time.time() - Path(_log(table)).stat().st_mtime
    except FileNotFoundError:
        return SETTLE_SECONDS


def _has_log(table: str) -> bool:
    """Return whether a table has a log, perhaps an empty one."""
    folder = folder_at(_log(table))
    return folder is not None and folder.storage.is_folder(folder.address)


def _has_commit(table: str) -> bool:
    folder = folder_at(_log(table))
    # A checkpoint alone may have been written after its table was dropped.
    return folder is not None and bool(folder.storage.versions(folder.address, -1))


def _uri(location: str) -> str:
    return location if is_remote(location) else Path(location).as_uri()


def _location(uri: Any) -> str:
    """Return a java.net.URI as a location of ours."""
    text = str(uri.getPath())
    return text if uri.getScheme() in (None, "file") else f"{uri.getScheme()}://{uri.getAuthority()}{text}"


class _Catalog:
    """The few calls made to Spark's external catalog, by py4j (a CREATE TABLE costs a hundred times as much)."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._catalog: Any = spark._jsparkSession.sharedState().externalCatalog()

    def databases(self) -> set[str]:
        return _split(self._catalog.listDatabases())

    def tables(self, database: str) -> set[str]:
        try:
            return _split(self._catalog.listTables(database))
        except Exception as error:
            if "SCHEMA_NOT_FOUND" in str(error):
                return set()  # dropped by another thread meanwhile
            raise

    def add_database(self, name: str, path: str) -> None:
        self._catalog.createDatabase(self._database(name, path), True)

    def has_database_at(self, name: str, path: str) -> bool:
        """The database lives in the warehouse folder, not at a LOCATION of its own."""
        return _location(self._catalog.getDatabase(name).locationUri()).rstrip("/") == path

    def forget_database(self, name: str) -> None:
        # Dropping a database or a managed table deletes its folder, which another process may have created again by now.
        # So it is first pointed at nothing.
        self._catalog.alterDatabase(self._database(name, f"/nonexistent/{name}.db"))
        for table in self.tables(name):
            self._forget_table(name, table)
        self._catalog.dropDatabase(name, True, True)

    def add_table(self, database: str, name: str, path: str) -> None:
        self._catalog.createTable(self._table(database, name, path, "MANAGED"), True)

    def forget_table_if_gone(self, database: str, name: str, folder: str) -> bool:
        """Forget a managed Delta table of the warehouse whose log is no longer there; False if it is none of these."""
        try:
            table = self._catalog.getTable(database, name)
        except Exception as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return True  # dropped by another thread meanwhile
            raise
        if table.tableType().name() != "MANAGED" or table.provider().toString() != "Some(delta)":
            return False
        path = _location(table.location())
        if not path.startswith(f"{folder}/"):
            return False
        if not _has_log(path):
            self._forget_table(database, name)
        return True

    def _forget_table(self, database: str, name: str) -> None:
        table = self._catalog.getTable(database, name)
        if table.tableType().name() == "MANAGED":
            path = _location(table.location())
            self._catalog.alterTable(self._table(database, name, path, "EXTERNAL"))
            scala = _scala(self._jvm)
            scala.delta_log.invalidateCache(self._spark._jsparkSession, scala.path(_uri(path)))
        self._catalog.dropTable(database, name, True, False)

    def _database(self, name: str, path: str) -> Any:
        scala = _scala(self._jvm)
        return scala.catalog_database(name, "", scala.path(_uri(path)).toUri(), scala.empty_map)

    def _table(self, database: str, name: str, path: str, kind: str) -> Any:
        scala = _scala(self._jvm)
        identifier = scala.identifier(name, scala.some(database))
        storage = scala.storage(scala.some(scala.path(_uri(path)).toUri()), *scala.storage_defaults)
        return scala.catalog_table(
            identifier, scala.kinds[kind], storage, scala.empty_schema, scala.some("delta"), *scala.table_defaults
        )


@dataclass(frozen=True, slots=True)
class _Scala:
    """Handles of the JVM's classes; looking one up by name costs a millisecond."""

    path: Any
    some: Any
    identifier: Any
    storage: Any
    storage_defaults: tuple[Any, ...]
    catalog_table: Any
    table_defaults: tuple[Any, ...]
    catalog_database: Any
    kinds: dict[str, Any]
    empty_schema: Any
    empty_map: Any
    delta_log: Any


@lru_cache(maxsize=1)
def _scala(jvm: Any) -> _Scala:
    catalog = jvm.org.apache.spark.sql.catalyst.catalog
    kinds = getattr(getattr(catalog, "CatalogTableType$"), "MODULE$")
    empty_map = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
    return _Scala(
        path=jvm.org.apache.hadoop.fs.Path,
        some=jvm.scala.Some,
        identifier=jvm.org.apache.spark.sql.catalyst.TableIdentifier,
        storage=catalog.CatalogStorageFormat,
        storage_defaults=_empty_storage(catalog),
        catalog_table=catalog.CatalogTable,
        table_defaults=_defaults(jvm, "org.apache.spark.sql.catalyst.catalog.CatalogTable", first=6),
        catalog_database=catalog.CatalogDatabase,
        kinds={"MANAGED": kinds.MANAGED(), "EXTERNAL": kinds.EXTERNAL()},
        empty_schema=jvm.org.apache.spark.sql.types.StructType(),
        empty_map=empty_map,
        delta_log=jvm.org.apache.spark.sql.delta.DeltaLog,
    )


def _empty_storage(catalog: Any) -> tuple[Any, ...]:
    """All but the location (the first field) of a storage format that says nothing."""
    empty = getattr(getattr(catalog, "CatalogStorageFormat$"), "MODULE$").empty()
    return tuple(empty.productElement(i) for i in range(1, empty.productArity()))


def _defaults(jvm: Any, class_name: str, *, first: int) -> tuple[Any, ...]:
    """The default values of a case class' fields from the given one on (counted from 1)."""
    longest = max(
        jvm.java.lang.Class.forName(class_name).getConstructors(),
        key=lambda constructor: constructor.getParameterCount(),
    )
    companion = getattr(getattr(jvm, f"{class_name}$"), "MODULE$")
    return tuple(
        getattr(companion, f"$lessinit$greater$default${i}")() for i in range(first, longest.getParameterCount() + 1)
    )


def _split(names: Any) -> set[str]:
    """A Scala sequence of names, fetched in one call rather than one per name."""
    text = names.mkString("\n")
    return set(text.split("\n")) if text else set()
