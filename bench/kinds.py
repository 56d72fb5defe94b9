"""The same five queries over tables as people have them, each kind beside a plain table of the same rows.

lines     id, o, kind, price, day: the table of each kind
orders    o, c: a quarter as many, plain

Each kind has a plain twin of the same age, changed and refreshed in turn with it. A plain table that is measured once, before
the others, is measured while the JVM still compiles, and so seems slow.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from bench.measure import refresh, schema
from bench.results import DIFFERENTIAL, PLAIN, Case, Cycle
from bench.show import console, doing
from trickle import Trickle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.session import Session

CHANGED: Final = 1000
"""One line in so many is updated, inserted and deleted in a cycle."""

QUERIES: Final = {
    "join": "SELECT c, count(*) AS n, sum(price) AS total FROM lines JOIN orders USING (o) GROUP BY c",
    "semi join": "SELECT o, c FROM orders WHERE o IN (SELECT o FROM lines WHERE price > 990)",
    "window": "SELECT kind, id, price FROM (SELECT kind, id, price, row_number() OVER (PARTITION BY o ORDER BY price DESC, "
    "id) AS place FROM lines) WHERE place <= 3",
    "aggregate": "SELECT kind, count(*) AS n, sum(price) AS total FROM lines GROUP BY kind",
    "filter": "SELECT id, o, price FROM lines WHERE price > 900",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table.

    Attributes:
        columns: The types of its columns, where they are not the usual ones.
        properties: Besides the change data feed.
        files: In how many it is written.
        after: Statements once it has its rows.
    """

    name: str
    columns: str = "id BIGINT, o BIGINT, kind STRING, price BIGINT, day DATE"
    layout: str = ""
    properties: str = ""
    has_feed: bool = True
    files: int = 4
    after: tuple[str, ...] = ()
    is_expired: bool = False


WARM_UP: Final = 3
"""Cycles that do not count."""

KINDS: Final = (
    Kind("deletion vectors", properties="delta.enableDeletionVectors = true"),
    Kind("partitioned", layout="PARTITIONED BY (day)"),
    Kind("clustered", layout="CLUSTER BY (o)"),
    Kind("column mapping", properties="delta.columnMapping.mode = 'name'"),
    Kind("column mapping by id", properties="delta.columnMapping.mode = 'id'"),
    Kind("varchar columns", "id BIGINT, o BIGINT, kind VARCHAR(20), price BIGINT, day DATE"),
    Kind("char columns", "id BIGINT, o BIGINT, kind CHAR(4), price BIGINT, day DATE"),
    Kind(
        "identity columns",
        "id BIGINT, o BIGINT, kind STRING, price BIGINT, day DATE, number BIGINT GENERATED ALWAYS AS IDENTITY",
    ),
    Kind(
        "DEFAULT columns",
        "id BIGINT, o BIGINT, kind STRING DEFAULT 'none', price BIGINT DEFAULT 0, day DATE",
        properties="delta.feature.allowColumnDefaults = 'supported'",
    ),
    Kind(
        "generated columns",
        "id BIGINT, o BIGINT, kind STRING, price BIGINT, day DATE, year INT GENERATED ALWAYS AS (year(day))",
    ),
    Kind("CHECK constraint", after=("ALTER TABLE lines ADD CONSTRAINT positive CHECK (price >= 0)",)),
    Kind("row tracking", properties="delta.enableRowTracking = true"),
    Kind("in-commit timestamps", properties="delta.enableInCommitTimestamps = true"),
    Kind(
        "type widening",
        "id BIGINT, o BIGINT, kind STRING, price INT, day DATE",
        properties="delta.enableTypeWidening = true",
        after=("ALTER TABLE lines ALTER COLUMN price TYPE BIGINT",),
    ),
    Kind("commit 0 expired", properties="delta.checkpointInterval = 2", is_expired=True),
    Kind(
        "v2 checkpoints, commit 0 expired",
        properties="delta.checkpointPolicy = 'v2', delta.checkpointInterval = 2",
        is_expired=True,
    ),
    Kind("1,587 files", files=1587),
    Kind("no change feed", has_feed=False),
)


def case_name(kind: Kind, query: str) -> str:
    """Name the measurement of a query over a kind of table."""
    return f"{kind.name}: {query}"


def run_kinds(session: Session, rows: int, repeats: int) -> None:
    """Measure each kind, after one that does not count: until then the JVM compiles."""
    part = session.part("tables")
    run = session.begin(part, {"rows": rows, "repeats": repeats})
    if run is None:
        return
    _measure(session, Kind("warm-up"), rows, WARM_UP)
    for kind in KINDS:
        run.cases.extend(_measure(session, kind, rows, repeats))
        session.save()
    session.end(run)


