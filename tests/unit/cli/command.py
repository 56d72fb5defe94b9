"""Drives the command as a shell does: through pipes, or in a pseudo-terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "trickle"]


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        """Standard output, which must be JSON alone."""
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """Return the environment, less what would colour or redirect an answer."""
    unset = ("TRICKLE_WAREHOUSE", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    return {**{name: value for name, value in os.environ.items() if name not in unset}, "TERM": "xterm", **more}


def without_java() -> dict[str, str]:
    """Return an environment in which no JVM can be started."""
    return environment(JAVA_HOME="/nowhere", PATH="/nowhere")


def pipe(*arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Answer:
    """Run a command through pipes."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env or environment(),
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self, *arguments: str | Path, env: dict[str, str] | None = None, columns: int = 160) -> None:
        """Start it."""
        self.screen = ""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execvpe(COMMAND[0], [*COMMAND, *map(str, arguments)], env or environment(COLUMNS=str(columns)))

    def read_until(self, text: str, seconds: float = 120) -> str:
        """Read what it writes until it has written a text."""
        ends = time.monotonic() + seconds
        while text not in self.screen:
            left = ends - time.monotonic()
            assert left > 0, f"{text!r} did not appear:\n{self.screen}"
            if select.select([self._fd], [], [], min(left, 1.0))[0] and not self._read():
                break
        assert text in self.screen, f"it ended before {text!r}:\n{self.screen}"
        return self.screen

    def type(self, text: str) -> None:
        """Type something; ``\\x03`` is Ctrl-C."""
        os.write(self._fd, text.encode())

    def end(self) -> int:
        """Read the rest, and return the exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self._pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        with contextlib.suppress(OSError):  # Linux's way to say that it ended
            found = os.read(self._fd, 65_536)
            self.screen += found.decode(errors="replace")
            return bool(found)
        return False


@contextlib.contextmanager
def background(*arguments: str | Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a command with its answers in pipes; end it if nobody did."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env or environment(),
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
