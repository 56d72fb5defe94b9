"""Who reads whom, told from hand-made logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle.model.lineage import Lineage, LineageTable, Reading

if TYPE_CHECKING:
    from tests.unit.observe.lake import Lake


@pytest.fixture
def diamond(lake: Lake) -> Lake:
    """Two tables over orders, and one over both; one of them reads a table that is gone, too."""
    lake.table("orders")
    lake.stream("daily")
    lake.refresh("daily", {"orders": 0}, ago=9, columns={"orders": ("day", "amount")})
    lake.stream("regions")
    lake.refresh("regions", {"orders": 0, "shop.places": 4, "@1": 2}, ago=8)
    lake.stream("report")
    lake.refresh("report", {"daily": 1, "default.regions": 1}, ago=7)
    return lake


def test_tables_and_who_reads_them(diamond):
    found = diamond.observer().lineage()

    assert {table.name: table.kind for table in found.tables} == {
        "default.daily": "stream",
        "default.regions": "stream",
        "default.report": "stream",
        "default.orders": "base",
        "shop.places": "missing",
    }
    assert {(r.reader, r.source): r.columns for r in found.readings} == {
        ("default.daily", "default.orders"): ("day", "amount"),
        ("default.regions", "default.orders"): None,
        ("default.regions", "shop.places"): None,
        ("default.report", "default.daily"): None,
        ("default.report", "default.regions"): None,
    }


def test_a_tree(diamond):
    assert diamond.observer().lineage().to_text().split("\n") == [
        "default.report",
        "├─ default.daily",
        "│  └─ default.orders (base): day, amount",
        "└─ default.regions",
        "   ├─ default.orders (base)",
        "   └─ shop.places (missing)",
    ]


def test_a_diagram(diamond):
    assert diamond.observer().lineage().to_mermaid().split("\n") == [
        "flowchart LR",
        '    t0["default.daily"]',
        '    t1["default.regions"]',
        '    t2["default.report"]',
        '    t3[("default.orders")]',
        '    t4(["shop.places (missing)"])',
        "    t3 --> t0",
        "    t3 --> t1",
        "    t4 --> t1",
        "    t0 --> t2",
        "    t1 --> t2",
    ]


def test_the_lineage_of_one_table(diamond):
    found = diamond.observer().lineage("daily")

    assert {table.name for table in found.tables} == {"default.daily", "default.orders", "default.report"}
    assert len(found.readings) == 2


def test_a_table_read_twice_is_drawn_once():
    tables = tuple(LineageTable(name, "stream") for name in "abcd")
    shown = Lineage(
        tables, (Reading("a", "b"), Reading("a", "c"), Reading("b", "d"), Reading("c", "d"), Reading("d", "t"))
    )

    assert shown.to_text().split("\n") == [
        "a",
        "├─ b",
        "│  └─ d",
        "│     └─ t (missing)",
        "└─ c",
        "   └─ d",
        "      └─ … as above",
    ]


def test_a_circle_is_drawn_and_ends():
    shown = Lineage((LineageTable("a", "stream"), LineageTable("b", "stream")), (Reading("a", "b"), Reading("b", "a")))

    assert shown.to_text().split("\n") == ["a", "└─ b", "   └─ a"]
    assert shown.around("a") == shown


def test_nothing_is_an_empty_text():
    assert Lineage((), ()).to_text() == ""
