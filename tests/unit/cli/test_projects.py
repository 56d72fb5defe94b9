"""The command in the folder of a project, as far as it needs no Spark."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.unit.cli.command import Terminal, environment, pipe, without_java
from tests.unit.observe.lake import Lake


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example project, with a stream table in its schema."""
    from datetime import UTC, datetime

    folder = tmp_path_factory.mktemp("projects") / "shop"
    made = pipe("init", folder, "--format", "json", env=without_java())
    assert (made.code, made.err) == (0, "")
    assert set(made.json["files"]) >= {
        "trickle.yml",
        "tables/best_days.py",
        "tables/customers.sql",
        "scripts/new_orders.py",
    }
    text = (folder / "trickle.yml").read_text().replace("defaults:\n", "defaults:\n  schema: sales\n", 1)
    (folder / "trickle.yml").write_text(text)
    lake = Lake(folder / "warehouse" / "sales.db", now=datetime.now(UTC))
    lake.table("raw")
    lake.stream("daily")
    lake.refresh("daily", {"raw": 0}, ago=60)
    return folder


def test_init_makes_all_or_nothing(tmp_path):
    named = pipe("init", tmp_path / "a" / "shop", env=without_java())
    again = pipe("init", tmp_path / "a" / "shop", env=without_java())
    empty = pipe("init", tmp_path / "b", "--empty", env=without_java())

    assert (named.code, again.code, again.out) == (0, 2, "")
    assert "[FOLDER_TAKEN]" in again.err
    assert empty.code == 0
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"trickle.yml", "tables"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
    assert (tmp_path / "a" / "shop" / "warehouse" / "orders" / "_delta_log").is_dir()


def test_the_script_of_the_example_writes_orders(tmp_path):
    shop = tmp_path / "shop"
    pipe("init", shop, env=without_java())
    before = DeltaTable(shop / "warehouse" / "orders").version()

    done = subprocess.run(
        [sys.executable, shop / "scripts" / "new_orders.py"], capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("20 orders more")
    assert DeltaTable(shop / "warehouse" / "orders").version() > before


@pytest.mark.parametrize("arguments", [("status",), ("history", "daily"), ("lineage",), ("tables",)])
def test_what_only_looks_finds_the_project_from_below_and_starts_no_java(shop, arguments):
    began = _seconds_of_children()
    found = pipe(*arguments, cwd=shop / "tables", env=without_java())
    took = _seconds_of_children() - began

    assert (found.code, found.err) == (0, "")
    assert "sales.daily" in found.out or arguments[0] == "history"
    assert took < 2  # of the processor: on the clock, the tests beside this one would be measured too


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_project_is_named_from_elsewhere(shop, tmp_path):
    named = pipe("status", "daily", "--project", shop, cwd=tmp_path, env=without_java())
    other = pipe("status", "--project", shop, "--warehouse", tmp_path, cwd=tmp_path, env=without_java())
    missing = pipe("status", "--project", tmp_path, cwd=tmp_path, env=without_java())

    assert "sales.daily" in named.out
    assert (other.code, other.err) == (0, "There are no stream tables here.\n")
    assert (missing.code, missing.out) == (2, "")
    assert "[NO_PROJECT]" in missing.err


@pytest.mark.parametrize("command", ["plan", "apply", "validate"])
def test_without_a_project_there_is_nothing_to_do(tmp_path, command):
    found = pipe(command, cwd=tmp_path, env=without_java())

    assert (found.code, found.out) == (2, "")
    assert "[NO_PROJECT]" in found.err
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name: [", "[BAD_PROJECT] trickle.yml:1:"),
        ("name: a\nwarehose: b", "[UNKNOWN_KEY] trickle.yml:2:"),
        ("name: a\nfiles: [none/*]", "[NO_FILES]"),
        ("name: a\nwarehouse: trickle.yml", "[NOT_A_WAREHOUSE]"),
        ("name: a\nwarehouse: table", "[NOT_A_WAREHOUSE]"),
    ],
)
def test_a_wrong_project_is_told_before_spark_starts(tmp_path, text, code):
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    (tmp_path / "one.sql").write_text("SELECT 1 AS one")
    (tmp_path / "trickle.yml").write_text(text)
    found = pipe("apply", cwd=tmp_path, env=without_java())

    assert (found.code, found.out) == (2, "")
    assert code in found.err
    assert len(found.err.splitlines()) == 1


