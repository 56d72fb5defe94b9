"""The processes of a soak: two runners, of which one is killed now and then, and a writer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

_STOP_SECONDS: Final = 120.0


@dataclass(slots=True)
class Process:
    """A module that runs by itself, its output in files."""

    process: subprocess.Popen[bytes]
    out: Path

    @classmethod
    def start(cls, module: str, out: Path, *arguments: str) -> Process:
        """Start a module of this package, as the leader of a group of its own."""
        command = [sys.executable, "-m", f"trickle.testing.soak.{module}", *arguments]
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
            )
        return cls(started, out)

    def lines(self) -> list[dict[str, Any]]:
        """Return what it has told, without a line that is only half written."""
        text = self.out.read_text(encoding="utf-8")
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]

    def end(self) -> int:
        """Ask it to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill(with_children=True)
            return -1

    def kill(self, *, with_children: bool) -> None:
        """End it at once, by a signal that no process hears; perhaps with its JVM."""
        if self.process.poll() is None:
            (os.killpg if with_children else os.kill)(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(slots=True)
class Runners:
    """Runners on one warehouse; one that is killed is followed by a new one.

    Attributes:
        kills: How many were killed.
        took_over: The seconds from the death of each leader until the other runner led.
        failures: What went wrong.
    """

    folder: Path
    logs: Path
    random: Random
    processes: list[Process] = field(default_factory=list)
    kills: int = 0
    took_over: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _all: list[Process] = field(default_factory=list)
    _waits: tuple[float, Process] | None = None

    def start(self) -> None:
        """Start one more."""
        process = Process.start("runner", self.logs / f"runner-{len(self._all)}.log", str(self.folder))
        self.processes.append(process)
        self._all.append(process)

    def look(self) -> None:
        """Take note of who leads, and of runners that ended by themselves."""
        for process in [p for p in self.processes if p.process.poll() is not None]:
            said = process.out.with_suffix(".err").read_text(encoding="utf-8")[-2000:]
            self.failures.append(f"a runner ended with code {process.process.returncode}: {said}")
            self.processes.remove(process)
            self.start()
        if self._waits is not None:
            died, follower = self._waits
            led = [line["at"] for line in follower.lines() if line["kind"] == "leads" and line["at"] > died]
            if led:
                self.took_over.append(led[0] - died)
                self._waits = None

    def kill_one(self) -> bool:
        """Kill a runner, mostly the leader, at any moment after a first run that it led; say whether one was.

        The other one must have begun: how long it takes to start a JVM is not what is looked at.
        """
        leader = next((p for p in self.processes if _leads(p)), None)
        if self._waits is not None or leader is None or not all(_has_told(p, "ready") for p in self.processes):
            return False
        if not _has_told(leader, "run"):
            return False
        others = [p for p in self.processes if p is not leader]
        victim = leader if self.random.random() < 0.75 else others[0]
        victim.kill(with_children=self.random.random() < 0.5)
        self.kills += 1
        self.processes.remove(victim)
        if victim is leader:
            self._waits = time.time(), others[0]
        self.start()
        return True

    def end(self) -> None:
        """Ask all to end, and see that they do."""
        for process in self.processes:
            if (code := process.end()) != 0:
                self.failures.append(f"a runner ended with code {code} on SIGTERM")

    def kill_all(self) -> None:
        """Leave none behind."""
        for process in self.processes:
            process.kill(with_children=True)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Return what all runners have told of a kind."""
        return [line for process in self._all for line in process.lines() if line["kind"] == kind]


def _has_told(process: Process, kind: str) -> bool:
    return any(line["kind"] == kind for line in process.lines())


def _leads(process: Process) -> bool:
    kinds = [line["kind"] for line in process.lines() if line["kind"] in ("leads", "follows")]
    return kinds[-1:] == ["leads"]
