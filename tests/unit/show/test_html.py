"""What notebooks show: well-formed, escaped, with the facts in it."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.errors import SourceError
from trickle.model.explanation import Explanation, Foreseen, PlanNode, StoredPart
from trickle.model.lineage import Lineage, LineageTable, Reading
from trickle.model.listing import Listing
from trickle.model.observed import PastRefresh, SourceLag, TableStatus, Waiting
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport
from trickle.show.html import tag
from trickle.show.lineage import layout
from trickle.show.reports import time_bar
from trickle.show.tables import history_list, status_list

EVIL = "<script>alert('\"&')</script>"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Checker(HTMLParser):
    """Counts elements, and finds those that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.text = [], [], []

    def handle_starttag(self, name, attributes):  # noqa: ARG002 - the interface of the parser
        self.open.append(name)
        self.names.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    """Return the text of well-formed HTML that runs nothing."""
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert "script" not in checker.names
    return "".join(checker.text)


def refresh(**given):
    usual = {
        "table": EVIL,
        "mode": "full",
        "reason": Reason("COST", f"it is cheaper {EVIL}"),
        "rows_inserted": 1234,
        "rows_deleted": 5,
        "frontier": {EVIL: 3},
        "version": 7,
        "seconds": 2.0,
        "steps": {"look": 0.5, EVIL: 1.0},
        "changed": {EVIL: 1},
        "warnings": (Reason("STALE_UPSTREAM", EVIL),),
    }
    return RefreshReport(**{**usual, **given})


STATUS = TableStatus(
    EVIL,
    "late",
    mode="auto",
    schedule="5m",
    last_refresh=NOON,
    last_mode="full",
    last_reason=f"COST: {EVIL}",
    age_seconds=90.0,
    lag_seconds=75.0,
    sources=(SourceLag(EVIL, 1, 3, 2, note=EVIL),),
    next_due=NOON,
    suspended=Waiting(NOON, "failures", "CODE", EVIL),
    problem=EVIL,
)
PAST = PastRefresh(EVIL, 3, NOON, NOON, "differential", EVIL, 1, None, 0.5, {EVIL: 0.25}, {EVIL: 1}, "manual")
PLAN = PlanNode(EVIL, f"linear {EVIL}", f"the change {EVIL}", (PlanNode("Scan orders"),))
EXPLAINED = Explanation(
    f"text {EVIL}", EVIL, (StoredPart(EVIL, PLAN),), (Reason("X", EVIL),), Foreseen("full", (EVIL, "then"))
)
LINEAGE = Lineage((LineageTable(EVIL, "base"), LineageTable("daily", "stream")), (Reading("daily", EVIL, (EVIL,)),))
RUN = RunReport(
    {"daily": refresh(table="daily")}, {EVIL: SourceError("GONE", EVIL)}, {EVIL: 1}, 3.0, {"other": EVIL}, (EVIL,)
)


@pytest.mark.parametrize(
    ("shown", "facts"),
    [
        (refresh(), ("full", "COST", "+1,234", "−5", "2.00 s", "look 0.50 s", "other 0.50 s", "STALE_UPSTREAM")),
        (RUN, ("daily", "failed", "[GONE]", "skipped", "Not at the cut")),
        (
            VerifyReport(EVIL, False, 10, 1, 2, ((EVIL,),), ((1,), (2,)), (EVIL,), 4),
            ("different", "one in 4 keys", "(1,)"),
        ),
        (Validation(False, (Reason("X", EVIL),), (EVIL,)), ("Is recomputed", "X: ")),
        (EXPLAINED, ("Next refresh, as things are now: full", "Scan orders", "linear", "the change", "As text")),
        (Listing([STATUS], status_list), ("late", "1m30s ago, full", "1m15s", "+2", "suspended since", "CODE")),
        (Listing([PAST], history_list), ("differential", "manual", "0.50 s", "2026-01-01 12:00:00 UTC")),
        (LINEAGE, ("daily reads",)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_shown_is_escaped_and_has_the_facts(shown, facts):
    text = read(shown._repr_html_())

    assert EVIL in text or "…" in text
    assert not [fact for fact in facts if fact not in text]


def test_one_table_is_not_several():
    assert "1 stream table" in read(Listing([STATUS], status_list)._repr_html_())
    assert "1 stream tables" not in read(Listing([STATUS], status_list)._repr_html_())
    assert "2 refreshes" in read(Listing([PAST, PAST], history_list)._repr_html_())


def test_a_table_is_shown_with_how_it_is_or_why_that_is_not_known():
    from trickle.model.definition import Definition
    from trickle.show.tables import stream_table

    class Table:
        name, mode, schedule, query = "daily", "auto", None, f"SELECT {EVIL}"
        options = Definition(query="", catalog="c", schema_name="s", spark="4").options

    known, unknown = read(stream_table(Table, STATUS)), read(stream_table(Table, None, f"it was dropped {EVIL}"))

    assert "late" in known
    assert f"SELECT {EVIL}" in known
    assert "it was dropped" in unknown


@given(st.dictionaries(st.text(max_size=5), st.floats(0.0, 1e6), max_size=12), st.floats(0.0, 1e6))
def test_the_bar_is_as_long_as_the_whole_time(steps, seconds):
    bar = time_bar(steps, max(seconds, sum(steps.values())))
    widths = [float(width) for width in re.findall(r"width: ([\d.]+)%; background", bar)]

    read(bar)
    assert not widths or sum(widths) == pytest.approx(100, abs=0.2) or sum(steps.values()) == 0


@given(st.text())
def test_text_stays_text(text):
    assert ElementTree.fromstring(tag("b", "".join(c for c in text if c.isprintable()))).tag == "b"


def graph(reads):
    names = sorted({*reads, *(source for sources in reads.values() for source in sources)})
    tables = tuple(LineageTable(name, "stream" if name in reads else "base") for name in names)
    return Lineage(tables, tuple(Reading(name, source) for name, sources in reads.items() for source in sources))


def test_a_table_stands_right_of_all_that_it_reads():
    layers = layout(graph({"c": ("b", "a"), "b": ("a",), "d": ("a2",), "e": ("c", "d")}))

    assert [sorted(layer) for layer in layers] == [["a", "a2"], ["b", "d"], ["c"], ["e"]]
    assert layers[1] == ["b", "d"]  # beside what they read: no lines cross


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3).map(tuple)))
def test_any_lineage_can_be_drawn(reads):
    lineage = graph(reads)
    svg = ElementTree.fromstring(lineage.to_svg())
    space = "{http://www.w3.org/2000/svg}"

    assert len(svg.findall(f"{space}g")) == len(lineage.tables)
    assert len(svg.findall(f"{space}path")) == len(lineage.readings)
    assert sorted(name for layer in layout(lineage) for name in layer) == [table.name for table in lineage.tables]


def test_an_explanation_is_a_text():
    assert f"text {EVIL}" == EXPLAINED
    assert EXPLAINED.upper().startswith("TEXT")
    copied = pickle.loads(pickle.dumps(EXPLAINED))
    assert (copied, copied.table, copied.parts) == (EXPLAINED, EXPLAINED.table, EXPLAINED.parts)
