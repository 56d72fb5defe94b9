"""One stream table per operator over tables of generated rows, of which one in a hundred changes per cycle.

facts     the rows asked for: id, dim (a tenth of the rows, so ten facts each), grp (a thousand), v (0 to 999)
dims      a tenth as many: id, name, region, v
returns   a tenth as many, of the form of facts
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bench.measure import Measurement, schema
from bench.show import doing
from bench.tpch import twins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from bench.session import Session

RATE: Final = 0.01

CASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "scan": "SELECT id, dim, v FROM facts",
        "filter": "SELECT id, dim, v FROM facts WHERE v < 100",
        "aggregate": "SELECT grp, count(*) AS n, sum(v) AS total FROM facts GROUP BY grp",
        "join": "SELECT f.id, f.v, d.name FROM facts f JOIN dims d ON f.dim = d.id",
        "join_aggregate": """
            SELECT d.region, count(*) AS n, sum(f.v) AS total FROM facts f JOIN dims d ON f.dim = d.id
            GROUP BY d.region""",
        "window": "SELECT id, dim, v, rank() OVER (PARTITION BY dim ORDER BY v DESC, id) AS place FROM facts",
        "lateral": """
            SELECT d.id, d.name, best.fact, best.v FROM dims d, LATERAL (
                SELECT f.id AS fact, f.v FROM facts f WHERE f.dim = d.id ORDER BY f.v DESC, f.id LIMIT 3) AS best""",
        "distinct": "SELECT DISTINCT grp, v DIV 10 AS tens FROM facts",
        "union": "SELECT id, dim, v FROM facts WHERE v < 500 UNION ALL SELECT id, dim, -v AS v FROM returns",
    }
)

# Half of the changed rows are updated, a quarter inserted (as copies; the power of two of the cycle gives each a new id),
# a quarter deleted. The numbers bound the share of the changed rows that a statement is for, {c} is the cycle.
CHANGES: Final = (
    (0.0, 0.25, "INSERT INTO {table} SELECT id + shiftleft(1L, 33 + {c}), * EXCEPT (id) FROM {table} WHERE {drawn}"),
    (0.25, 0.75, "UPDATE {table} SET v = (v + 1 + {c} * 7) % 1000 WHERE {drawn}"),
    (0.75, 1.0, "DELETE FROM {table} WHERE {drawn}"),
)
PARTS: Final = 1_000_000
"""Ids are drawn by a number below this."""


def run_micro(session: Session, sizes: Sequence[int], repeats: int) -> None:
    """Measure all cases over facts of each number of rows."""
    part = session.part("micro")
    for rows in sizes:
        run = session.begin(part, {"rows": rows, "rate": RATE, "repeats": repeats})
        if run is None:
            continue
        with schema(session.spark, f"micro_{rows}"):
            with doing(f"micro: making {rows:,} rows"):
                make_tables(session.spark, rows)
            Measurement(
                session=session,
                run=run,
                queries=CASES,
                variants=twins(session.spark),
                mutate=partial(change_tables, session.spark),
                repeats=repeats,
                title=f"micro {rows:,}",
            ).measure()


def make_tables(spark: SparkSession, rows: int) -> None:
    """Make the three tables; the same rows each time."""
    few = rows // 10
    fact = (
        f"CAST(pmod(hash(id, 1), {few}) AS BIGINT) AS dim, pmod(hash(id, 2), 1000) AS grp, pmod(hash(id, 3), 1000) AS v"
    )
    tables = {
        "facts": f"SELECT id, {fact} FROM range({rows})",
        "dims": f"""SELECT id, concat('dim ', id) AS name, pmod(hash(id, 4), 50) AS region, pmod(hash(id, 5), 1000) AS v
                    FROM range({few})""",
        "returns": f"SELECT id, {fact} FROM range({few})",
    }
    for name, query in tables.items():
        spark.sql(f"CREATE TABLE {name} USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS {query}")


def change_tables(spark: SparkSession, cycle: int) -> None:
    """Change one row in a hundred of every table."""
    for table in ("facts", "dims", "returns"):
        for low, high, statement in CHANGES:
            number = f"pmod(hash(id, 'cycle', {cycle}), {PARTS})"
            drawn = f"{number} >= {int(low * RATE * PARTS)} AND {number} < {int(high * RATE * PARTS)}"
            spark.sql(statement.format(table=table, c=cycle, drawn=drawn))
