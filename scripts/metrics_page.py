"""Writes docs/reference/metrics.md from the docstrings of what ``status``, ``history``, ``refresh`` and ``verify`` return.

python scripts/metrics_page.py           # write
python scripts/metrics_page.py --check   # fail if the page is not what the code says
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path

from pages import publish

from trickle.model.observed import PastRefresh, SourceLag, TableStatus, Waiting
from trickle.model.report import RefreshReport, RunReport, VerifyReport

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "metrics.md"

HEAD = """# Metrics

What Trickle measures, and what each number means. Times are UTC; durations are seconds.

| To | Use |
|---|---|
| look now | `t.status()`, `trickle status --format json`, `SHOW STREAM TABLES` |
| look back | `t.history(name)`, `trickle history NAME --format json`, `SHOW REFRESH HISTORY` |
| keep every refresh | [`Trickle(spark, history="ops.refreshes")`](../how-to/run-it-for-months.md#the-history-table) |
| send them elsewhere | `t.events.on_refresh(function)`, `on_failure` …; or the lines of `trickle run --format json` |
| be told by the exit code | `trickle status --check` |

`status` and `history` read only the Delta logs. [The command](command.md#json) says which JSON has which of these.
Names are the same.

`scripts/metrics_page.py` generates this page from the code.
"""

PARTS = (
    (TableStatus, "status", "How a stream table is"),
    (SourceLag, "status, in `sources`", "How far it is behind a source"),
    (Waiting, "status, in `suspended`", "Why it waits"),
    (PastRefresh, "history", "A refresh of the past"),
    (RefreshReport, "refresh", "The report of a refresh"),
    (RunReport, "refresh_all", "The report of a run"),
    (VerifyReport, "verify", "The report of a comparison"),
)

_ITEM = re.compile(r"^    (\w+): ", re.MULTILINE)


def page() -> str:
    """Return the page's text."""
    return HEAD + "".join(_part(of, where, title) for of, where, title in PARTS)


def _part(of: type, where: str, title: str) -> str:
    meanings = _meanings(of)
    rows = [f"| `{f.name}` | {_type(str(f.type))} | {meanings[f.name]} |" for f in fields(of)]
    head = f"\n## {title}\n\n`{of.__name__}`, from {where if '`' in where else f'`{where}`'}.\n\n"
    return head + "| Field | Type | Meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _meanings(of: type) -> dict[str, str]:
    """Read the attributes of a docstring."""
    _, _, said = inspect.cleandoc(of.__doc__ or "").partition("Attributes:\n")
    names, texts = _ITEM.findall(said), _ITEM.split(said)[2::2]
    return {
        name: re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split())) for name, text in zip(names, texts, strict=True)
    }


def _type(text: str) -> str:
    return f"`{text}`".replace(" | None`", "` or `None`").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(publish(PAGE, page()))
