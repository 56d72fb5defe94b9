"""A project of Spark Declarative Pipelines, in the layout that its ``init`` makes, runs unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.unit.cli.command import pipe
from trickle import SparkError, Trickle, TrickleError
from trickle.project.load import open_project
from trickle.project.work import Work

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
storage: file://{storage}
database: pipelines
libraries:
  - glob:
      include: transformations/**
"""

FILES = {
    # In the order of their names, each file reads what later ones define.
    "a_report.sql": """
        CREATE MATERIALIZED VIEW report COMMENT 'best days' AS
        WITH best AS (SELECT day, total FROM daily WHERE total > 10)
        SELECT best.day, best.total, by_region.region FROM best JOIN by_region ON best.total >= by_region.total;

        -- A view in a view.
        CREATE TEMPORARY VIEW big_orders AS SELECT * FROM good_orders WHERE amount >= 10;
    """,
    "b_tables.py": """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.materialized_view(comment="by day", table_properties={"team": "sales"}, partition_cols=["day"])
def daily() -> DataFrame:
    return spark.table("good_orders").groupBy("day").agg(F.sum("amount").alias("total"))


@dp.materialized_view
def by_region() -> DataFrame:
    return spark.read.table("enriched").groupBy("region").agg(F.sum("amount").alias("total"))


@dp.materialized_view(name="regions", schema="region STRING, n BIGINT")
def region_counts():
    return spark.sql("SELECT region, count(*) AS n FROM pipelines.customers GROUP BY region")


@dp.temporary_view
def enriched():
    return spark.table("good_orders").join(spark.table("customers"), "customer")


@dp.temporary_view(name="good_orders")
def only_good():
    return spark.table("orders").where("amount > 0")
""",
    "c/streams.py": """
from pyspark import pipelines as dp


@dp.table(comment="as they come")
def orders():
    return spark.readStream.table("raw_orders")


dp.create_streaming_table("events")


@dp.append_flow(target="events", name="from_orders")
def order_events():
    return spark.readStream.table("orders").selectExpr("id", "'order' AS kind")


@dp.append_flow(target="events")
def from_returns():
    return spark.readStream.table("raw_returns").selectExpr("id", "'return' AS kind")
""",
    "d_big.sql": """
        CREATE MATERIALIZED VIEW big AS SELECT customer, count(*) AS n FROM big_orders GROUP BY customer;
        CREATE STREAMING TABLE paid (id BIGINT, amount INT) AS SELECT id, amount FROM STREAM orders WHERE amount > 0;
        CREATE STREAMING TABLE alarms;
        CREATE FLOW big_alarms AS INSERT INTO alarms BY NAME SELECT id, amount FROM STREAM(orders) WHERE amount > 50;
    """,
}
TABLES = {"report", "daily", "by_region", "regions", "big"}


@pytest.fixture(scope="module")
def trickle(spark):
    spark.sql("CREATE DATABASE pipelines")
    spark.sql("USE pipelines")
    spark.sql("CREATE TABLE raw_orders (id BIGINT, customer INT, day INT, amount INT) USING delta")
    spark.sql("CREATE TABLE raw_returns (id BIGINT) USING delta")
    spark.sql("CREATE TABLE customers (customer INT, region STRING) USING delta")
    spark.sql("INSERT INTO raw_orders VALUES (1, 1, 1, 5), (2, 1, 1, 10), (3, 2, 2, 20), (4, 2, 2, -1)")
    spark.sql("INSERT INTO raw_returns VALUES (1)")
    spark.sql("INSERT INTO customers VALUES (1, 'north'), (2, 'south')")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE pipelines CASCADE")


def make(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / "transformations" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "pipeline-storage").mkdir()
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC.format(storage=folder / "pipeline-storage"))
    return spec


def rows(spark, table: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.table(table).collect())


def test_a_pipelines_project_runs_unchanged(trickle, spark, tmp_path):
    work = Work(trickle, open_project(make(tmp_path, FILES)))
    work.enter()

    dry = work.plan()
    assert {step.name.removeprefix("pipelines."): step.action for step in dry.steps} == dict.fromkeys(TABLES, "create")
    assert trickle.tables() == []
    assert not spark.catalog.tableExists("orders")

    plan = work.apply()
    assert {step.name.removeprefix("pipelines.") for step in plan.steps} == TABLES
    assert rows(spark, "daily") == [(1, 15), (2, 20)]
    assert rows(spark, "report") == [(1, 15, "north"), (2, 20, "north"), (2, 20, "south")]
    assert rows(spark, "big") == [(1, 1), (2, 1)]
    assert rows(spark, "events") == [(1, "order"), (1, "return"), (2, "order"), (3, "order"), (4, "order")]
    assert rows(spark, "paid") == [(1, 5), (2, 10), (3, 20)]
    assert rows(spark, "alarms") == []
    assert [view.name for view in spark.catalog.listTables() if view.isTemporary] == []
    assert trickle.table("daily").options.partition_by == ("day",)
    assert trickle.table("report").options.comment == "best days"
    assert {step.action for step in work.apply().steps} == {"nothing"}

    # New rows come through the streams, and the stream tables follow by their changes.
    spark.sql("INSERT INTO raw_orders VALUES (5, 2, 3, 60)")
    spark.sql("INSERT INTO raw_returns VALUES (2)")
    assert set(work.fill()) == {"pipelines.orders", "pipelines.events", "pipelines.paid", "pipelines.alarms"}
    report = trickle.refresh_all()
    assert report
    assert {done.mode for done in report.tables.values()} == {"differential", "no_data"}
    assert rows(spark, "daily") == [(1, 15), (2, 20), (3, 60)]
    assert rows(spark, "events")[-1] == (5, "order")
    assert rows(spark, "alarms") == [(5, 60)]
    assert all(trickle.verify(name) for name in ("daily", "report"))

    # A streaming table that was dropped is filled from the beginning.
    spark.sql("DROP TABLE alarms")
    work.fill()
    assert rows(spark, "alarms") == [(5, 60)]


