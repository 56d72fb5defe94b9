"""Writes docs/reference/options.md from `trickle.Options` and the regimes.

python scripts/options_page.py           # write
python scripts/options_page.py --check   # fail if the page is not what the code says
"""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from pathlib import Path

from pages import publish

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "options.md"

HEAD = """# Options

`trickle.Trickle(spark, options=trickle.Options(whole_rows=0))` sets limits and switches. The defaults suit tables of any
size; change them only if you have measured that another value is better. A limit decides how a refresh computes a result, never
what the result is. `Options` refuses a value that is out of range (`BAD_OPTION`) and an optimisation that does not exist
(`UNKNOWN_OPTION`).

If the machine, or the container, has less than 8 GiB of memory, the limits marked with ° are lower in proportion by
default: `Options().within(memory)`. A limit that you set to another value stays.

`scripts/options_page.py` generates this page from the code.

| option | default | unit | meaning |
|---|---|---|---|
"""

SECOND = """
## Regimes

A regime sets limits so low that a table of ten rows takes the code paths of a big one. `trickle.testing.regimes` has them, for
Trickle's tests and yours. The corpus, the fuzzer and the TPC suites run under all of them, and each limit is in at least one.

| regime | options |
|---|---|
"""


def page() -> str:
    """Return the page's text."""
    from trickle.model.options import DEFAULT, Options
    from trickle.testing.regimes import REGIMES

    rows = [
        f"| `{o.name}` | {_shown(getattr(DEFAULT, o.name))} | {o.metadata['unit']} | {o.metadata['text']}{_mark(o)} |"
        for o in fields(Options)
    ]
    sets = []
    for name, options in REGIMES.items():
        changed = [o.name for o in fields(Options) if getattr(options, o.name) != getattr(DEFAULT, o.name)]
        text = ", ".join(f"`{o}={_shown(getattr(options, o))}`" for o in changed)
        sets.append(f"| {name} | {text or 'the defaults'} |")
    return HEAD + "\n".join(rows) + "\n" + SECOND + "\n".join(sets) + "\n"


def _mark(option: Field[object]) -> str:
    return " °" if option.metadata.get("in_memory") else ""


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
