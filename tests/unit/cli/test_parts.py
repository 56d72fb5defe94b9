"""The parts of the command that can be tried by themselves."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.observe.lake import Lake
from trickle.cli.output import plain, print_json
from trickle.cli.run import EventLines, Interruption
from trickle.cli.settings import Format, Settings
from trickle.cli.shown import duration, status_table
from trickle.cli.spark import _machine_settings
from trickle.errors import SessionError, SparkError
from trickle.model.definition import Took


@pytest.fixture
def shop(tmp_path: Path) -> Lake:
    """Orders, and totals that have all of them."""
    lake = Lake(tmp_path / "warehouse", now=datetime.now(UTC))
    lake.table("orders")
    lake.stream("totals")
    lake.refresh("totals", {"orders": 0}, ago=100)
    return lake


def test_what_is_typed_after_the_command_is_stronger():
    first = Settings(Path("a"), "local[1]", {"x": "1", "y": "1"}, Format.JSON)
    later = Settings(Path("b"), conf={"y": "2"}, debug=True)

    assert later.over(first) == Settings(Path("b"), "local[1]", {"x": "1", "y": "2"}, Format.JSON, debug=True)


def test_a_session_of_ones_own_needs_settings_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRICKLE_WAREHOUSE", raising=False)
    (tmp_path / "warehouse").mkdir()

    assert Settings(master="yarn").has_own_session
    assert not Settings().has_own_session
    assert not Settings(str(tmp_path), master="yarn").has_own_session
    assert Settings().folder() == str(tmp_path / "warehouse")
    with pytest.raises(SessionError, match="NO_WAREHOUSE"):
        Settings(str(tmp_path / "none")).folder()
    monkeypatch.setenv("TRICKLE_WAREHOUSE", str(tmp_path))
    assert Settings(master="yarn").folder() == str(tmp_path)


def test_a_warehouse_may_be_on_an_object_store(monkeypatch):
    monkeypatch.setenv("TRICKLE_WAREHOUSE", "s3a://bucket/shop/")

    assert Settings().folder() == "s3a://bucket/shop"


def test_settings_of_the_machine_are_read_as_spark_reads_them(tmp_path, monkeypatch):
    lines = "# ours\n\nspark.sql.extensions  some.Extension\nspark.jars=/a.jar,/b.jar\nspark.empty\n"
    (tmp_path / "spark-defaults.conf").write_text(lines)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert _machine_settings() == {"spark.sql.extensions": "some.Extension", "spark.jars": "/a.jar,/b.jar"}

    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert _machine_settings() == {}


@dataclass(frozen=True)
class Thing:
    """Something to be written."""

    when: datetime
    rows: tuple[tuple[object, ...], ...]


def test_json_has_moments_in_utc_and_unknown_values_as_text(capsys):
    when = datetime.fromisoformat("2026-06-01T14:00:00+02:00")

    assert plain(Thing(when, ((1, None, Path("/a"), b"x"),))) == {
        "when": "2026-06-01T12:00:00.000Z",
        "rows": [[1, None, "/a", "b'x'"]],
    }
    assert plain([math.nan, math.inf, -math.inf, 0.5]) == ["NaN", "Infinity", "-Infinity", 0.5]
    print_json({"é": 1})
    assert capsys.readouterr().out == '{"schema": 1, "é": 1}\n'


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.0s"), (9.96, "10.0s"), (59.7, "1m"), (3600, "1h"), (3661, "1h1m"), (172_800, "2d")]
)
def test_durations_are_short(seconds, text):
    assert duration(seconds) == text


def test_a_status_without_anything_known_can_be_shown(shop):
    shop.stream("never")

    assert status_table(shop.observer().status(), datetime.now(UTC)).row_count == 2


def test_a_status_tells_rows_and_seconds_of_the_last_refresh(shop):
    shop.refresh("totals", {"orders": 0}, ago=50, took=Took(inserted=1200, deleted=3, seconds=0.5))

    table = status_table(shop.observer().status("totals"), datetime.now(UTC))

    cells = {column.header: [*column.cells] for column in table.columns}
    assert (cells["ROWS +"], cells["ROWS -"], cells["SECONDS"]) == (["1,200"], ["3"], ["0.50"])


def test_each_refresh_is_told_once_in_the_order_of_commits(shop, capsys):
    lines, observer = EventLines(Settings()), shop.observer()
    lines.begin(observer)
    lines.look(observer)
    shop.stream("weekly")
    shop.refresh("totals", {"orders": 0}, ago=50, took=Took(inserted=1200, deleted=3, seconds=0.5))
    shop.refresh("totals", {"orders": 0}, ago=40, mode="full", reason="REQUESTED: asked for")
    lines.look(observer)
    lines.look(observer)

    began, first, second = capsys.readouterr().out.splitlines()
    assert "running: 1 stream table;" in began
    assert first.endswith("default.totals  differential  +1,200 -3 in 0.50 s")
    assert second.endswith("default.totals  full  +? -? (REQUESTED: asked for)")


def test_a_change_of_health_and_warnings_are_events(shop, capsys):
    lines, observer = EventLines(Settings(format=Format.JSON)), shop.observer()
    with lines.shown():
        lines.look(observer)
        shop.alter("totals", {"trickle.suspended": '{"cause": "user"}'})
        lines.look(observer)
        logging.getLogger("trickle").warning("stream table %s was not refreshed", "totals")
        logging.getLogger("trickle").info("not told")
        shop.alter("totals", {})
        lines.look(observer)
    logging.getLogger("trickle.other").debug("nor is this")

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(event["event"], event["details"].get("health")) for event in lines] == [
        ("health", "suspended"),
        ("warning", None),
        ("health", "ok"),
    ]
    assert lines[1]["details"]["message"] == "stream table totals was not refreshed"


def test_the_first_signal_ends_the_loop_and_the_second_at_once():
    by_hand, by_system = Interruption(), Interruption()
    by_hand(signal.SIGINT, None)
    by_system(signal.SIGTERM, None)

    assert by_hand.stopped.is_set()
    assert (by_hand.code, by_system.code, Interruption().code) == (130, 0, 0)
    with pytest.raises(KeyboardInterrupt):
        by_hand(signal.SIGINT, None)


def test_a_swallowed_ctrl_c_is_raised_again(monkeypatch):
    from trickle.cli import interrupt

    monkeypatch.setattr(interrupt, "_seen", threading.Event())
    before = signal.getsignal(signal.SIGINT)
    try:
        interrupt.watch_interrupts()
        with contextlib.suppress(BaseException):  # as some libraries do while they are imported
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check_interrupts()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_ctrl_c_in_code_that_runs_from_text_ends_with_the_code_of_one(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "import signal, sys\n"
        "from trickle.cli import app\n"
        "from trickle.cli.settings import Settings\n"
        "run = lambda settings: exec('signal.raise_signal(signal.SIGINT)')\n"
        "sys.exit(app._run(run, Settings(), {}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("error", [SparkError("SPARK_ERROR", "the JVM does not answer"), RuntimeError("broken")])
def test_what_fails_for_a_ctrl_c_is_told_as_one(monkeypatch, capsys, caplog, error):
    from trickle.cli import app, interrupt

    def body(_: Settings) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            logging.exception("as py4j does")
        raise error

    monkeypatch.setattr(logging.getLogger(), "filters", [])
    monkeypatch.setattr(interrupt, "_seen", threading.Event())
    before = signal.getsignal(signal.SIGINT)
    try:
        code = app._run(body, Settings(), {})
    finally:
        signal.signal(signal.SIGINT, before)

    assert (code, *capsys.readouterr()) == (130, "", "Interrupted.\n")
    assert caplog.records == []
