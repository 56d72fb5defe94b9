"""From a name or a leaf of an analysed plan to the place of the Delta table behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException

from trickle.errors import DefinitionError
from trickle.tables.format_contract import LocatedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta.jvm import Jvm


def locate_leaf(leaf: Jvm) -> LocatedTable | None:
    """Return the place of a leaf's Delta table, None if the leaf is not one."""
    index = _file_index(leaf)
    if index is None:
        return None
    path = str(index.deltaLog().dataPath().toString())
    return LocatedTable(path, f"delta.`{path.removeprefix('file:')}`", is_pinned=bool(index.isTimeTravelQuery()))


def location_of(spark: SparkSession, name: str) -> str:
    """Return the location of a Delta table by its name.

    Raises:
        DefinitionError: ``UNKNOWN_SOURCE``, there is no such table; ``UNSUPPORTED_SOURCE``, it is not a Delta table.
    """
    index = _file_index(_leaf_of_name(spark, name))
    if index is None:
        raise _unsupported(name, "not a Delta table")
    return str(index.deltaLog().dataPath().toString())


def _file_index(leaf: Jvm) -> Jvm | None:
    """Return Delta's file index of a leaf, None if the leaf is not a Delta table."""
    if _class(leaf) != "LogicalRelation":
        return None
    relation = leaf.relation()
    # Delta's own relation is an unnamed subclass of Spark's, inside DeltaLog.
    name = str(relation.getClass().getName())
    if "HadoopFsRelation" not in name and "DeltaLog" not in name:
        return None
    index = relation.location()
    return index if "Tahoe" in _class(index) else None


def _leaf_of_name(spark: SparkSession, name: str) -> Jvm:
    try:
        plan = _analysed(spark.table(name))
    except ParseException as error:
        raise DefinitionError("UNKNOWN_SOURCE", f"{name} is not a table name.", hint=str(error)) from error
    except AnalysisException as error:
        raise DefinitionError(
            "UNKNOWN_SOURCE", f"There is no table {name}.", hint="Check the name and the current database."
        ) from error
    while _class(plan) in ("SubqueryAlias", "Project"):  # the latter pads columns of CHAR
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


def _class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())
