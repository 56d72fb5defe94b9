"""Stream tables at work: a shop's orders change, and five stream tables follow by computing only the change.

Run it with `make demo`, or `python examples/demo.py --lines 2000000 --warehouse /tmp/shop`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table
from rich.text import Text

import trickle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LINES_PER_ORDER = 4
ON_COMMIT = ("last_orders", "no_returns")
LOOP_SECONDS = 15

STREAM_TABLES = {
    "revenue_by_day": """
        SELECT c.region, o.day, count(*) AS lines, sum(l.quantity * l.price) AS revenue
        FROM lines l JOIN orders o ON l.order_id = o.id JOIN customers c ON o.customer_id = c.id
        GROUP BY c.region, o.day""",
    "last_orders": """
        SELECT c.id, c.region, recent.order_id, recent.day
        FROM customers c, LATERAL (
            SELECT o.id AS order_id, o.day FROM orders o
            WHERE o.customer_id = c.id ORDER BY o.day DESC, o.id DESC LIMIT 3) AS recent""",
    "sellers_rank": """
        SELECT category, product, sold, rank() OVER (PARTITION BY category ORDER BY sold DESC) AS place
        FROM (SELECT product % 40 AS category, product, sum(quantity) AS sold FROM lines GROUP BY product)""",
    "no_returns": """
        SELECT c.id, c.region FROM customers c
        WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'returned')""",
    "biggest_lines": """
        SELECT order_id, product, quantity * price AS amount
        FROM lines ORDER BY amount DESC, order_id, product LIMIT 20""",
}
# The same question asked in other words: `verify` and the engine share one plan of the query, this does not.
IN_OTHER_WORDS = {
    "last_orders": """
        SELECT id, region, order_id, day FROM (
            SELECT c.id, c.region, o.id AS order_id, o.day,
                   row_number() OVER (PARTITION BY c.id ORDER BY o.day DESC, o.id DESC) AS place
            FROM customers c JOIN orders o ON o.customer_id = c.id)
        WHERE place <= 3""",
}
SHOWS = {
    "revenue_by_day": "join of three, GROUP BY",
    "last_orders": "LATERAL, top 3 each",
    "sellers_rank": "window over GROUP BY",
    "no_returns": "NOT EXISTS",
    "biggest_lines": "ORDER BY … LIMIT 20",
}

# One batch: new orders, returned ones, corrected prices, cancelled orders, a customer who moved. {first} and {last}
# are the order ids of the batch's inserts, {b} its number.
CHANGES = (
    """INSERT INTO orders
       SELECT id, CAST(hash(id, {b}) & 16383 AS BIGINT) AS customer_id, date_add(DATE'2026-01-01', {b}) AS day,
              'open' AS status FROM range({first}, {last})""",
    """INSERT INTO lines
       SELECT o.id AS order_id, l.id AS line, hash(o.id, l.id) & 1023 AS product,
       1 + (hash(l.id, o.id) & 7) AS quantity,
       CAST((hash(o.id, l.id, {b}) & 65535) / 100 AS DECIMAL(10, 2)) AS price
       FROM range({first}, {last}) o CROSS JOIN range(4) l""",
    "UPDATE orders SET status = 'returned' WHERE id BETWEEN {b} * 500 AND {b} * 500 + 40",
    "UPDATE lines SET price = price + 1.50 WHERE order_id BETWEEN {b} * 900 AND {b} * 900 + 50",
    "DELETE FROM lines WHERE order_id BETWEEN {b} * 1300 AND {b} * 1300 + 30",
    "DELETE FROM orders WHERE id BETWEEN {b} * 1300 AND {b} * 1300 + 30",
    "UPDATE customers SET region = 'north' WHERE id BETWEEN {b} * 10 AND {b} * 10 + 2",
)

# Where there is no terminal to measure (a pipe, a log), wide enough for the table.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 130)


@dataclass(frozen=True, slots=True)
class Line:
    """What the table shows of one stream table."""

    name: str
    report: trickle.RefreshReport
    full_seconds: float
    verified: trickle.VerifyReport
    differences: int

    @property
    def is_right(self) -> bool:
        """Equal to the engine's recompute and to what Spark itself answers."""
        return self.verified.ok and not self.differences


def main() -> int:
    """Run the demo; 1 if a stream table does not equal its query."""
    options = parse(sys.argv[1:])
    shutil.rmtree(options.warehouse, ignore_errors=True)
    console.print("\n[bold]Trickle[/]: stream tables on Spark and Delta Lake\n")

    with step("Starting Spark"):
        spark = trickle.local_session(options.warehouse, memory="3g")
        t = trickle.Trickle(spark)
    orders = options.lines // LINES_PER_ORDER
    with step(f"Making the sources: 16,384 customers, {orders:,} orders, {options.lines:,} order lines"):
        make_sources(spark, orders)
    for name, query in STREAM_TABLES.items():
        with step(f"Creating the stream table {name}"):
            t.create(name, query)

    reports: dict[str, trickle.RefreshReport] = {}
    for batch in (1, 2):
        with step(f"Batch {batch}: inserting, updating and deleting in all three sources"):
            change_sources(spark, batch, first=orders + batch * 1000)
        for name in STREAM_TABLES:
            with step(f"  refreshing {name}"):
                reports[name] = t.refresh(name)

    lines = []
    for name, report in reports.items():
        with step(f"Checking {name} against a recompute, and timing a full refresh"):
            verified = t.verify(name)
            differences = compare(spark, name)
            full_seconds = t.refresh(name, full=True).seconds
        lines.append(Line(name, report, full_seconds, verified, differences))
    console.print(summary(lines, options.lines))
    if options.steps:
        for line in lines:
            steps = ", ".join(f"{what} {seconds:.2f}" for what, seconds in line.report.steps.items())
            console.print(f"  {line.name}: {steps}")
    console.print(
        f"\nThe tables are in [bold]{options.warehouse}[/]: ordinary Delta tables, readable by any Delta reader."
    )
    for name in ON_COMMIT:
        t.alter(name, schedule="on commit")
    spark.stop()
    for words in (["status"], ["history", "revenue_by_day"]):
        show_command([*words, "--warehouse", str(options.warehouse)])
    show_loop(options.warehouse, first=2 * orders)
    return 0 if all(line.is_right for line in lines) else 1


