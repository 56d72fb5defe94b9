"""Writes docs/reference/options.md from `trickle.Options` and the regimes.

python scripts/options_page.py           # write
python scripts/options_page.py --check   # fail if the page is not what the code says
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from pages import publish

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "options.md"

HEAD = """# Options

`trickle.Trickle(spark, options=trickle.Options(whole_rows=0))` sets limits and switches. The defaults suit tables of any
size: change them when you have measured that another value is better. A limit decides which of two ways a refresh takes,
never what it computes. A value that is out of range is refused (`BAD_OPTION`), and so is the name of an optimisation that
does not exist (`UNKNOWN_OPTION`).

This page is generated from the code by `scripts/options_page.py`.

| option | default | unit | meaning |
|---|---|---|---|
"""

SECOND = """
## Regimes

A regime is a set of options so small that a table of ten rows takes the ways that only big tables take otherwise. They are
in `trickle.testing.regimes`, for our tests and yours. The corpus, the fuzzer and the TPC suites run under all of them; each
limit is in at least one.

| regime | options |
|---|---|
"""


def page() -> str:
    """Give the page's text."""
    from trickle.model.options import DEFAULT, Options
    from trickle.testing.regimes import REGIMES

    rows = [
        f"| `{o.name}` | {_shown(getattr(DEFAULT, o.name))} | {o.metadata['unit']} | {o.metadata['text']} |"
        for o in fields(Options)
    ]
    sets = []
    for name, options in REGIMES.items():
        changed = [o.name for o in fields(Options) if getattr(options, o.name) != getattr(DEFAULT, o.name)]
        text = ", ".join(f"`{o}={_shown(getattr(options, o))}`" for o in changed)
        sets.append(f"| {name} | {text or 'as they are'} |")
    return HEAD + "\n".join(rows) + "\n" + SECOND + "\n".join(sets) + "\n"


def _shown(value: object) -> str:
    match value:
        case bool() | None:
            return str(value)
        case int():
            for size, unit in ((1024**3, "GiB"), (1024**2, "MiB")):
                if value and value % size == 0:
                    return f"{value // size} {unit}"
            return f"{value:,}"
        case frozenset():
            return ", ".join(sorted(value)) or "none"
    return str(value)


if __name__ == "__main__":
    sys.exit(publish(PAGE, page()))
