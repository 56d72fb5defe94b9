"""Random changes of tables, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal

from deltalake import DeltaTable, write_deltalake

from trickle.tables.arrow.local import arrow_table, as_schema, local_frame
from trickle.testing.fuzz.tables import Row, Table, draw_row, draw_rows, draw_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind = Literal["insert", "delete", "update", "merge", "overwrite", "optimize"]
UPDATABLE: Final = ("int", "bigint", "string", "double", "boolean")


@dataclass(frozen=True, slots=True)
class Change:
    """One commit to a table.

    Attributes:
        table: Its name.
        kind: What is done.
        rows: The rows that are inserted, merged by ``k``, or take the place of all others.
        where: Which rows are deleted or updated.
        column: The column that is updated.
        value: What it is set to.
    """

    table: str
    kind: Kind
    rows: tuple[Row, ...] = ()
    where: str = ""
    column: str = ""
    value: Any = None


Round = tuple[Change, ...]


def draw_rounds(rng: Random, tables: tuple[Table, ...], count: int) -> tuple[Round, ...]:
    """Draw rounds of changes; one in thirty changes nothing."""
    return tuple(_round(rng, tables) for _ in range(count))


def _round(rng: Random, tables: tuple[Table, ...]) -> Round:
    if rng.random() < 0.03:
        return ()
    changed = [table for table in tables if rng.random() < 0.75] or [rng.choice(tables)]
    changes = [_change(rng, table) for table in changed for _ in range(rng.choice((1, 1, 2, 3)))]
    rng.shuffle(changes)
    return tuple(changes)


def _change(rng: Random, table: Table) -> Change:
    kinds: tuple[Kind, ...] = ("insert", "delete", "update", "merge", "overwrite", "optimize")
    kind = rng.choices(kinds, weights=(9, 5, 5, 4, 1, 1))[0]
    if kind == "insert":
        return Change(table.name, kind, rows=_rows_like(rng, table, rng.choice((1, 3, 6))))
    if kind == "overwrite":
        return Change(table.name, kind, rows=_rows_like(rng, table, 12))
    if kind == "delete":
        return Change(table.name, kind, where=_where(rng))
    if kind == "update":
        able = [(n, t) for n, t in table.columns if t in UPDATABLE and n != table.partition]
        column, type_ = rng.choice(able)
        value = rng.choice((0, 1, 2, 3, 4)) if column == "k" else _plain(rng, type_)
        return Change(table.name, kind, where=_where(rng), column=column, value=value)
    if kind == "merge":
        at = [n for n, _ in table.columns].index("k")
        keys = rng.sample(range(6), rng.randint(1, 3))
        rows = [draw_row(rng, table) for _ in keys]
        return Change(table.name, kind, rows=tuple((*r[:at], k, *r[at + 1 :]) for r, k in zip(rows, keys, strict=True)))
    return Change(table.name, kind)


def _rows_like(rng: Random, table: Table, most: int) -> tuple[Row, ...]:
    """Draw rows, half of them like one that the table began with: so they meet what others met."""
    rows = list(draw_rows(rng, table, most))
    for n in range(len(rows)):
        if table.rows and rng.random() < 0.5:
            at, like = rng.randrange(len(table.columns)), rng.choice(table.rows)
            rows[n] = (*like[:at], rows[n][at], *like[at + 1 :])
    return tuple(rows)


def _where(rng: Random) -> str:
    """Return a condition that both Spark and delta-rs read."""
    number = rng.randrange(20)
    return rng.choices(
        (f"k = {number % 5}", "k IS NULL", f"id < {number // 3}", f"id = {number}", f"id > {number}", "true"),
        weights=(6, 2, 4, 2, 2, 0.2),
    )[0]


def _plain(rng: Random, type_: str) -> Any:
    """Draw a value that delta-rs writes as a literal."""
    value = draw_value(rng, type_)
    if isinstance(value, str) and not value.isalnum():
        return "plain"
    return 0.5 if isinstance(value, float) else 0 if type(value) is int and abs(value) > 2**31 else value


class Writer:
    """Makes tables and changes them."""

    def __init__(self, spark: SparkSession, schema: str, folder: Path, tables: tuple[Table, ...]) -> None:
        """Bind to a schema, which lies in a folder."""
        self.spark = spark
        self.schema = schema
        self.folder = folder
        self.tables = {table.name: table for table in tables}

    def create(self) -> None:
        """Make the tables, with their first rows in two files."""
        for table in self.tables.values():
            self.spark.sql(table.ddl)
            half = (len(table.rows) + 1) // 2
            for rows in (table.rows[:half], table.rows[half:]):
                if rows:
                    self.write(Change(table.name, "insert", rows=rows))

    def write(self, change: Change) -> None:
        """Make a change by one commit."""
        table = self.tables[change.table]
        if table.by_spark:
            self._by_spark(table, change)
        else:
            self._by_delta_rs(table, change)

    def _by_spark(self, table: Table, change: Change) -> None:
        name = f"{self.schema}.{table.name}"
        if change.rows:
            local_frame(self.spark, change.rows, table.schema).createOrReplaceTempView("fuzz_rows")
        match change.kind:
            case "insert":
                self.spark.sql(f"INSERT INTO {name} SELECT * FROM fuzz_rows")
            case "overwrite":
                self.spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM fuzz_rows")
            case "delete":
                self.spark.sql(f"DELETE FROM {name} WHERE {change.where}")
            case "update":
                to = _literal(change.value)
                self.spark.sql(f"UPDATE {name} SET `{change.column}` = {to} WHERE {change.where}")
            case "merge":
                self.spark.sql(
                    f"MERGE INTO {name} t USING fuzz_rows s ON t.k = s.k WHEN MATCHED AND t.id % 3 = 0 THEN DELETE "
                    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                )
            case "optimize":
                self.spark.sql(f"OPTIMIZE {name}")

    def _by_delta_rs(self, table: Table, change: Change) -> None:
        path = self.folder / table.name
        rows = arrow_table(change.rows, as_schema(table.schema))
        match change.kind:
            case "insert":
                write_deltalake(path, rows, mode="append")
            case "overwrite":
                write_deltalake(path, rows, mode="overwrite")
            case "delete":
                DeltaTable(path).delete(change.where)
            case "update":
                to = {change.column: _literal(change.value)}
                DeltaTable(path).update(updates=to, predicate=change.where)
            case "merge":
                merger = DeltaTable(path).merge(rows, "t.k = s.k", source_alias="s", target_alias="t")
                merger = merger.when_matched_delete("t.id % 3 = 0").when_matched_update_all()
                merger.when_not_matched_insert_all().execute()
            case "optimize":
                DeltaTable(path).optimize.compact()


def _literal(value: Any) -> str:
    """Write a plain value as SQL that both Spark and delta-rs read."""
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value).lower()
