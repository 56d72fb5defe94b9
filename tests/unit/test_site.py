"""The site is built strictly, and its generated page says what the command says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    python = (tmp_path / "site" / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    assert "A <em>stream table</em> is a Delta table" in home
    assert "write_and_refresh" in python
    assert "read your own writes" in python
    for page in (ROOT / "docs").rglob("*.md"):
        name = "." if page.name == "README.md" else page.relative_to(ROOT / "docs").with_suffix("")
        assert (tmp_path / "site" / name / "index.html").exists(), page


@pytest.mark.parametrize("name", ["codes_page.py", "command_page.py", "metrics_page.py", "sources_page.py"])
def test_generated_pages_say_what_the_code_says(name):
    script = ROOT / "scripts" / name

    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0, f"run `python {script}`"


def test_every_law_of_an_operator_has_its_proof():
    laws = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    operators = (ROOT / "docs" / "reference" / "operators.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", laws, flags=re.MULTILINE)[2:-1]

    for section in sections:
        proofs = section.split("**Law.**")[1:]
        assert proofs, section.splitlines()[0]
        assert all("**Proof.**" in proof and "∎" in proof for proof in proofs), section.splitlines()[0]
    assert laws.count("**Law.**") >= 10
    for law in (
        "Δ(L ⟕ R) = ΔL ⋈ R1 + L0 ⋈ ΔR + pad(ΔL ▷ R1 + L' ▷ R1 - L' ▷ R0)",
        "Δ(L × v(R)) = ΔL × v(R1) + L0 × (v(R1) - v(R0))",
        "ΔL ⋈ R1 + L0 ⋈ ΔR",
        "J(ΔL, R1) + J(L', R1) - J(L', R0)",
        "state(R0) + state(ΔR)",
        "F(Dk, E1)",
    ):
        assert law in laws
        assert law in operators
