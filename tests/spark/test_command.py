"""The command over real tables: each one starts a Spark of its own."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.command import Answer, Terminal, background, environment, pipe
from trickle.api import Trickle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FEW = ("--conf", "spark.driver.memory=1g", "--master", "local[1]")


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[Trickle]:
    """Two stream tables, one over the other, that follow the commits of orders."""
    spark.sql("CREATE SCHEMA command")
    spark.sql("CREATE TABLE command.orders (day INT, amount INT) USING delta")
    spark.sql("INSERT INTO command.orders VALUES (1, 10), (2, 20)")
    t = Trickle(spark)
    query = "SELECT day, sum(amount) AS total FROM command.orders GROUP BY day"
    t.create("command.daily", query, schedule="on commit")
    t.create("command.best", "SELECT max(total) AS most FROM command.daily", schedule="on commit")
    yield t
    spark.sql("DROP SCHEMA command CASCADE")


def status(warehouse: Path) -> dict[str, dict[str, object]]:
    found = pipe("status", "command.daily", "command.best", "--warehouse", warehouse, "--format", "json")
    assert (found.code, found.err) == (0, "")
    return {table["table"]: table for table in found.json["tables"]}


def test_refresh_brings_tables_to_one_cut(shop, spark, warehouse_folder):
    spark.sql("INSERT INTO command.orders VALUES (3, 5)")
    before = status(warehouse_folder)
    names = ("command.best", "--warehouse", warehouse_folder, "--format", "json")
    found = pipe("refresh", *names, "--at", "command.orders=2", *FEW)

    assert {table["health"] for table in before.values()} == {"behind"}
    assert (found.code, found.err) == (0, "")
    assert (found.json["ok"], found.json["errors"], found.json["cut"]) == (True, [], {"command.orders": 2})
    daily, best = found.json["tables"]
    assert (daily["table"], daily["mode"], daily["rows_inserted"]) == ("command.daily", "differential", 1)
    assert (best["table"], best["reason"]) == ("command.best", None)
    assert {table["health"] for table in status(warehouse_folder).values()} == {"ok"}


@pytest.mark.slow
def test_ctrl_c_ends_the_loop_with_consistent_tables(shop, spark, warehouse_folder):
    terminal = Terminal("run", "--warehouse", warehouse_folder, *FEW, env=environment(COLUMNS="200"))
    terminal.read_until("HEALTH")
    spark.sql("INSERT INTO command.orders VALUES (1, 1)")
    terminal.read_until("differential  +1 -1")
    terminal.type("\x03")

    assert terminal.end() == 130
    assert "Traceback" not in terminal.screen
    assert "Stopping after the refresh at work" in terminal.screen
    assert shop.verify("command.daily")


@pytest.mark.slow
def test_the_loop_in_a_pipe_tells_events_as_json_and_ends_on_sigterm(shop, spark, warehouse_folder):
    with background("run", "--warehouse", warehouse_folder, "--format", "json", *FEW) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        spark.sql("INSERT INTO command.orders VALUES (2, 2)")
        events = [json.loads(process.stdout.readline())]
        while events[-1].get("details", {}).get("table") != "command.best" and len(events) < 10:
            events.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)

    assert started["event"] == "started"
    assert [(event["event"], event["details"]["table"]) for event in events][:2] == [
        ("refreshed", "command.daily"),
        ("refreshed", "command.best"),
    ]
    assert events[0]["details"]["rows_inserted"] == 1
    assert (process.returncode, err) == (0, "")
    assert all(json.loads(line)["schema"] == 1 for line in out.splitlines())


@pytest.mark.slow
def test_a_loop_of_limited_time_ends_with_1_if_a_table_failed(shop, spark, warehouse_folder):
    spark.sql("CREATE TABLE command.divisors USING delta AS SELECT 1 AS d")
    shop.create("command.shares", "SELECT 10 / d AS share FROM command.divisors", schedule="on commit")
    arguments = ("--warehouse", warehouse_folder, "--format", "json", *FEW)

    well = pipe("run", "--for", "2s", *arguments)
    spark.sql("INSERT INTO command.divisors VALUES (0)")
    badly = pipe("run", "--for", "20s", *arguments)
    shop.drop("command.shares")

    assert "DIVIDE_BY_ZERO" in badly.out
    assert (well.code, badly.code) == (0, 1), (well, badly)


@pytest.mark.slow
def test_the_other_verbs(shop, spark, warehouse_folder):
    def run(*arguments: str) -> Answer:
        return pipe(*arguments, "--warehouse", warehouse_folder, *FEW)

    spark.sql("CREATE TABLE command.few USING delta AS SELECT 1 AS a")
    shop.create("command.gone", "SELECT day, 10 / amount AS share FROM command.orders")

    plain = run("refresh", "command.few")
    assert (plain.code, plain.out) == (2, "")
    assert "not a stream table" in plain.err
    assert run("refresh", "command.daily", "--at", "command.orders=99").code == 2
    explained = run("explain", "command.daily")
    assert (explained.code, explained.err) == (0, "")
    assert "Next refresh" in explained.out
    parts = run("explain", "command.daily", "--format", "json").json
    assert set(parts) == {"schema", "table", "mode", "parts", "obstacles", "next_refresh", "text"}
    assert (parts["mode"], parts["obstacles"], parts["next_refresh"]["mode"]) == ("auto", [], "no_data")
    assert set(parts["parts"][-1]["plan"]) == {"text", "law", "cost", "inputs"}
    assert parts["text"].strip() == explained.out.strip()
    spark.sql("INSERT INTO command.orders VALUES (9, 0)")
    failed = run("refresh", "command.gone")
    assert failed.code == 1
    assert "DIVIDE_BY_ZERO" in failed.out
    assert "Traceback" not in failed.err
    spark.sql("DELETE FROM command.gone WHERE day = 1")
    verified = run("verify", "command.gone", "--format", "json")
    assert (verified.code, verified.json["ok"]) == (1, False)
    suspended = run("suspend", "command.gone", "--reason", "wait for orders")
    assert (suspended.code, suspended.err) == (0, "command.gone: suspended.\n")
    assert "wait for orders" in run("status", "command.gone").out
    assert run("resume", "command.gone", "--skip").code == 2
    assert run("resume", "command.gone").code == 0
    dropped = run("drop", "command.gone", "--yes")
    assert (dropped.code, dropped.err) == (0, "command.gone: dropped.\n")
    assert "command.gone" not in run("tables").out


@pytest.mark.slow
def test_a_session_of_ones_own_has_the_tables_of_its_catalog(tmp_path):
    folder = f"spark.sql.warehouse.dir={tmp_path / 'tables'}"
    found = pipe("tables", "--master", "local[1]", "--conf", folder, "--format", "json", cwd=tmp_path)
    failed = pipe("tables", "--master", "nonsense://x", cwd=tmp_path)

    assert (found.code, found.err, found.json) == (0, "", {"schema": 1, "tables": []})
    assert (failed.code, failed.out) == (1, "")
    assert "[SPARK_FAILED]" in failed.err
    assert len(failed.err.splitlines()) == 1


def test_ctrl_c_ends_a_refresh(warehouse_folder, shop):
    terminal = Terminal("refresh", "--full", "--warehouse", warehouse_folder, *FEW, env=environment(COLUMNS="200"))
    terminal.read_until("Starting Spark")
    terminal.type("\x03")

    assert terminal.end() == 130
    assert "Interrupted." in terminal.screen
    assert "Traceback" not in terminal.screen


def test_a_terminal_shows_what_the_doctor_found_after_it_started_spark(tmp_path):
    terminal = Terminal("doctor", "--warehouse", tmp_path, *FEW[:2], env=environment(COLUMNS="200"))

    assert terminal.end() == 0, terminal.screen
    assert "CHECK" in terminal.screen
    assert "Spark starts, and refreshed a stream table" in terminal.screen


@pytest.mark.slow
def test_the_doctor_starts_the_session_that_the_settings_ask_for(tmp_path):
    folder = f"spark.sql.warehouse.dir={tmp_path / 'tables'}"
    well = pipe("doctor", "--master", "local[1]", "--conf", folder, "--format", "json", cwd=tmp_path)
    wrong = pipe("doctor", "--master", "nonsense://x", "--format", "json", cwd=tmp_path)
    other = pipe("doctor", "--conf", "spark.sql.extensions=a.B", "--format", "json", cwd=tmp_path)

    assert well.code == 0, well
    assert well.json["checks"][-1]["found"] == "Spark starts at local[1], runs queries, and sees 0 stream tables"
    for found, code in ((wrong, "SPARK_FAILED"), (other, "DELTA_MISSING")):
        assert (found.code, found.json["checks"][-1]["check"]) == (1, "start")
        assert code in found.json["checks"][-1]["found"]
        assert found.json["checks"][-1]["fix"]
