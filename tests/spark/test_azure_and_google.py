"""Stream tables on Azurite and on fake-gcs-server: Hadoop's clients and the driver's work on the same tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from trickle.testing.emulators import azure_jars, azurite, emulator, fake_gcs, google_jars

PROGRAM = Path(__file__).with_name("on_one_bucket.py")
SECONDS = 900


@dataclass
class Place:
    """Where a warehouse is."""

    warehouse: str
    settings: dict[str, str]

    def start(self, *words):
        command = [sys.executable, str(PROGRAM), self.warehouse, json.dumps(self.settings), *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        return end(self.start(*words))

    def command(self, *words):
        """Run the command there."""
        pairs = [word for key, text in self.settings.items() for word in ("--conf", f"{key}={text}")]
        command = [sys.executable, "-m", "trickle", *words, "--warehouse", self.warehouse, *pairs, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        return done.returncode, json.loads(done.stdout), done.stderr


def end(process):
    shown, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors[-4000:]
    return json.loads(shown.splitlines()[-1])


@contextmanager
def on_azure() -> Iterator[Place]:
    with azurite() as server:
        server.make_container("lake")
        jars = {"spark.jars": ",".join(map(str, azure_jars()))}
        yield Place(f"{server.root('lake')}/shop", {**jars, **server.settings})


@contextmanager
def on_google() -> Iterator[Place]:
    with fake_gcs() as server:
        server.make_bucket("lake")
        jars = {"spark.jars": ",".join(map(str, google_jars()))}
        yield Place("gs://lake/shop", {**jars, **server.settings})


@pytest.fixture(scope="module", params=[on_azure, on_google], ids=["Azurite", "fake-gcs-server"])
def place(request) -> Iterator[Place]:
    with emulator(request.param()) as found:
        found.run("make")
        yield found


pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS)]


def test_the_driver_refreshes_there_and_the_loop_leads_by_a_lease_there(place):
    toured = place.run("tour")

    assert toured["modes"] == ["differential", "differential"]
    assert toured["warnings"] == []  # such as that only Spark can reach the tables
    assert toured["followed"] == 1
    assert toured["terms"] > 0
    assert toured["verified"] == [True, True]


def test_two_refreshers_and_a_writer_lose_and_double_nothing(place):
    started = [place.start("refresh", 10), place.start("refresh", 10), place.start("write", 60)]
    try:
        found = [end(process) for process in started]
    finally:
        for process in started:
            process.kill()
    checked = place.run("check")

    assert [one["others"] for one in found[:2]] == [[], []]
    assert checked["verified"] == [True, True]
    assert checked["rows"][0] == checked["rows"][1] == checked["distinct"]
    assert checked["counted"][0] == checked["counted"][1]


def test_the_command_reads_the_logs_there_without_spark(place, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    code, shown, errors = place.command("status")

    assert code == 0, errors
    assert {table["table"] for table in shown["tables"]} == {"default.totals", "default.copy"}


def test_doctor_finds_nothing_wrong_there(place):
    code, shown, errors = place.command("doctor")

    assert code == 0, errors
    checks = {one["check"]: one for one in shown["checks"]}
    assert (checks["storage"]["health"], checks["start"]["health"]) == ("ok", "ok")
    assert "takes commits" in checks["storage"]["found"]