DP = "from pyspark import pipelines as dp\n"
WRONG = {
    "CYCLE": (
        {"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM b; CREATE MATERIALIZED VIEW b AS SELECT * FROM a"},
        ":1",
    ),
    "DUPLICATE_NAME": (
        {
            "a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS one",
            "b.py": "from pyspark import pipelines as dp\n@dp.materialized_view\ndef a():\n    return spark.range(1)",
        },
        "transformations/a.sql:1",
    ),
    "BAD_SQL": (
        {
            "a.sql": "CREATE MATERIALIZED VIEW a AS SELECT customer FROM customers",
            "b.sql": "CREATE MATERIALIZED VIEW b AS\nSELECT\n nothing FROM a",
        },
        "transformations/b.sql:3",
    ),
    "BAD_PYTHON": (
        {"a.py": "from pyspark import pipelines as dp\n@dp.materialized_view\ndef a():\n    return 1 / 0"},
        "transformations/a.py:4: ZeroDivisionError",
    ),
    "NOT_A_STREAM": (
        {"a.py": "from pyspark import pipelines as dp\n@dp.table\ndef a():\n    return spark.table('customers')"},
        "transformations/a.py:2",
    ),
    "BAD_FORMAT": (
        {
            "a.py": "from pyspark import pipelines as dp\n@dp.materialized_view(format='parquet')\ndef a():\n    return 1"
        },
        "transformations/a.py:2",
    ),
    "OTHER_COLUMNS": (
        {"a.py": f"{DP}@dp.materialized_view(schema='x INT')\ndef a():\n    return spark.range(1)"},
        "id bigint",
    ),
    "UNKNOWN_TARGET": ({"a.sql": "CREATE FLOW f AS INSERT INTO t BY NAME SELECT 1"}, "transformations/a.sql:1"),
    "NO_FLOW": ({"a.sql": "CREATE STREAMING TABLE t"}, "transformations/a.sql:1"),
    "NOT_A_DEFINITION": ({"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1;\nDROP TABLE customers"}, "a.sql:2"),
    "STREAM_OVER_TABLE": (
        {
            "a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS one",
            "b.sql": "CREATE STREAMING TABLE b AS SELECT * FROM STREAM a",
        },
        "b.sql:1",
    ),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_wrong_project_changes_nothing(trickle, spark, tmp_path, code):
    files, place = WRONG[code]
    work = Work(trickle, open_project(make(tmp_path, files)))
    work.enter()
    before = {table.name for table in spark.catalog.listTables()}

    with pytest.raises(TrickleError) as raised:
        work.apply()

    assert raised.value.code == code
    assert place in raised.value.message
    assert "\n" not in str(raised.value)
    assert {table.name for table in spark.catalog.listTables()} == before


def test_a_flow_that_fails_says_where(trickle, tmp_path):
    files = {"a.sql": "CREATE STREAMING TABLE a AS\nSELECT 1 / (id - 1) AS x FROM STREAM raw_returns"}
    work = Work(trickle, open_project(make(tmp_path, files)))
    work.enter()

    with pytest.raises(SparkError, match=r"transformations/a\.sql:1"):
        work.apply()


RAW = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.table
def orders():
    return spark.readStream.table("raw_orders")


@dp.materialized_view
def total():
    return spark.table("orders").groupBy().sum("id")
"""


@pytest.mark.slow
def test_a_project_of_spark_pipelines_init_runs_by_the_command(tmp_path, monkeypatch):
    from pyspark.pipelines.init_cli import init

    few = ("--conf", "spark.driver.memory=1g", "--master", "local[1]")
    monkeypatch.chdir(tmp_path)
    init("lake")
    folder = tmp_path / "lake"
    raw = folder / "spark-warehouse" / "raw_orders"
    (folder / "transformations" / "streams.py").write_text(RAW)
    write_deltalake(raw, pa.table({"id": [1, 2]}))

    planned = pipe("plan", "--format", "json", *few, cwd=folder)
    applied = pipe("apply", "--format", "json", *few, cwd=folder)
    write_deltalake(raw, pa.table({"id": [10]}), mode="append")
    refreshed = pipe("refresh", "--format", "json", *few, cwd=folder)
    scheduled = pipe("sql", "ALTER STREAM TABLE total SET TRIGGER ON UPDATE", *few, cwd=folder)
    write_deltalake(raw, pa.table({"id": [100]}), mode="append")
    looped = pipe("run", "--for", "25s", "--format", "json", *few, cwd=folder)
    shown = pipe("sql", "SELECT * FROM total", "--format", "json", *few, cwd=folder)

    names = {"default.example_python_materialized_view", "default.example_sql_materialized_view", "default.total"}
    assert [(found.code, found.err) for found in (planned, applied, refreshed, scheduled)] == 4 * [(0, "")]
    assert {step["table"]: step["action"] for step in planned.json["steps"]} == dict.fromkeys(names, "create")
    assert {step["table"] for step in applied.json["steps"]} == names
    modes = {table["table"]: table["mode"] for table in refreshed.json["tables"]}
    assert (set(modes), modes["default.total"]) == (names, "differential")
    assert looped.code == 0, looped
    assert [list(row.values()) for row in shown.json["answers"][0]["rows"]] == [[113]]
