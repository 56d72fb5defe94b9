"""Writes docs/sql-support.md from the corpus, so that the page says what the tests show.

python scripts/sql_support.py           # write
python scripts/sql_support.py --check   # fail if the page is not what the corpus says
"""

from __future__ import annotations

import sys
from pathlib import Path

from pages import publish

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "sql-support.md"
sys.path.insert(0, str(ROOT))

HEAD = """# SQL support

`scripts/sql_support.py` generates this page from the corpus in `tests/corpus`. Every line is a test case. It runs several
rounds of inserts, updates and deletes; after each round the refresh must be differential and the table must equal a recompute,
row for row with multiplicities.

- **How** says how the construct is maintained.
- **Cost** says what is read in addition to the change.

Trickle maintains {count} constructs incrementally and refuses {refused} with a reason code (last section). In mode `auto` each
refresh recomputes a refused query, and the report says why.
"""


def page() -> str:
    """Return the page's text."""
    from tests.corpus import FAMILIES, MAINTAINED, REFUSED

    parts = [HEAD.format(count=len(MAINTAINED), refused=len(REFUSED))]
    for family, cases in FAMILIES.items():
        is_refused = cases[0].refused is not None
        parts += ["", f"## {family}", ""]
        if is_refused:
            parts += ["| construct | code | why |", "|---|---|---|"]
            parts += [f"| {_cell(c.title)} | `{c.refused}` | {_cell(c.how)} |" for c in cases]
            continue
        for (how, cost), titles in _by_way(cases).items():
            parts += [f"**How:** {how} **Cost:** {cost}", ""]
            parts += [f"- {title}" for title in titles]
            parts += [""]
    return "\n".join(parts).rstrip() + "\n"


def _by_way(cases: tuple) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        note = f" ({case.limits})" if case.limits else ""
        found.setdefault((case.how, case.cost), []).append(f"{case.title}{note}")
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(publish(PAGE, page()))
