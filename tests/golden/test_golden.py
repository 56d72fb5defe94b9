"""What each law and each pass makes of a small plan, as text beside it: `make golden` writes it anew, the diff is the review.

Each pair is also evaluated over a few rows.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from trickle import rules
from trickle.compile.program import CHANGE_PASSES
from trickle.compile.program import PASSES as PLAN_PASSES
from trickle.model.options import OPTIMISATIONS
from trickle.rules import CHANGE_RULES
from trickle.testing.evaluate import evaluate, plus

from .passes import ELSEWHERE, PASSES
from .rules import RULES
from .tables import at_old, rows_for

FOLDER = Path(__file__).parent
FILES = {
    **{FOLDER / "rules" / f"{name}.txt": cases for name, cases in RULES.items()},
    **{FOLDER / "passes" / f"{name}.txt": cases for name, cases in PASSES.items()},
}
BY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")


@BY_FILE
def test_plans_are_those_of_the_file(file):
    text = "\n\n".join(case.text for case in FILES[file]()) + "\n"
    if "REWRITE_GOLDEN" in os.environ:
        file.write_text(text)

    assert text == file.read_text(), "if this is what you meant, run `make golden` and review the diff"


@BY_FILE
def test_a_plan_changes_where_it_should_and_nowhere_else(file):
    for case in FILES[file]():
        before, after = case.text.split("\n", 1)[1].split("\n=>\n")
        assert (before != after) == case.fires, case.title
        assert case.title.startswith("no change") != case.fires


@BY_FILE
def test_a_result_means_what_it_should(file):
    for case in FILES[file]():
        if case.means == "change":
            rows = rows_for(case.before)
            change = evaluate(case.after, rows)
            assert plus(evaluate(at_old(case.before), rows), change) == evaluate(case.before, rows), case.title
        elif case.means == "same":
            rows = rows_for(case.before)
            assert evaluate(case.after, rows) == evaluate(case.before, rows), case.title


def test_every_law_and_every_pass_has_a_file():
    kinds = {re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower() for kind in CHANGE_RULES}

    assert kinds <= set(RULES), "in tests/golden/rules.py"
    assert {*PLAN_PASSES, *CHANGE_PASSES} <= set(PASSES), "in tests/golden/passes.py"
    assert set(PASSES) | set(ELSEWHERE) >= OPTIMISATIONS
    assert {file for folder in ("rules", "passes") for file in (FOLDER / folder).iterdir()} == set(FILES)


def test_every_rule_that_is_no_law_of_a_node_has_a_file():
    """How states are maintained, and how a top is compared with stored rows: one module each."""
    of_nodes = {rule.change.__module__.rpartition(".")[2] for rule in CHANGE_RULES.values()}
    shared = {"__init__", "derive"}  # the catalogue, and what laws are written in
    others = {file.stem for file in Path(rules.__file__).parent.glob("*.py")} - of_nodes - shared

    assert others
    assert others <= set(RULES), "in tests/golden/rules.py"


def test_every_pass_has_a_case_where_it_does_nothing():
    switched = {"replace_keys", "stored_top"}  # where these do not apply, a change is derived all the same
    without = [name for name, cases in PASSES.items() if all(c.fires for c in cases()) and name not in switched]

    assert without == []
