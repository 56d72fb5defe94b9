"""From a name or a leaf of an analysed plan to the Delta table behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException

from trickle.errors import DefinitionError
from trickle.tables.delta.source import DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta.jvm import Jvm


def source_of_leaf(spark: SparkSession, leaf: Jvm) -> DeltaSource:
    """Give the Delta table of a leaf of an analysed plan."""
    index = delta_index(leaf)
    if index is None:
        raise _unsupported(leaf_name(leaf), _what(leaf))
    if index.isTimeTravelQuery():
        raise DefinitionError(
            "UNSUPPORTED_SOURCE",
            f"{leaf_name(leaf)} is read at a fixed version, which never changes.",
            hint="Leave VERSION AS OF or TIMESTAMP AS OF out; refresh(at=…) chooses versions.",
        )
    return DeltaSource(spark, leaf_name(leaf), str(index.deltaLog().dataPath().toString()))


def delta_index(leaf: Jvm) -> Jvm | None:
    """Give Delta's file index of a leaf, None if the leaf is not a Delta table."""
    if _class(leaf) != "LogicalRelation":
        return None
    relation = leaf.relation()
    # Delta's own relation is an unnamed subclass of Spark's, inside DeltaLog.
    if _class(relation) != "HadoopFsRelation" and "DeltaLog" not in str(relation.getClass().getName()):
        return None
    location = relation.location()
    return location if _class(location) == "TahoeLogFileIndex" else None


def leaf_name(leaf: Jvm) -> str:
    """Give the name of a leaf: the catalog's if it has one, else ``delta.`path```, else the plan's own words."""
    if _class(leaf) == "LogicalRelation":
        table = leaf.catalogTable()
        if table.isDefined():
            return identifier_text(table.get().identifier())
        index = delta_index(leaf)
        if index is not None:
            return f"delta.`{index.deltaLog().dataPath().toString()}`"
    return str(leaf.simpleString(25))


def identifier_text(identifier: Jvm) -> str:
    """Give a table identifier as text: database and table, and the catalog if it is not Spark's own."""
    parts = [identifier.catalog(), identifier.database()]
    names = [str(part.get()) for part in parts if part.isDefined() and str(part.get()) != "spark_catalog"]
    return ".".join([*names, str(identifier.table())])


def location_of(spark: SparkSession, name: str) -> str:
    """Give the location of a Delta table by its name."""
    index = delta_index(_leaf_of_name(spark, name))
    if index is None:
        raise _unsupported(name, "not a Delta table")
    return str(index.deltaLog().dataPath().toString())


def _leaf_of_name(spark: SparkSession, name: str) -> Jvm:
    try:
        plan = _analysed(spark.table(name))
    except ParseException as error:
        raise DefinitionError("UNKNOWN_SOURCE", f"{name} is not a table name.", hint=str(error)) from error
    except AnalysisException as error:
        raise DefinitionError(
            "UNKNOWN_SOURCE", f"There is no table {name}.", hint="Check the name and the current database."
        ) from error
    while _class(plan) == "SubqueryAlias":
        plan = plan.child()
    if _class(plan) == "View":
        raise _unsupported(name, "a view")
    return plan


def _analysed(frame: DataFrame) -> Jvm:
    return frame._jdf.queryExecution().analyzed()


def _unsupported(name: str, what: str) -> DefinitionError:
    return DefinitionError(
        "UNSUPPORTED_SOURCE",
        f"{name} is {what}, which has no versions to read changes from.",
        hint="Read a Delta table: copy the data into one, or CONVERT TO DELTA.",
    )


def _what(leaf: Jvm) -> str:
    kind = _class(leaf)
    if kind == "LogicalRelation":
        relation = leaf.relation()
        if _class(relation) == "HadoopFsRelation":
            return f"a {relation.fileFormat().toString()} table"
        return f"a {_class(relation)}"
    return {
        "LocalRelation": "a list of local rows",
        "LogicalRDD": "an RDD",
        "Range": "a range of numbers",
        "StreamingRelation": "a stream",
        "StreamingRelationV2": "a stream",
        "HiveTableRelation": "a Hive table",
        "InMemoryRelation": "a cached DataFrame",
    }.get(kind, f"a {kind}")


def _class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())