def show_command(words: list[str]) -> None:
    """Run the command as a user would; it reads the logs alone."""
    console.print(f"\n[bold]$ trickle {' '.join(words)}[/]")
    subprocess.run([sys.executable, "-m", "trickle", *words], check=True)


def show_loop(warehouse: Path, first: int) -> None:
    """Let the loop run for some seconds while orders come in, committed without Spark."""
    words = ["run", "--for", f"{LOOP_SECONDS}s", "--warehouse", str(warehouse)]
    console.print(f"\n[bold]$ trickle {' '.join(words)}[/]   [dim](meanwhile, orders come in)[/]")
    with subprocess.Popen([sys.executable, "-m", "trickle", *words]) as loop:
        while loop.poll() is None:
            ids = range(first, first + 20)
            orders = {"id": ids, "customer_id": [id_ % 16384 for id_ in ids], "day": [date(2026, 2, 1)] * len(ids)}
            types = {"id": pa.int64(), "customer_id": pa.int64(), "day": pa.date32()}
            columns = {name: pa.array(values, types[name]) for name, values in orders.items()}
            rows = pa.table({**columns, "status": ["returned"] * len(ids)})
            write_deltalake(warehouse / "orders", rows, mode="append")
            first += len(ids)
            time.sleep(1)
    if loop.returncode:
        raise subprocess.CalledProcessError(loop.returncode, words)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_200_000, help="order lines to start with")
    parser.add_argument(
        "--warehouse", type=Path, default=Path("demo-warehouse"), help="folder of the tables; emptied first"
    )
    parser.add_argument("--steps", action="store_true", help="show the seconds of each step of a refresh")
    return parser.parse_args(arguments)


def make_sources(spark: SparkSession, orders: int) -> None:
    """Create the three source tables, with invented but reproducible rows."""
    tables = {
        "customers": """SELECT id, element_at(array('north', 'east', 'south', 'west'), CAST(1 + id % 4 AS INT))
                        AS region FROM range(16384)""",
        "orders": f"""SELECT id, CAST(hash(id) & 16383 AS BIGINT) AS customer_id,
                      date_add(DATE'2025-01-01', hash(id, 1) & 255) AS day,
                      IF(hash(id, 2) & 63 = 0, 'returned', 'done') AS status FROM range({orders})""",
        "lines": f"""SELECT o.id AS order_id, l.id AS line, hash(o.id, l.id) & 1023 AS product,
                     1 + (hash(l.id, o.id) & 7) AS quantity,
                     CAST((hash(o.id, l.id, 3) & 65535) / 100 AS DECIMAL(10, 2)) AS price
                     FROM range({orders}) o CROSS JOIN range({LINES_PER_ORDER}) l""",
    }
    for name, query in tables.items():
        spark.sql(f"CREATE TABLE {name} USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS {query}")


def change_sources(spark: SparkSession, batch: int, first: int) -> None:
    """Apply one batch of changes."""
    for change in CHANGES:
        spark.sql(change.format(b=batch, first=first, last=first + 200))


def compare(spark: SparkSession, name: str) -> int:
    """Count the rows in which a stream table differs from what plain Spark answers, multiplicities included."""
    table, query = spark.table(name), spark.sql(IN_OTHER_WORDS.get(name, STREAM_TABLES[name]))
    return table.exceptAll(query).count() + query.exceptAll(table).count()


def summary(lines: list[Line], size: int) -> Table:
    """The result, one row per stream table."""
    table = Table(title=f"The second batch, over {size:,} order lines", title_justify="left", title_style="bold")
    for heading in ("stream table", "shows", "mode"):
        table.add_column(heading)
    for heading in ("rows +", "rows −", "seconds", "full", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("equal to its query")
    for line in lines:
        report, verified = line.report, line.verified
        table.add_row(
            line.name,
            SHOWS[line.name],
            report.mode if report.reason is None else f"{report.mode}: {report.reason.code}",
            f"{report.rows_inserted:,}",
            f"{report.rows_deleted:,}",
            f"{report.seconds:.2f}",
            f"{line.full_seconds:.2f}",
            f"{line.full_seconds / report.seconds:.1f} ×",
            Text(f"✔ {verified.rows:,} rows", style="green")
            if line.is_right
            else Text(f"✘ {verified.missing + verified.extra + line.differences} rows differ", style="red"),
        )
    return table


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    start = time.perf_counter()
    with console.status(what):
        yield
    console.print(f"  {what:<86} [dim]{time.perf_counter() - start:5.1f} s[/]")


if __name__ == "__main__":
    sys.exit(main())
