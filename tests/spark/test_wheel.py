"""The built wheel, in an environment of its own, does what README begins with."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.spark.test_pages import ROOT, check_status, quick_start
from tests.unit.cli.command import environment


def run(*command: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_wheel_leads_from_init_to_status_in_a_clean_environment(tmp_path):
    clean = {name: value for name, value in environment().items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    build = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "dist", ROOT)
    run(sys.executable, *build, cwd=tmp_path, env=clean)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    own = {**clean, "PATH": f"{tmp_path / 'venv' / 'bin'}:{clean['PATH']}"}

    run("pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=tmp_path, env=own)
    where = run("python", "-c", "import trickle; print(trickle.__file__)", cwd=tmp_path, env=own)
    shown = run("bash", "-ec", quick_start(), cwd=tmp_path, env=own)

    assert Path(where.strip()).is_relative_to(tmp_path)
    check_status(shown)
