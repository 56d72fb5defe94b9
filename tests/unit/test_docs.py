"""Documents name files, names and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trickle.model.options import OPTIMISATIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WALKS = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / "how-to" / f"add-a-{what}.md" for what in ("storage", "table-format")),
]

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


def test_the_design_names_modules_that_exist():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    modules = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text)

    assert len(modules) > 15
    assert not [name for name in modules if not any((ROOT / top / name).exists() for top in ("src/trickle", "."))]


def test_optimisations_are_all_documented():
    api = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^Optimisations: (.+?)\. ", api, re.MULTILINE)
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    passes = design.partition("## Passes")[2].partition("\n## ")[0]

    assert set(re.findall(r"`(\w+)`", listed)) == OPTIMISATIONS
    assert set(re.findall(r"^\| `(\w+)` \|", passes, re.MULTILINE)) == OPTIMISATIONS
