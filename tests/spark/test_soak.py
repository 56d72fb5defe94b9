"""A short soak; `make soak` runs longer ones."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_short_soak_holds():
    command = [sys.executable, "-m", "trickle.testing.soak", "--minutes", "1.5", "--seed", "7", "--kill-every", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runners killed" in done.stdout