def test_errors_of_projects_are_json_too(tmp_path):
    (tmp_path / "trickle.yml").write_text("name: a\nwarehose: b")
    found = pipe("plan", "--format", "json", cwd=tmp_path, env=without_java())

    assert found.code == 2
    assert found.json["error"]["code"] == "UNKNOWN_KEY"


def test_an_environment_changes_the_warehouse(shop, tmp_path):
    (tmp_path / "trickle.yml").write_text(f"name: a\nenvironments: {{x: {{warehouse: {shop}/warehouse}}}}")
    without = pipe("status", cwd=tmp_path, env=without_java())
    found = pipe("status", "--env", "x", cwd=tmp_path, env=without_java())
    unknown = pipe("status", "--env", "y", cwd=tmp_path, env=without_java())

    assert without.code == 2
    assert "[NO_WAREHOUSE]" in without.err
    assert "sales.daily" in found.out
    assert "[UNKNOWN_ENVIRONMENT]" in unknown.err


@pytest.mark.parametrize("command", ["init", "plan", "apply", "validate", "demo", "doctor", "refresh"])
def test_help_has_an_example(command):
    found = pipe(command, "--help", env=without_java())

    assert (found.code, found.err) == (0, "")
    assert f"Example:\n    trickle {command}" in found.out


def test_the_doctor_says_what_is_wrong_and_the_fix(tmp_path):
    (tmp_path / "file").write_text("")
    healthy = pipe("doctor", "--quick", "--warehouse", tmp_path, "--format", "json", cwd=tmp_path)
    sick = pipe(
        "doctor", "--warehouse", tmp_path / "file", "--format", "json", cwd=tmp_path, env=without_java() | BROKEN
    )
    text = pipe("doctor", "--quick", "--warehouse", tmp_path, cwd=tmp_path, env=without_java() | {"NO_COLOR": "1"})

    assert healthy.code == 0, healthy
    assert {check["health"] for check in healthy.json["checks"]} <= {"ok", "warning"}
    assert (sick.code, sick.json["ok"], sick.err) == (1, False, "")
    wrong = {check["check"]: check for check in sick.json["checks"] if check["health"] == "failed"}
    assert set(wrong) >= {"spark", "warehouse"}
    assert all(check["fix"] for check in wrong.values())
    assert sick.json["checks"][-1]["health"] == "skipped"
    assert text.out.splitlines()[0].split() == ["CHECK", "HEALTH", "FOUND", "FIX"]


BROKEN = {"SPARK_REMOTE": "sc://x"}


def test_a_place_that_takes_no_commits_is_told(tmp_path):
    found = pipe("doctor", "--quick", "--warehouse", "/proc", "--format", "json", cwd=tmp_path)  # for root, too

    assert found.code == 1
    (wrong,) = [check for check in found.json["checks"] if check["health"] == "failed"]
    assert wrong["check"] == "warehouse"
    assert wrong["fix"]


def test_shells_complete_the_command():
    shown = pipe(env=environment(_TRICKLE_COMPLETE="complete_bash", COMP_WORDS="trickle sta", COMP_CWORD="1"))

    assert "status" in shown.out.split()


def test_shells_complete_the_names_of_tables(shop):
    words = {"_TRICKLE_COMPLETE": "complete_bash", "COMP_WORDS": "trickle history da", "COMP_CWORD": "2"}
    shown = pipe(cwd=shop, env=without_java() | words)

    assert shown.out.split() == ["daily"]


def test_a_terminal_shows_the_doctor_in_colours(tmp_path):
    terminal = Terminal("doctor", "--quick", "--warehouse", tmp_path, env=environment(COLUMNS="200"))

    assert terminal.end() == 0
    assert "\x1b[32mok" in terminal.screen
    assert "Traceback" not in terminal.screen
