"""Commands that only look: over hand-made logs, where no JVM can be started."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.command import COMMAND, Terminal, environment, pipe, without_java
from tests.unit.observe.lake import Lake
from trickle.model.definition import Took


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders; daily totals that lack two commits; a weekly report over them, suspended."""
    from datetime import UTC, datetime

    lake = Lake(tmp_path_factory.mktemp("shop") / "warehouse", now=datetime.now(UTC))
    lake.table("orders")
    lake.stream("daily", schedule="1h")
    took = Took(inserted=3, deleted=1, seconds=0.25, steps={"look": 0.1})
    lake.refresh("daily", {"orders": 0}, ago=600, mode="full", reason="FIRST_REFRESH: there was none", took=took)
    lake.write("orders", ago=300)
    lake.write("orders", ago=200)
    lake.stream(
        "weekly", **{"trickle.suspended": '{"cause": "failures", "code": "DIVIDE_BY_ZERO", "message": "by zero"}'}
    )
    lake.refresh("weekly", {"daily": 1}, ago=500, columns={"daily": ("day",)})
    return lake.folder


def test_status_of_a_warehouse_needs_no_java(shop):
    found = pipe("status", "--warehouse", shop, env=without_java())

    assert (found.code, found.err) == (0, "")
    heading, daily, weekly = found.out.splitlines()
    assert heading.split()[:2] == ["TABLE", "HEALTH"]
    assert "default.daily" in daily
    assert "behind" in daily
    assert "2 commits" in daily
    assert "[DIVIDE_BY_ZERO] by zero" in weekly
    assert "\x1b" not in found.out


def test_status_as_json(shop):
    found = pipe("status", "--warehouse", shop, "--format", "json", env=without_java())

    assert (found.code, found.err) == (0, "")
    assert found.json["schema"] == 1
    daily, weekly = found.json["tables"]
    assert set(daily) == {
        *("table", "health", "mode", "schedule", "version", "last_refresh", "last_mode", "last_reason", "age_seconds"),
        *("last_inserted", "last_deleted", "last_seconds", "lag_seconds", "sources", "next_due"),
        *("suspended", "problem"),
    }
    assert (daily["table"], daily["health"], daily["schedule"]) == ("default.daily", "behind", "1h")
    assert (daily["last_inserted"], daily["last_deleted"], daily["last_seconds"]) == (3, 1, 0.25)
    assert daily["last_refresh"].endswith("Z")
    assert daily["sources"][0] | {"oldest": None} == {
        "source": "orders",
        "included": 0,
        "newest": 2,
        "commits": 2,
        "oldest": None,
        "note": None,
    }
    assert (weekly["health"], weekly["suspended"]["code"]) == ("failed", "DIVIDE_BY_ZERO")


def test_a_check_fails_if_a_table_needs_somebody(shop):
    assert pipe("status", "--check", "--warehouse", shop, env=without_java()).code == 1
    assert pipe("status", "daily", "--check", "--warehouse", shop, env=without_java()).code == 0


def test_history(shop):
    text = pipe("history", "daily", "--warehouse", shop, env=without_java())
    found = pipe("history", "daily", "--warehouse", shop, "--format", "json", env=without_java())

    assert (text.code, text.err) == (0, "")
    assert "FIRST_REFRESH" in text.out.splitlines()[1]
    (past,) = found.json["refreshes"]
    assert found.json["table"] == past["table"] == "default.daily"
    assert (past["version"], past["mode"], past["reason"]) == (1, "full", "FIRST_REFRESH: there was none")
    assert (past["rows_inserted"], past["rows_deleted"], past["seconds"], past["steps"]) == (3, 1, 0.25, {"look": 0.1})
    assert past["frontier"] == {"orders": 0}


def test_tables(shop):
    text = pipe("tables", "--warehouse", shop, env=without_java())
    found = pipe("--format", "json", "--warehouse", shop, "tables", env=without_java())

    assert [line.split()[0] for line in text.out.splitlines()] == ["TABLE", "default.daily", "default.weekly"]
    assert [table["query"] for table in found.json["tables"]] == ["SELECT 1", "SELECT 1"]
    assert found.json["tables"][0]["location"] == str(shop / "daily")


def test_lineage(shop):
    text = pipe("lineage", "--warehouse", shop, env=without_java())
    mermaid = pipe("lineage", "weekly", "--mermaid", "--warehouse", shop, env=without_java())
    found = pipe("lineage", "--warehouse", shop, "--format", "json", env=without_java())

    assert text.out.splitlines() == ["default.weekly", "└─ default.daily: day", "   └─ default.orders (base)"]
    assert mermaid.out.startswith("flowchart LR\n")
    assert {"reader": "default.weekly", "source": "default.daily", "columns": ["day"]} in found.json["readings"]


def test_a_terminal_gets_colours_unless_it_wants_none(shop):
    coloured = Terminal("status", "--warehouse", shop, env=environment(COLUMNS="200"))
    plain = Terminal("status", "--warehouse", shop, env=environment(COLUMNS="200", NO_COLOR="1"))

    assert (coloured.end(), plain.end()) == (0, 0)
    assert "\x1b[33mbehind" in coloured.screen
    assert "behind" in plain.screen
    assert "\x1b[33m" not in plain.screen