def _measure(session: Session, kind: Kind, rows: int, repeats: int) -> list[Case]:
    spark, trickle = session.spark, Trickle(session.spark)
    twins = {DIFFERENTIAL: ("kinds", kind), PLAIN: ("beside", Kind(PLAIN))}
    cases = [Case(name=case_name(kind, name)) for name in QUERIES]
    with ExitStack() as stack:
        for database, made in twins.values():
            stack.enter_context(schema(spark, database))
            with doing(f"tables: making {kind.name}, {database}"):
                _make(spark, made, rows)
                for number, query in enumerate(QUERIES.values()):
                    trickle.create(f"{database}.q{number}", query, mode="differential")
        for cycle in range(1, repeats + WARM_UP + 1):
            with doing(f"tables: {kind.name}, cycle {cycle} of {repeats + WARM_UP}"):
                for database, _ in twins.values():
                    spark.sql(f"USE {database}")
                    _change(spark, rows, cycle)
                for number, case in enumerate(cases):
                    labels = list(twins) if cycle % 2 else list(reversed(twins))
                    found = {label: refresh(trickle, f"{twins[label][0]}.q{number}") for label in labels}
                    case.cycles.append(Cycle(number=cycle, warm_up=cycle <= WARM_UP, refreshes=found))
        for number, case in enumerate(cases):
            verified = trickle.verify(f"kinds.q{number}")
            case.cycles[-1].differences = verified.missing + verified.extra
            for label in twins:
                shown = ", ".join(f"{cycle.refreshes[label].seconds:.3f}" for cycle in case.cycles)
                console.print(f"  tables: {case.name}, {label}: {shown}", soft_wrap=True)
    return cases


def _make(spark: SparkSession, kind: Kind, rows: int) -> None:
    properties = [f"delta.enableChangeDataFeed = {str(kind.has_feed).lower()}", *filter(None, [kind.properties])]
    spark.sql(f"CREATE TABLE lines ({kind.columns}) USING delta {kind.layout} TBLPROPERTIES ({', '.join(properties)})")
    frame = spark.sql(
        f"SELECT id, pmod(hash(id), {rows // 4}) AS o, concat('k', pmod(hash(id, 1), 50)) AS kind, "
        f"pmod(hash(id, 2), 1000) AS price, date_add(DATE'2026-01-01', CAST(id * 12 DIV {rows} AS INT)) AS day "
        f"FROM range({rows})"
    )
    if "PARTITIONED" not in kind.layout:
        frame = frame.repartition(kind.files)
    frame.createOrReplaceTempView("new_lines")
    spark.sql("INSERT INTO lines (id, o, kind, price, day) SELECT * FROM new_lines")
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(
        f"CREATE TABLE orders USING delta {feed} AS SELECT id AS o, pmod(hash(id), 1000) AS c FROM range({rows // 4})"
    )
    for statement in kind.after:
        spark.sql(statement)
    if kind.is_expired:
        _expire(spark)


def _change(spark: SparkSession, rows: int, cycle: int) -> None:
    drawn = f"pmod(hash(id, 'c'), {CHANGED}) = {cycle}"
    others = f"pmod(hash(id, 'd'), {CHANGED}) = {cycle}"
    spark.sql(f"UPDATE lines SET price = (price + 13) % 1000 WHERE {drawn}")
    spark.sql(
        f"INSERT INTO lines (id, o, kind, price, day) SELECT id + {cycle} * {10 * rows}, o, kind, price, day FROM lines "
        f"WHERE id < {rows} AND {others}"
    )
    spark.sql(f"DELETE FROM lines WHERE id < {rows} AND {others}")
    spark.sql(f"UPDATE orders SET c = (c + 1) % 1000 WHERE pmod(hash(o), {CHANGED}) = {cycle}")


def _expire(spark: SparkSession) -> None:
    """Do what the clean-up of a log does after thirty days: delete the commits before a checkpoint."""
    for number in range(3):
        spark.sql(f"UPDATE lines SET price = price WHERE id = {number}")
    location = str(spark.sql("DESCRIBE DETAIL lines").collect()[0]["location"])
    log = Path(unquote(urlsplit(location).path)) / "_delta_log"
    last = int(json.loads((log / "_last_checkpoint").read_text())["version"])
    for version in range(last):
        for name in (f"{version:020d}.json", f"{version:020d}.crc"):
            (log / name).unlink(missing_ok=True)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
