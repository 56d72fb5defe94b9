"""Sets the properties of a Delta table through Spark, so that every catalog hears of it.

On S3, where Delta's own commits have no condition, the driver makes the commit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from trickle.model.names import quote, sql_name
from trickle.tables.delta.driver.fit import may_have_feed
from trickle.tables.delta.driver.housekeeping import commit_metadata, needs_conditions
from trickle.tables.delta.leaf import location_of
from trickle.tables.delta.table import open_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


CHANGE_FEED: Final = "delta.enableChangeDataFeed"
RETENTION: Final = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_PUT: Final = frozenset({CHANGE_FEED, *RETENTION})
_COMMENT: Final = "comment"
_RESERVED: Final = frozenset({"location", "provider", "owner", "external", "is_managed_location", "collation"})


def set_properties(spark: SparkSession, name: str, properties: Mapping[str, str | None]) -> None:
    """Set properties of a table, or take them away where the value is None: one commit each."""
    _set_properties(spark, sql_name(name), properties)


def set_properties_at(spark: SparkSession, place: str, properties: Mapping[str, str | None]) -> None:
    """Do the same with the table at a place."""
    _set_properties(spark, f"delta.{quote(place)}", properties)


def _set_properties(spark: SparkSession, table: str, properties: Mapping[str, str | None]) -> None:
    if properties and _put_properties(spark, table, properties):
        return
    given = {key: value for key, value in properties.items() if value is not None}
    gone = [key for key in properties if key not in given]
    if given:
        pairs = ", ".join(f"{_literal(spark, key)} = {_literal(spark, value)}" for key, value in given.items())
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})")
    if gone:
        keys = ", ".join(_literal(spark, key) for key in gone)
        spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({keys})")


def set_column_comments(spark: SparkSession, name: str, comments: Mapping[str, str]) -> None:
    """Set the comments of those columns that are there and have other ones: one commit each."""
    if not comments:
        return
    wanted = {column.lower(): comment for column, comment in comments.items()}
    place = location_of(spark, sql_name(name))
    if needs_conditions(place) and commit_metadata(
        open_table(spark, place), lambda before: _commented(before, wanted), "CHANGE COLUMN", {}
    ):
        return
    for field in spark.table(sql_name(name)).schema.fields:
        comment = wanted.get(field.name.lower())
        if comment is not None and comment != field.metadata.get("comment", ""):
            column = quote(field.name)
            spark.sql(f"ALTER TABLE {sql_name(name)} ALTER COLUMN {column} COMMENT {_literal(spark, comment)}")


def _put_properties(spark: SparkSession, name: str, properties: Mapping[str, str | None]) -> bool:
    """Set properties by a commit of the driver; False if Delta does it."""
    if not all(map(_is_put, properties)):
        return False
    place = location_of(spark, name)
    if not needs_conditions(place):
        return False

    def change(before: Mapping[str, Any]) -> Mapping[str, Any]:
        own = {key: value for key, value in properties.items() if key != _COMMENT}
        settings = {**(before.get("configuration") or {}), **own}
        after = {**before, "configuration": {key: value for key, value in settings.items() if value is not None}}
        if _COMMENT in properties:
            after["description"] = properties[_COMMENT]
        return {key: value for key, value in after.items() if value is not None}

    table = open_table(spark, place)
    if CHANGE_FEED in properties and not may_have_feed(table.log.protocol(table.log.head())):
        return False
    given = {key: value for key, value in properties.items() if value is not None}
    return commit_metadata(table, change, "SET TBLPROPERTIES", {"properties": json.dumps(given)})


def _is_put(key: str) -> bool:
    """Return whether a property means nothing to Delta and Spark beyond its value."""
    return key in _PUT or not (key.lower().startswith(("delta.", "option.")) or key.lower() in _RESERVED)


def _commented(before: Mapping[str, Any], wanted: Mapping[str, str]) -> Mapping[str, Any]:
    """Return metadata with the comments of some columns."""
    schema = json.loads(before["schemaString"])
    for field in schema["fields"]:
        comment = wanted.get(field["name"].lower())
        if comment is not None and comment != field["metadata"].get(_COMMENT, ""):
            field["metadata"][_COMMENT] = comment
    is_same = schema == json.loads(before["schemaString"])
    return before if is_same else {**before, "schemaString": json.dumps(schema)}


def _literal(spark: SparkSession, text: str) -> str:
    """Write any text as a literal of Spark SQL, which has escapes (a setting apart) and replaces ``${names}``."""
    if str(spark.conf.get("spark.sql.parser.escapedStringLiterals", "false")) != "true":
        text = text.replace("\\", "\\\\").replace("${", "$\\u007b")
    return "'" + text.replace("'", "''") + "'"
