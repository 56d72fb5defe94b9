"""Every table format is one the contract tests run over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trickle.engine.arguments import read_options
from trickle.errors import DefinitionError
from trickle.tables.formats import FORMATS, RESULT_FORMAT

ROOT = Path(__file__).parents[2]


def test_the_contract_tests_run_over_every_format() -> None:
    rows = (ROOT / "tests" / "contract" / "conftest.py").read_text()
    covered = {name.partition("-")[0] for name in re.findall(r'^    "([a-z-]+)": ', rows, flags=re.MULTILINE)}

    assert set(FORMATS) <= covered
    assert RESULT_FORMAT in FORMATS.values()
    assert [facts.name for facts in FORMATS.values()] == list(FORMATS)


@pytest.mark.parametrize("name", [*sorted(RESULT_FORMAT.own_properties), "trickle.definition"])
def test_properties_that_trickle_sets_cannot_be_set(name: str) -> None:
    with pytest.raises(DefinitionError, match=name) as refused:
        read_options({"properties": {"mine": "yes", name: "no"}})

    assert refused.value.code == "BAD_OPTION"
    assert read_options({"properties": {"mine": "yes"}}).properties == {"mine": "yes"}
