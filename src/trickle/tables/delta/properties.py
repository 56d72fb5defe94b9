"""Sets the properties of a Delta table through Spark, so that every catalog hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trickle.model.names import quote, sql_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


CHANGE_FEED: Final = "delta.enableChangeDataFeed"


def set_properties(spark: SparkSession, name: str, properties: Mapping[str, str | None]) -> None:
    """Set properties of a table, or take them away where the value is None: one commit each."""
    given = {key: value for key, value in properties.items() if value is not None}
    gone = [key for key in properties if key not in given]
    if given:
        pairs = ", ".join(f"{_literal(spark, key)} = {_literal(spark, value)}" for key, value in given.items())
        spark.sql(f"ALTER TABLE {sql_name(name)} SET TBLPROPERTIES ({pairs})")
    if gone:
        keys = ", ".join(_literal(spark, key) for key in gone)
        spark.sql(f"ALTER TABLE {sql_name(name)} UNSET TBLPROPERTIES IF EXISTS ({keys})")


def set_column_comments(spark: SparkSession, name: str, comments: Mapping[str, str]) -> None:
    """Set the comments of those columns that are there and have other ones: one commit each."""
    if not comments:
        return
    wanted = {column.lower(): comment for column, comment in comments.items()}
    for field in spark.table(sql_name(name)).schema.fields:
        comment = wanted.get(field.name.lower())
        if comment is not None and comment != field.metadata.get("comment", ""):
            column = quote(field.name)
            spark.sql(f"ALTER TABLE {sql_name(name)} ALTER COLUMN {column} COMMENT {_literal(spark, comment)}")


def _literal(spark: SparkSession, text: str) -> str:
    """Write any text as a literal of Spark SQL, which has escapes (a setting apart) and replaces ``${names}``."""
    if str(spark.conf.get("spark.sql.parser.escapedStringLiterals", "false")) != "true":
        text = text.replace("\\", "\\\\").replace("${", "$\\u007b")
    return "'" + text.replace("'", "''") + "'"
