"""Every table format is one the contract tests run over."""

from __future__ import annotations

import re
from pathlib import Path

from trickle.tables.formats import FORMATS, RESULT_FORMAT

ROOT = Path(__file__).parents[2]


def test_the_contract_tests_run_over_every_format() -> None:
    rows = (ROOT / "tests" / "contract" / "conftest.py").read_text()
    covered = {name.partition("-")[0] for name in re.findall(r'^    "([a-z-]+)": ', rows, flags=re.MULTILINE)}

    assert set(FORMATS) <= covered
    assert RESULT_FORMAT in FORMATS


def test_nothing_above_the_tables_names_a_format() -> None:
    inside = ROOT / "src" / "trickle"
    above = [p for p in inside.rglob("*.py") if not p.is_relative_to(inside / "tables")]

    named = [
        f"{p.relative_to(inside)}: {name}"
        for p in above
        for name in FORMATS
        if f"trickle.tables.{name}" in p.read_text()
    ]

    assert not named
