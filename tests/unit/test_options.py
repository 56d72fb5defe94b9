"""Options and regimes: what is refused, and that no limit is out of a small table's reach."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest

import trickle
from trickle.compile.program import CHANGE_PASSES, PASSES
from trickle.errors import DefinitionError
from trickle.model.options import DEFAULT, ENOUGH_MEMORY, OPTIMISATIONS, Options, limits, memory_bytes, with_disabled
from trickle.testing.regimes import REGIMES, drawn, regime

SOURCES = Path(trickle.__file__).parent


def test_every_limit_is_in_a_regime():
    untouched = {
        limit.name for limit in limits() if all(getattr(o, limit.name) == limit.default for o in REGIMES.values())
    }

    assert not untouched


def test_limits_stand_in_the_options_alone():
    # Facts about types, protocols and numbers are no limits: no other value would do.
    facts = {"MAX_DIGITS", "_MAX_DIGITS", "_MAX_IDS", "_MAX_PARTS", "_MAX_LEGACY_WRITER", "_MAX_MAGNITUDES"}
    limit = re.compile(r"^(_?(?:MOST|MAX|KEPT|LEAST|MIN)_\w+)(?::[^=\n]+)? = ", re.MULTILINE)
    found = {
        f"{path.relative_to(SOURCES)}: {name}"
        for path in SOURCES.rglob("*.py")
        for name in limit.findall(path.read_text(encoding="utf-8"))
        if name not in facts
    }

    assert not found


def test_every_option_is_described():
    for option in fields(Options):
        assert option.metadata["unit"]
        assert option.metadata["text"].endswith(".")


def test_every_pass_can_be_switched_off():
    assert {*PASSES, *CHANGE_PASSES} <= OPTIMISATIONS


@pytest.mark.parametrize(
    "values",
    [
        *({"whole_rows": value} for value in (-1, "10", True, None)),
        {"snapshots_kept": 0},
        {"whole_rows": 2**31 - 1},
        {"column_cache_bytes": 2**63},
        *({"disable": value} for value in (None, 7, [1])),
        {"stored_plans": 1},
    ],
)
def test_values_out_of_range_are_named(values):
    with pytest.raises(DefinitionError) as error:
        Options(**values)

    assert error.value.code == "BAD_OPTION"
    assert next(iter(values)) in error.value.message


def test_unknown_options_are_named_with_those_there_are():
    for make in (Options, partial(replace, DEFAULT)):
        with pytest.raises(DefinitionError) as error:
            make(whole_row=3)
        assert (error.value.code, "whole_rows" in error.value.hint) == ("UNKNOWN_OPTION", True)
    with pytest.raises(DefinitionError) as error:
        Options(zzz=3)
    assert all(f.name in error.value.hint for f in fields(Options))


def test_one_name_is_a_set_of_names():
    assert Options(disable="key_lookup").disable == {"key_lookup"}


def test_unknown_optimisations_are_named():
    with pytest.raises(DefinitionError) as error:
        with_disabled(DEFAULT, {"look_ups"})

    assert (error.value.code, "key_lookup" in error.value.hint) == ("UNKNOWN_OPTION", True)


def test_something_else_is_no_options():
    with pytest.raises(DefinitionError) as error:
        with_disabled({"whole_rows": 1}, ())

    assert error.value.code == "BAD_OPTION"


def test_unknown_regimes_are_named():
    with pytest.raises(DefinitionError) as error:
        regime("lookups")

    assert (error.value.code, "look-ups" in error.value.hint) == ("UNKNOWN_REGIME", True)


def test_regimes_are_drawn_evenly():
    assert {drawn(f"case {n}") for n in range(200)} == set(REGIMES)


def test_the_column_cache_takes_no_more_than_a_16th_of_the_memory():
    assert DEFAULT.cache_bytes <= memory_bytes() // 16
    assert Options(column_cache_bytes=5).cache_bytes == 5


def test_the_page_of_options_says_what_the_code_says():
    script = Path(__file__).parents[2] / "scripts" / "options_page.py"

    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0, f"run `python {script}`"


def test_little_memory_lowers_what_the_driver_holds():
    half = Options(commit_rows=10).within(ENOUGH_MEMORY // 2)

    assert half.driver_change_rows == DEFAULT.driver_change_rows // 2
    assert half.commit_rows == 5
    assert half.cache_bytes == ENOUGH_MEMORY // 32
    assert half.state_rows == DEFAULT.state_rows


def test_enough_memory_changes_nothing():
    assert DEFAULT.within(ENOUGH_MEMORY) is DEFAULT
