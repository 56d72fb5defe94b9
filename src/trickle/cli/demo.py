"""``trickle demo``: the example project at work, in a folder that is gone afterwards."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trickle.cli.commands import FAILED, OK
from trickle.cli.output import console, print_json, tell

if TYPE_CHECKING:
    from trickle.api import Trickle
    from trickle.cli.settings import Settings

_BATCHES: Final = 2
_ROWS: Final = 200


def demo(settings: Settings, orders: int) -> int:
    """Make the example, change its orders, refresh, and compare; 1 if a table does not equal its query."""
    from trickle.cli.projects import working
    from trickle.project.example_data import change_orders
    from trickle.project.scaffold import make_project

    with tempfile.TemporaryDirectory(prefix="trickle-demo-") as beside:
        folder = Path(beside, "shop")
        make_project(folder, orders=orders)
        own = replace(settings, warehouse=str(folder / "warehouse"), project_path=folder, environment=None)
        with working(own) as (work, show):
            work.apply(show=show)
            reports: dict[str, Any] = {}
            for batch in range(_BATCHES):
                show(f"Batch {batch + 1} of {_BATCHES}")
                done = change_orders(folder / "warehouse", _ROWS)
                if not settings.is_json:
                    tell(f"orders: {done}")
                reports = dict(work.trickle.refresh_all().tables)
            lines = [_compared(work.trickle, report) for report in reports.values()]
    is_ok = all(line["equal"] for line in lines)
    if settings.is_json:
        print_json({"ok": is_ok, "orders": orders, "tables": lines})
    else:
        from trickle.cli.shown import demo_table

        console().print(demo_table(lines))
        tell("Each table was compared with its query, row for row. To go on: trickle init shop")
    return OK if is_ok else FAILED


def _compared(trickle: Trickle, report: Any) -> dict[str, Any]:
    verified = trickle.verify(report.table)
    full = trickle.refresh(report.table, full=True)
    return {
        "table": report.table,
        "mode": report.mode,
        "rows_inserted": report.rows_inserted,
        "rows_deleted": report.rows_deleted,
        "seconds": round(report.seconds, 3),
        "full_seconds": round(full.seconds, 3),
        "rows": verified.rows,
        "equal": verified.ok,
    }
