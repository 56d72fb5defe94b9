"""The answers of SQL statements as DataFrames."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trickle.errors import DefinitionError
from trickle.handle import StreamTable
from trickle.model.names import split_name
from trickle.model.report import RefreshReport
from trickle.model.suspension import Suspension
from trickle.tables.arrow.spark import arrow_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.api import Trickle
    from trickle.model.observed import TableStatus

_TIME: Final = pa.timestamp("us", tz="UTC")
_TABLES: Final = pa.schema(
    [
        *(("namespace", pa.string()), ("name", pa.string()), ("health", pa.string()), ("mode", pa.string())),
        *(("schedule", pa.string()), ("last_refresh", _TIME), ("last_mode", pa.string())),
        *(("lag_seconds", pa.float64()), ("next_due", _TIME), ("problem", pa.string())),
    ]
)
_REFRESHES: Final = pa.schema(
    [
        *(("table", pa.string()), ("version", pa.int64()), ("started", _TIME), ("committed", _TIME)),
        *(("mode", pa.string()), ("reason", pa.string()), ("rows_inserted", pa.int64())),
        *(("rows_deleted", pa.int64()), ("seconds", pa.float64()), ("trigger", pa.string())),
        ("frontier", pa.map_(pa.string(), pa.int64())),
    ]
)
_DESCRIPTION: Final = pa.schema([(name, pa.string()) for name in ("col_name", "data_type", "comment")])
_REPORT: Final = pa.schema(
    [
        *(("table", pa.string()), ("mode", pa.string()), ("reason", pa.string()), ("rows_inserted", pa.int64())),
        *(("rows_deleted", pa.int64()), ("version", pa.int64()), ("seconds", pa.float64())),
    ]
)


def _frame(spark: SparkSession, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    return arrow_frame(spark, pa.Table.from_pylist([dict(row) for row in rows], schema=schema))


def as_frame(spark: SparkSession, answer: Any) -> DataFrame:
    """Return any answer as a DataFrame; nothing as one without columns, as Spark does."""
    if isinstance(answer, str):
        return _frame(spark, pa.schema([("plan", pa.string())]), [{"plan": str(answer)}])
    if isinstance(answer, RefreshReport):
        reason = None if answer.reason is None else str(answer.reason)
        row = {name: getattr(answer, name) for name in _REPORT.names}
        return _frame(spark, _REPORT, [{**row, "reason": reason}])
    if isinstance(answer, StreamTable):
        row = {"table": answer.name, "mode": answer.mode, "schedule": answer.schedule}
        return _frame(spark, pa.schema([(name, pa.string()) for name in row]), [row])
    if isinstance(answer, Suspension):
        row = {name: None if value is None else str(value) for name, value in answer.model_dump().items()}
        return _frame(spark, pa.schema([(name, pa.string()) for name in row]), [row])
    return spark.range(0).select() if answer is None else answer


def list_tables(trickle: Trickle, schema: str | None, pattern: str | None) -> DataFrame:
    """List the stream tables of a schema, None for all, whose names match a pattern (``*`` is any text, ``|`` is or).

    Raises:
        DefinitionError: ``SCHEMA_NOT_FOUND``.
    """
    wanted = None if schema is None else tuple(part.lower() for part in split_name(schema))
    found = trickle.status()
    if schema is not None and not trickle.spark.catalog.databaseExists(schema):
        hint = "SHOW SCHEMAS lists those that there are."
        raise DefinitionError("SCHEMA_NOT_FOUND", f"there is no schema {schema}.", hint=hint)
    shown = [status for status in found if _is_in(status.table, wanted) and _matches(status.table, pattern)]
    return _frame(trickle.spark, _TABLES, map(_listed, shown))


def _is_in(name: str, schema: tuple[str, ...] | None) -> bool:
    own = tuple(part.lower() for part in split_name(name)[:-1])
    return schema is None or own[-len(schema) :] == schema


def _matches(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    own = split_name(name)[-1]
    some = (re.escape(one.strip()).replace(r"\*", ".*").replace("%", ".*") for one in pattern.split("|"))
    return any(re.fullmatch(one, own, re.IGNORECASE | re.DOTALL) for one in some)


def _listed(status: TableStatus) -> dict[str, Any]:
    *schema, name = split_name(status.table)
    return {
        **{field: getattr(status, field) for field in _TABLES.names if hasattr(status, field)},
        "namespace": ".".join(schema),
        "name": name,
    }


def list_refreshes(trickle: Trickle, name: str | None, limit: int | None) -> DataFrame:
    """List the refreshes of a stream table, None for all, the newest first."""
    names = [table.name for table in trickle.tables()] if name is None else [name]
    every = [past for each in names for past in trickle.history(each, limit=limit)]
    never = datetime.min.replace(tzinfo=UTC)
    every.sort(key=lambda past: (past.committed or past.started or never, past.version), reverse=True)
    rows = ({field: getattr(past, field) for field in _REFRESHES.names} for past in every[:limit])
    return _frame(trickle.spark, _REFRESHES, ({**row, "frontier": list(row["frontier"].items())} for row in rows))


def describe_table(trickle: Trickle, name: str, *, extended: bool) -> DataFrame:
    """Describe a stream table: its columns, then how it is refreshed and how it is."""
    table = trickle.table(name)
    columns = [
        (field.name, field.dataType.simpleString(), field.metadata.get("comment"))
        for field in table.to_df().schema.fields
    ]
    rows = [*columns, ("", "", ""), ("# Stream table", "", "")]
    rows += [(what, said, "") for what, said in _details(trickle, table, extended=extended) if said]
    return _frame(trickle.spark, _DESCRIPTION, (dict(zip(_DESCRIPTION.names, row, strict=True)) for row in rows))


def _details(trickle: Trickle, table: StreamTable, *, extended: bool) -> Sequence[tuple[str, str]]:
    (status,) = trickle.status(table.name)
    last = "never" if status.last_refresh is None else f"{status.last_refresh:%Y-%m-%d %H:%M:%S} {status.last_mode}"
    rows = [
        ("Name", table.name),
        ("Query", table.query or "(a DataFrame)"),
        ("Mode", table.mode),
        ("Schedule", table.schedule or "by hand"),
        ("Health", status.health),
        ("Last refresh", last),
        ("Why it was full", status.last_reason or ""),
        ("Sources", ", ".join(f"{lag.source}@{lag.included}" for lag in status.sources)),
        ("Problem", status.problem or (status.suspended.message if status.suspended else "") or ""),
    ]
    if not extended:
        return rows
    definition = table.definition
    options = definition.options.model_dump(exclude_defaults=True)
    rows += [(f"Option {option}", str(value)) for option, value in options.items()]
    rows += [("Catalog", definition.catalog), ("Schema", definition.schema_name), ("Spark", definition.spark)]
    return [*rows, *((f"Setting {key}", value) for key, value in sorted(definition.settings.items()))]
