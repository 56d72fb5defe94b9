"""Random tables as people have them: NULLs, duplicates, odd characters, extreme values, partitions, table features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any, Final

Row = tuple[Any, ...]

STRUCT: Final = "struct<a:int,b:string>"
DEEP: Final = "struct<a:int,b:struct<c:string,d:array<int>,e:date>,f:bigint>"
MAP: Final = "map<string,int>"
ARRAY: Final = "array<int>"
DECIMAL: Final = "decimal(12,2)"
WIDE: Final = "decimal(38,6)"

#: The values of each type, the common ones first: they are drawn far more often.
VALUES: Final[dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "int": ((0, 1, 2, 3), (-1, 17, 2**31 - 1, -(2**31))),
    "bigint": ((0, 1, 2, 5), (-7, 2**31, 2**63 - 1, -(2**63))),
    "string": (
        ("a", "b", "c", "ab"),
        ("", " ", "A", "é", "日本", "x\u2028y", "x\u2029y", "x\u0085y", "it's", 'say "hi"', "line\nbreak", "tab\t", "%_\\", "😀", "null", "a b"),  # noqa: E501
    ),
    "double": ((0.0, 1.5, 2.25, 0.1), (-0.0, math.nan, math.inf, -math.inf, 0.3, -12.7, 99.99, 1e-7)),
    DECIMAL: (
        (Decimal("0.00"), Decimal("1.50"), Decimal("2.25"), Decimal("10.00")),
        (Decimal("-3.10"), Decimal("9999999999.99"), Decimal("-9999999999.99"), Decimal("0.01")),
    ),
    WIDE: (
        (Decimal("0.000000"), Decimal("1.500000"), Decimal("12345678901234567890.123456")),
        (Decimal("-99999999999999999999999999.999999"), Decimal("99999999999999999999999999.999999")),
    ),
    "date": (
        (date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 29)),
        (date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4), date(1969, 12, 31), date(1900, 1, 1)),
    ),
    "timestamp": (
        (datetime(2024, 1, 1), datetime(2024, 1, 1, 12, 30), datetime(2024, 2, 29, 23, 59, 59, 999999)),
        (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 1), datetime(1582, 10, 4)),  # noqa: E501
    ),
    "boolean": ((True, False), (True,)),
    ARRAY: (((1, 2), (3,), (1, 1)), ((), (None,), (2, None, 2), (2**31 - 1,))),
    STRUCT: (((1, "a"), (2, "b")), ((None, None), (1, None), (0, "x\u2028y"), (None, ""))),
    "binary": ((b"a", b"\x00\x01"), (b"", b"\xff\xfe", "é".encode())),
    DEEP: (
        ((1, ("a", (1, 2), date(2024, 1, 1)), 5), (2, ("b", (3,), date(2024, 1, 31)), 2)),
        ((None, None, None), (1, (None, None, None), 0), (2, ("x\u2028y", (None,), None), None), (3, ("", (), date(1, 1, 1)), -7)),  # noqa: E501
    ),
    MAP: (((("a", 1), ("b", 2)), (("a", 0),)), ((), (("é", None),), (("", 3), ("a", None)))),
}  # fmt: skip
#: What a query may read of a column alone, so that Spark narrows the scan to it.
PATHS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    STRUCT: (("{0}.a", "int"), ("{0}.b", "string")),
    DEEP: (
        ("{0}.a", "int"),
        ("{0}.b.c", "string"),
        ("{0}.b.d", ARRAY),
        ("{0}.b.e", "date"),
        ("{0}.f", "bigint"),
        ("try_element_at({0}.b.d, 1)", "int"),
    ),
    MAP: (
        ("try_element_at({0}, 'a')", "int"),
        ("map_contains_key({0}, 'a')", "boolean"),
        ("sort_array(map_values({0}))", ARRAY),
        ("size({0})", "int"),
    ),
}
PLAIN_NAMES: Final = ("s", "v", "w", "Größe", "select", "x-y", "d_1", "UPPER")
MAPPED_NAMES: Final = ("a b", "x.y", "s;{}", "=(1)", "Größe", "w")
PARTITION_TYPES: Final = ("int", "string", "date", "boolean")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, with the rows it begins with.

    Attributes:
        name: Its name in the schema of the case.
        columns: Name and type of each.
        rows: The first rows, in several files.
        partition: The column it is partitioned by, if any.
        change_feed: Whether it has a change data feed.
        deletion_vectors: Whether rows are deleted by marking them; such a table is written by Spark.
        mapped: Whether its columns are mapped by name; such a table is written by Spark.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    partition: str | None = None
    change_feed: bool = False
    deletion_vectors: bool = False
    mapped: bool = False

    @property
    def by_spark(self) -> bool:
        """Return whether only Spark writes it; delta-rs is ten times as fast, but does not know every feature."""
        return self.deletion_vectors or self.mapped

    @property
    def schema(self) -> str:
        """Return the columns as DDL."""
        return ", ".join(f"`{name}` {type_}" for name, type_ in self.columns)

    @property
    def ddl(self) -> str:
        """Return the statement that makes it."""
        properties = ["'delta.checkpointInterval' = '5'"]
        if self.change_feed:
            properties.append("'delta.enableChangeDataFeed' = 'true'")
        properties.append(f"'delta.enableDeletionVectors' = '{str(self.deletion_vectors).lower()}'")
        if self.mapped:
            properties.append("'delta.columnMapping.mode' = 'name'")
        partition = f" PARTITIONED BY (`{self.partition}`)" if self.partition else ""
        return (
            f"CREATE TABLE {self.name} ({self.schema}) USING delta{partition} TBLPROPERTIES ({', '.join(properties)})"
        )


def draw_value(rng: Random, type_: str) -> Any:
    """Draw a value: NULL now and then, mostly one of few, sometimes an odd one."""
    if rng.random() < 0.12:
        return None
    common, odd = VALUES[type_]
    return rng.choice(odd if rng.random() < 0.25 else common)


def draw_row(rng: Random, table: Table | tuple[tuple[str, str], ...]) -> Row:
    """Draw a row: ``id`` hardly repeats, ``k`` is a skewed key, the others are drawn by type."""
    columns = table.columns if isinstance(table, Table) else table
    row: list[Any] = []
    for name, type_ in columns:
        if name == "id":
            row.append(rng.randrange(20))
        elif name == "k":
            row.append(rng.choice((None, 0, 0, 0, 1, 1, 2, 3, 4)))
        else:
            row.append(draw_value(rng, type_))
    return tuple(row)


def draw_rows(rng: Random, table: Table | tuple[tuple[str, str], ...], most: int) -> tuple[Row, ...]:
    """Draw some rows, a few of them twice."""
    rows = [draw_row(rng, table) for _ in range(rng.randint(1, most))]
    rows += [rng.choice(rows) for _ in range(rng.choice((0, 0, 1, 2)))]
    return tuple(rows)


def draw_table(rng: Random, name: str) -> Table:
    """Draw a table."""
    mapped = rng.random() < 0.04
    names = rng.sample(MAPPED_NAMES if mapped else PLAIN_NAMES, rng.randint(2, 4))
    types = [rng.choice(("string", "int", "double", DECIMAL, "date")), *rng.choices(tuple(VALUES), k=len(names) - 1)]
    columns = (("id", "bigint"), ("k", "int"), *zip(names, types, strict=True))
    partition = None
    if rng.random() < 0.2:
        able = [n for n, t in columns[1:] if t in PARTITION_TYPES]
        partition = rng.choice(able)
    table = Table(
        name,
        columns,
        rows=(),
        partition=partition,
        change_feed=rng.random() < 0.5,
        deletion_vectors=rng.random() < 0.06,
        mapped=mapped,
    )
    rows = draw_rows(rng, table, rng.choice((6, 10, 16, 16, 40))) if rng.random() < 0.96 else ()
    return Table(name, columns, rows, partition, table.change_feed, table.deletion_vectors, mapped)
