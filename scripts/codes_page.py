"""Writes docs/reference/reasons-and-errors.md from the codes of `trickle.model.codes`.

python scripts/codes_page.py           # write
python scripts/codes_page.py --check   # fail if the page is not what the code says
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from pages import publish

from trickle.model.codes import ERRORS, OBSTACLES, REASONS, WARNINGS, Code

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "reasons-and-errors.md"

HEAD = """# Reasons and errors

Codes are stable: match on them, not on the text. They are in `error.code` and `reason.code`; `hint` says what to do next.

`scripts/codes_page.py` generates this page from the code.
"""

REASONS_HEAD = """
## Why a refresh was full

These appear in `RefreshReport.reason`. In mode `differential`, those marked ✱ are raised as errors instead.

"""

REASONS_TAIL = """
A `COMMIT_OVERWRITTEN` is the one error or the other by whose commit it was. The logger `trickle` also logs a warning for
each full refresh that was not requested.
"""

WARNINGS_HEAD = """
## What a refresh warns of

These appear in `RefreshReport.warnings`, or as a `Warned` event. The refresh itself went well.

"""

OBSTACLES_HEAD = """
## Why a query cannot be maintained

These appear in `Validation.obstacles`, in `explain`, as the reason of every refresh in mode `auto`, and as
`NotDifferentiableError` in mode `differential`. For a DataFrame they raise a `DefinitionError` in every mode.

"""

OBSTACLES_TAIL = """
Spark runs a query with an obstacle as it is, over the newest versions of its sources. With a `TIME_DEPENDENT`,
`SESSION_DEPENDENT` or `NON_DETERMINISTIC` obstacle, the query is analysed again at each refresh, so `now()` means the
time of that refresh.
"""

ABOUT = {
    "StorageError": "What tables lie on refused, or did not answer. Nothing was committed, except that a commit whose "
    "answer was lost may have been: the next refresh sees it.\n\n",
    "SparkError": "Spark or a file reader failed while it worked for a verb: a query failed as it ran (an overflow, a "
    "failing cast, a UDF that raises), a schema does\nnot exist, a file cannot be read. The stream table stays as it was. "
    "The original error is the `__cause__`.\n\n",
}

SPARKS_OWN = (
    "Spark's error condition, e.g. `DIVIDE_BY_ZERO`, `SCHEMA_NOT_FOUND`, `SCALAR_SUBQUERY_TOO_MANY_ROWS`",
    "as Spark documents it",
    "act on the message",
)


def page() -> str:
    """Return the page's text."""
    parts = [
        HEAD,
        REASONS_HEAD + _table(_rows(REASONS)) + "\n" + _raised() + REASONS_TAIL,
        WARNINGS_HEAD + _table(_rows(WARNINGS)),
        OBSTACLES_HEAD + _table(_rows(OBSTACLES)) + OBSTACLES_TAIL,
    ]
    return "".join([*parts, *(_error(name, codes) for name, codes in ERRORS.items())])


def _error(name: str, codes: Mapping[str, Code]) -> str:
    rows = _rows(codes)
    reasons = _of(name)
    if reasons:
        rows.append((reasons, "mode `differential`; see [above](#why-a-refresh-was-full)", "`refresh(full=True)` once"))
    if name == "SparkError":
        rows.append(SPARKS_OWN)
    return f"\n## `{name}`\n\n{ABOUT.get(name, '')}{_table(rows)}"


def _raised() -> str:
    """Say which errors the marked reasons are raised as."""
    names = sorted({name for code in REASONS.values() for name in code.raised})
    return "".join(f"As a `{name}`: {_of(name)}.\n" for name in names)


def _of(name: str) -> str:
    return ", ".join(f"`{code}`" for code, said in REASONS.items() if name in said.raised)


def _rows(codes: Mapping[str, Code]) -> list[tuple[str, str, str]]:
    return [(f"`{code}`" + (" ✱" if said.raised else ""), said.meaning, said.todo) for code, said in codes.items()]


def _table(rows: list[tuple[str, str, str]]) -> str:
    return "| Code | Meaning | What to do |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.exit(publish(PAGE, page()))