def test_the_warehouse_is_found_by_its_variable_and_by_its_name(shop):
    by_variable = pipe("tables", env={**without_java(), "TRICKLE_WAREHOUSE": str(shop)})
    by_name = pipe("tables", cwd=shop.parent, env=without_java())

    assert by_variable.out == by_name.out
    assert "default.daily" in by_name.out


@pytest.mark.parametrize("command", ["status", "tables", "lineage"])
def test_an_empty_warehouse_has_no_stream_tables(tmp_path, command):
    text = pipe(command, "--warehouse", tmp_path, env=without_java())
    found = pipe(command, "--warehouse", tmp_path, "--format", "json", env=without_java())

    assert (text.code, text.out, text.err) == (0, "", "There are no stream tables here.\n")
    assert found.json["tables"] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("status", "nothing"), "[UNKNOWN_TABLE] 'default.nothing' does not exist."),
        (("history", "orders"), "[UNKNOWN_TABLE] 'default.orders' is a table, but not a stream table."),
        (("history", "dayly"), "Did you mean default.daily?"),
        (("history", "a b"), "[BAD_NAME]"),
        (("history",), "Missing argument 'NAME'"),
        (("history", "daily", "--limit", "0"), "--limit"),
        (("refrsh",), "No such command 'refrsh'"),
        (("status", "--frobnicate"), "No such option: --frobnicate"),
        (("status", "--format", "xml"), "'xml'"),
        (("status", "--conf", "spark.x"), "--conf takes NAME=VALUE, not 'spark.x'"),
        (("refresh", "--at", "orders"), "--at takes NAME=VALUE, not 'orders'"),
        (("refresh", "--at", "orders=new"), "--at takes TABLE=VERSION, and 'new' is not a version"),
        (("refresh", "--workers", "0"), "--workers"),
        (("run", "--for", "soon"), "[BAD_SCHEDULE]"),
        (("drop", "daily"), "drop asks first; in a script say --yes"),
    ],
)
def test_what_is_typed_wrong_is_a_usage_error(shop, arguments, text):
    found = pipe(*arguments, env={**without_java(), "TRICKLE_WAREHOUSE": str(shop)})

    assert (found.code, found.out) == (2, "")
    assert text in found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize("command", ["status", "tables", "refresh", "run"])
def test_a_warehouse_that_is_not_there_is_a_usage_error_and_is_not_made(tmp_path, command):
    named = pipe(command, "--warehouse", tmp_path / "nowhere", env=without_java())

    assert (named.code, named.out) == (2, "")
    assert "[NO_WAREHOUSE]" in named.err
    assert not (tmp_path / "nowhere").exists()


def test_no_warehouse_at_all_is_a_usage_error(tmp_path):
    unnamed = pipe("status", cwd=tmp_path, env=without_java())

    assert unnamed.code == 2
    assert "Use --warehouse DIR, or set TRICKLE_WAREHOUSE." in unnamed.err


def test_errors_are_json_too(shop):
    found = pipe("status", "nothing", "--warehouse", shop, "--format", "json", env=without_java())

    assert found.code == 2
    assert found.json["error"]["code"] == "UNKNOWN_TABLE"


def test_a_stack_trace_is_for_those_who_ask(shop):
    found = pipe("status", "nothing", "--warehouse", shop, "--debug", env=without_java())

    assert found.code == 2
    assert "Traceback" in found.err


@pytest.mark.parametrize(
    "command",
    ["", "status", "history", "tables", "lineage", "refresh", "run", "verify", "explain", "drop", "suspend", "resume"],
)
def test_help_has_an_example(command):
    found = pipe(*command.split(), "--help", env=without_java())

    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(f"Usage: trickle {command}".rstrip())
    assert not command or f"Example:\n    trickle {command}" in found.out


def test_help_comes_at_once():
    took = []
    for _ in range(10):
        began = time.perf_counter()
        assert pipe("--help").code == 0
        took.append(time.perf_counter() - began)

    # The best of ten: other tests run beside this one.
    assert min(took) < 0.3


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    """A terminal to type at: the end of whoever types, and the end of who reads."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_the_question_of_drop_is_beside_the_answer(shop, keyboard):
    typed, stdin = keyboard
    os.write(typed, b"n\n")
    command = [*COMMAND, "drop", "daily", "--warehouse", str(shop), "--format", "json"]
    done = subprocess.run(
        command, stdin=stdin, capture_output=True, text=True, env=without_java(), timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "Drop daily and its data?" in done.stderr


def test_ctrl_c_at_the_question_of_drop_ends_with_its_own_code(shop):
    terminal = Terminal("drop", "daily", "--warehouse", shop)
    terminal.read_until("its data?")
    terminal.type("\x03")

    assert terminal.end() == 130
    assert "Interrupted." in terminal.screen
    assert "Traceback" not in terminal.screen
