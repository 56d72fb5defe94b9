"""Documents name files, names and headings that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from trickle.compile.change_plan import ChangePlan
from trickle.compute.inputs import Inputs
from trickle.model.options import OPTIMISATIONS
from trickle.refresh.steps import Step
from trickle.tables.storage.protocol import Storage

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WALKS = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / "how-to" / f"add-a-{what}.md" for what in ("storage", "table-format")),
]
EVERY_WALK = [*WALKS, ROOT / "docs" / "how-to" / "add-an-operator.md"]
OF_OTHERS = {"LeftSingle", "FileNotFoundError", "FileExistsError", "OSError", "importlinter", "nav", "viewfs", "yml"}
"""Names in walks that are of Spark, Python, Hadoop or tools, or of users' files."""

_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:src|tests|bench|scripts|docs)/[\w./-]*)`")
_NAME_IN_FILE = re.compile(r"`(\w+)` in `((?:src|tests)/[\w./-]+\.py)`")


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), link
        assert not anchor or anchor in anchors(aim), link


@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_walk_names_files_and_names_that_exist(page):
    text = page.read_text(encoding="utf-8")
    paths, names = _PATH.findall(text), _NAME_IN_FILE.findall(text)

    assert paths
    assert names
    assert not [path for path in paths if not (ROOT / path).exists()]
    assert not [
        (name, path) for name, path in names if not re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]


def defined_names() -> set[str]:
    """What the code, its tests and its scripts define: modules, classes, functions, parameters, attributes."""
    names = {"__weight"}
    for top in ("src", "tests", "scripts"):
        for file in (ROOT / top).rglob("*.py"):
            names.add(file.stem)
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                match node:
                    case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                        names.add(name)
                    case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                        names.add(name)
    return names


def test_walks_name_what_the_code_defines():
    """Names in backticks, alone or with a call: ``by_position``, ``of.change(plan)``."""
    defined, checked = defined_names() | OF_OTHERS, 0
    unknown = []
    for page in EVERY_WALK:
        spans = re.findall(r"`([^`\n]+)`", _CODE.sub("", page.read_text(encoding="utf-8")))
        for span in spans:
            named = re.fullmatch(r"(?:\w+[./])*(\w+)", re.sub(r"\.py$|\(.*\)$", "", span))
            if named and not (ROOT / span).exists() and not named[1].endswith("_"):
                checked += 1
                unknown += [] if named[1] in defined else [f"{page.name}: {span}"]

    assert checked > 100
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_targets_of_make_are_there(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    assert set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))) <= set(targets)


def test_the_walk_for_a_storage_names_every_method():
    page = (ROOT / "docs" / "how-to" / "add-a-storage.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)

    methods = {name for name in vars(Storage) if not name.startswith("_")}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == methods


def test_the_design_lists_steps_change_plans_and_what_inputs_give():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")

    def rows(heading: str) -> set[str]:
        part = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        return set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))

    assert rows("Look, decide, run") == {step.__name__ for step in get_args(Step)}
    assert rows("Change plans") == {plan.__name__ for plan in get_args(ChangePlan)}
    inputs = text.partition("\n## Inputs\n")[2].partition("\n## ")[0]
    methods = re.findall(r"`(\w+)\([\w, ]+\)`", inputs)
    assert set(methods) == {
        name for name, found in vars(Inputs).items() if callable(found) and not name.startswith("_")
    }


def test_the_design_names_modules_that_exist():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    modules = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text)
    bare = re.findall(r"`(\w+\.py)`", text)

    assert len(modules) > 15
    assert not set(bare) - {file.name for file in (ROOT / "src" / "trickle").rglob("*.py")}
    assert not [name for name in modules if not any((ROOT / top / name).exists() for top in ("src/trickle", "."))]


def test_optimisations_are_all_documented():
    api = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^Optimisations: (.+?)\. ", api, re.MULTILINE)
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    passes = design.partition("## Passes")[2].partition("\n## ")[0]

    assert set(re.findall(r"`(\w+)`", listed)) == OPTIMISATIONS
    assert set(re.findall(r"^\| `(\w+)` \|", passes, re.MULTILINE)) == OPTIMISATIONS
