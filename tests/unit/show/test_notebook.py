"""The magics and the progress line, in a shell of IPython, over a Trickle that only takes notes."""

from __future__ import annotations

import threading

import pytest
from IPython.core.interactiveshell import InteractiveShell

import trickle
from trickle.errors import DefinitionError
from trickle.notebook import Progress, find_trickle


class Trickle:
    """Takes notes of what it is asked."""

    __module__ = "trickle.api"

    def __init__(self):
        self.asked = []

    def create(self, name, query, **options):
        self.asked.append((name, query, options))
        return name

    def sql(self, text):
        self.asked.append(text)
        return f"did {text.strip()}"


@pytest.fixture
def shell():
    found = InteractiveShell()
    trickle.load_ipython_extension(found)
    found.user_ns["t"] = Trickle()
    return found


def test_a_cell_with_a_query_becomes_a_stream_table(shell):
    said = shell.run_cell_magic("stream_table", "daily --schedule 'on commit' --mode full --replace", "SELECT 1\n;\n")

    assert said == "daily"
    options = {"mode": "full", "schedule": "on commit", "replace": True}
    assert shell.user_ns["t"].asked == [("daily", "SELECT 1\n", options)]


def test_a_cell_with_statements_gives_the_last_answer(shell):
    said = shell.run_cell_magic("trickle", "", "REFRESH STREAM TABLE a;\nREFRESH STREAM TABLE b;")

    assert said == "did REFRESH STREAM TABLE b"
    assert [text.strip() for text in shell.user_ns["t"].asked] == ["REFRESH STREAM TABLE a", "REFRESH STREAM TABLE b"]
    assert shell.run_line_magic("trickle", "SHOW STREAM TABLES") == "did SHOW STREAM TABLES"


@pytest.mark.parametrize("line", ["", "a b", "a --often", "a --schedule", "a --schedule 'on"])
def test_words_that_are_not_known_are_refused(shell, line):
    with pytest.raises(DefinitionError) as caught:
        shell.run_cell_magic("stream_table", line, "SELECT 1")

    assert caught.value.code == "BAD_OPTION"


def test_the_magics_use_t_or_the_only_one():
    one, two = Trickle(), Trickle()

    assert find_trickle({"shop": one, "_": two, "x": 1}) is one
    assert find_trickle({"shop": one, "t": two}) is two
    for names in ({}, {"a": one, "b": two}):
        with pytest.raises(DefinitionError) as caught:
            find_trickle(names)
        assert caught.value.code == "NO_TRICKLE"


def test_the_progress_line_names_what_runs_and_goes_away(monkeypatch):
    shown, appeared = [], threading.Event()

    class Line:
        def update(self, html):
            shown.append(html.data)

    def show(html, *, display_id):
        shown.append(html.data)
        appeared.set()
        return Line()

    monkeypatch.setattr("IPython.display.display", show)
    monkeypatch.setattr("trickle.notebook._PATIENCE", 0.01)
    progress = Progress(lambda: (3, 8))

    progress.start("shop.daily<")
    assert appeared.wait(10)
    progress.end("shop.daily<")

    assert "Refreshing shop.daily&lt; (" in shown[0]
    assert "3 of 8 tasks" in shown[0]
    assert shown[-1] == ""
