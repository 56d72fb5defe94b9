"""The walk for a new operator names the files that a node needs, and shows them as they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add-an-operator.md").read_text()
SOURCE = ROOT / "src/trickle"

STEPS = re.findall(r"^## \d\. .*?`([^`]+)`", PAGE, flags=re.MULTILINE)
OPTIONAL = re.findall(r"^\| `(src/[^`]+\.py)` \|", PAGE, flags=re.MULTILINE)


def files_that_name(node: str) -> set[str]:
    """Find the modules whose code, not only its prose, names a node."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        defined = any(isinstance(n, ast.ClassDef) and n.name == node for n in ast.walk(tree))
        if defined or any(isinstance(n, ast.Name) and n.id == node for n in ast.walk(tree)):
            found.add(str(file.relative_to(ROOT)))
    return found


def test_an_operator_takes_six_source_files():
    assert len(STEPS) == 6
    assert "A new node touches six source files." in PAGE


@pytest.mark.parametrize("node", ["Expand", "RowWise", "GroupMap", "Repeat", "Values", "When"])
def test_no_operator_takes_more(node):
    """Nodes that other laws and passes do not build on; those of joins and groups are what these are written in."""
    assert 4 <= len(files_that_name(node) - set(OPTIONAL)) <= len(STEPS)


def test_the_steps_are_the_files_that_the_example_needs():
    assert files_that_name("Expand") - set(OPTIONAL) == set(STEPS)


def test_every_file_named_is_there():
    named = re.findall(r"`((?:src/|tests/|catalyst/|rules/|compile/|algebra/)[\w/]+(?:\.py)?/?)`", PAGE)
    missing = [n for n in named if not (ROOT / n).exists() and not (SOURCE / n).exists()]

    assert len(named) > 15
    assert missing == []


def test_optional_tables_stand_in_their_files():
    rows = re.findall(r"^\| `(src/[^`]+\.py)` \| `(\w+)`", PAGE, flags=re.MULTILINE)

    assert len(rows) >= 4
    assert [f"{table} in {file}" for file, table in rows if f"{table}: Final" not in (ROOT / file).read_text()] == []


def test_code_is_shown_as_it_is():
    code = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    shown = [line.strip() for block in blocks[:-1] for line in block.splitlines() if line.strip() not in ("", "...")]

    assert len(shown) > 20
    assert [line for line in shown if line not in code] == []


def test_facts_are_overridden_where_the_page_says():
    rows = re.findall(
        r"^\| `(by_position|is_linear|reads|has_no_rows_over)\b[^|]*\|[^|]*\|([^|]*)\|", PAGE, flags=re.MULTILINE
    )
    tree = ast.parse((SOURCE / "algebra/plan.py").read_text())
    found: dict[str, set[str]] = {name: set() for name, _ in rows}
    for node in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        for part in node.body:
            target = part.target.id if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) else ""
            name = part.name if isinstance(part, ast.FunctionDef) else target
            if name in found:
                found[name].add(node.name)

    assert len(rows) == 4
    assert found == {name: set(re.findall(r"`(\w+)`", where)) for name, where in rows}
