"""The warehouse folder is the catalog: tables appear and vanish with their folders, whichever process made them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from trickle.warehouse import sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

OTHER_PROCESS = """if True:
    import sys
    from trickle.session import local_session
    from trickle.warehouse import sync
    spark = local_session(sys.argv[1], cores=1)
    for line in sys.stdin:
        sync(spark)
        spark.sql(line)
        print("done", flush=True)
"""


@pytest.fixture(scope="module")
def elsewhere(spark: SparkSession, warehouse_folder: Path) -> Iterator[Callable[[str], None]]:
    """Runs SQL in another process on the same folder."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(warehouse_folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(sql: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(sql + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        yield run
        process.communicate()


@pytest.fixture(autouse=True)
def clean(spark: SparkSession) -> Iterator[None]:
    drop_all(spark)
    yield
    drop_all(spark)


def drop_all(spark: SparkSession) -> None:
    sync(spark)
    for name in ("orders", "folded", "kept", "plain", "view_of_kept"):
        kind = "VIEW" if name.startswith("view") else "TABLE"
        spark.sql(f"DROP {kind} IF EXISTS {name}")
    spark.sql("DROP DATABASE IF EXISTS shop CASCADE")


def names(spark: SparkSession, database: str = "default") -> set[str]:
    return {row.tableName for row in spark.sql(f"SHOW TABLES IN {database}").collect()}


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row[0] for row in spark.table(table).collect())


@pytest.mark.slow
def test_table_of_another_process_is_seen(spark: SparkSession, elsewhere: Callable[[str], None]) -> None:
    elsewhere("CREATE TABLE Orders USING delta AS SELECT id FROM range(3)")

    sync(spark)

    assert ids(spark, "ORDERS") == [0, 1, 2]


@pytest.mark.slow
def test_database_of_another_process_comes_and_goes(spark: SparkSession, elsewhere: Callable[[str], None]) -> None:
    elsewhere("CREATE DATABASE Shop")
    elsewhere("CREATE TABLE shop.orders USING delta AS SELECT 7 AS id")
    sync(spark)
    assert ids(spark, "shop.orders") == [7]

    elsewhere("DROP DATABASE shop CASCADE")
    sync(spark)

    assert not spark.catalog.databaseExists("shop")


@pytest.mark.parametrize("inserts", [0, 1, 3], ids=["fewer versions", "as many versions", "more versions"])
def test_table_dropped_and_made_anew_elsewhere_shows_its_new_contents(
    spark: SparkSession, elsewhere: Callable[[str], None], inserts: int
) -> None:
    spark.sql("CREATE TABLE orders USING delta AS SELECT id FROM range(3)")
    spark.sql("INSERT INTO orders VALUES (9)")
    assert ids(spark, "orders") == [0, 1, 2, 9]

    elsewhere("DROP TABLE orders")
    elsewhere("CREATE TABLE orders USING delta AS SELECT id + 100 AS id FROM range(2)")
    for value in range(inserts):
        elsewhere(f"INSERT INTO orders VALUES ({value})")
    sync(spark)

    assert ids(spark, "orders") == [*range(inserts), 100, 101]


def test_dropping_a_table_seen_by_sync_removes_its_files(
    spark: SparkSession, elsewhere: Callable[[str], None], warehouse_folder: Path
) -> None:
    elsewhere("CREATE TABLE orders USING delta AS SELECT 1 AS id")
    sync(spark)

    spark.sql("DROP TABLE orders")
    sync(spark)

    assert "orders" not in names(spark)
    assert not (warehouse_folder / "orders").exists()


def test_table_whose_folder_is_gone_is_forgotten(spark: SparkSession, warehouse_folder: Path) -> None:
    spark.sql("CREATE TABLE orders USING delta AS SELECT 1 AS id")

    shutil.rmtree(warehouse_folder / "orders")
    sync(spark)

    assert "orders" not in names(spark)


def test_folder_in_mixed_case_is_a_table_in_lower_case(spark: SparkSession, warehouse_folder: Path) -> None:
    spark.range(2).write.format("delta").save(str(warehouse_folder / "FoldeD"))

    sync(spark)

    assert ids(spark, "folded") == [0, 1]


def test_what_is_not_a_delta_table_of_the_folder_is_left_alone(
    spark: SparkSession, warehouse_folder: Path, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE kept USING delta LOCATION '{tmp_path}/kept' AS SELECT 1 AS id")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW view_of_kept AS SELECT * FROM kept")
    (warehouse_folder / "not a name" / "_delta_log").mkdir(parents=True)
    (warehouse_folder / "unborn" / "_delta_log").mkdir(parents=True)

    sync(spark)

    assert {"kept", "plain", "view_of_kept"} <= names(spark)
    assert not {"not a name", "unborn"} & names(spark)


def test_sync_without_changes_is_cheap(spark: SparkSession) -> None:
    sync(spark)

    def seconds() -> float:
        start = time.perf_counter()
        sync(spark)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(50)) < 0.01
