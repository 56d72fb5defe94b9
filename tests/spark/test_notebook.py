"""The notebook of the examples runs, and its cells show what they should."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """What the cells show, by the text of the cell."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    done = client.execute()
    said = "".join(output.get("text", "") for cell in done.cells for output in cell.get("outputs", ()))
    assert "Traceback" not in said
    return {cell.source: cell.outputs for cell in done.cells if cell.cell_type == "code"}


def html(cells, text):
    """The HTML of the one cell that contains a text."""
    (outputs,) = (shown for source, shown in cells.items() if text in source)
    found = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert found, outputs
    return found[-1]


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        ("SELECT * FROM orders", ("3 rows", "ada", "19.90")),
        ("%%stream_table daily_revenue", ("Stream table", "on commit", "ok", "What we earn", "GROUP BY day")),
        ("CREATE STREAM TABLE best_day", ("downstream", "REVENUE DESC")),
        ("t.lineage()", ("<svg", "daily_revenue reads", "amount")),
        ("REFRESH STREAM TABLE", ("differential", "+1", "−1", "width:")),
        ("t.status()", ("best_day", "behind")),
        ("t.refresh_all()", ("differential", "best_day", "no_data")),
        ("toPandas", ("47.50",)),
        ("t.verify(", ("equal", "rows compared")),
        ("t.explain(", ("no_data", "linear: ", "Scan", "cost besides the change")),
        ("t.history(", ("manual", "creation")),
    ],
)
def test_a_cell_shows_itself(cells, cell, facts):
    shown = re.sub(r"&#x27;", "'", html(cells, cell))

    assert not [fact for fact in facts if fact.lower() not in shown.lower()]
