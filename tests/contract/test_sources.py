"""What every source gives: versions, exact changes, snapshots that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from trickle.model.options import Options
from trickle.model.reason import SOURCE_REWOUND
from trickle.tables.contract import WEIGHT

from .conftest import bag, net, net_arrow

if TYPE_CHECKING:
    from .conftest import Implementation

SCHEMA = "id bigint, s string"


def test_a_source_tells_its_history_exactly(tables: Implementation) -> None:
    source = tables.source("orders", SCHEMA, [(1, "a"), (1, "a"), (2, None)])
    start = source.head()

    after_append = tables.commit(source, [(3, "c"), (1, "a")], [])
    after_delete = tables.commit(source, [(4, "d")], [(1, "a"), (2, None)])

    assert (after_append, after_delete) == (start + 1, start + 2)
    assert source.identity(start) == source.identity(after_delete)
    assert list(source.columns(start)) == ["id", "s"]

    append = source.classify(start, after_append, ["id", "s"])
    assert (append.kind, append.rows, append.broken) == ("append", 2, None)
    assert net(source.changes(append, ["id", "s"])) == {(3, "c"): 1, (1, "a"): 1}

    whole = source.classify(start, after_delete, ["s", "id"])
    change = source.changes(whole, ["s", "id"])
    assert whole.kind == "mixed"
    assert change.columns == ["s", "id", WEIGHT]
    assert change.schema[WEIGHT].dataType.typeName() == "long"
    assert net(change) == {("c", 3): 1, ("d", 4): 1, (None, 2): -1}
    assert net(source.changes(whole, ["s"])) == {("c",): 1, ("d",): 1, (None,): -1}

    small = source.small_changes(whole, ["s", "id"])
    assert (small is not None) == tables.reads_in_driver
    if small is not None:
        assert small.column_names == ["s", "id", WEIGHT]
        assert net_arrow(small) == net(change)


def test_a_snapshot_stays_at_its_version(tables: Implementation) -> None:
    source = tables.source("orders", SCHEMA, [(1, "a")])
    start = source.head()
    before = source.snapshot(start, ["id", "s"])

    after = tables.commit(source, [(2, "b")], [(1, "a")])

    assert bag(before) == {(1, "a"): 1}
    assert bag(source.snapshot(start, ["id", "s"])) == {(1, "a"): 1}
    assert bag(source.snapshot(after, ["id", "s"])) == {(2, "b"): 1}


@pytest.mark.parametrize("whole_rows", [0, 50_000], ids=["searched", "read whole"])
def test_rows_are_found_by_their_keys_at_a_version(tables: Implementation, whole_rows: int) -> None:
    options = Options(whole_rows=whole_rows)
    source = tables.source("orders", SCHEMA, [(1, "a"), (1, "a"), (2, None), (None, "a")], options=options)
    start = source.head()
    after = tables.commit(source, [(3, "c")], [(1, "a")])
    keys = {"id": pa.array([1, 3])}

    found = {version: source.find(version, ["s", "id"], keys) for version in (after, start)}

    assert (found[start] is not None) == tables.reads_in_driver
    if tables.reads_in_driver:
        assert found[start].column_names == ["s", "id"]
        assert found[start].to_pylist() == [{"s": "a", "id": 1}, {"s": "a", "id": 1}]
        assert sorted(found[after].to_pydict()["id"]) == [1, 3]
        assert source.find(after, ["id"], {**keys, "s": pa.array(["c"])}).to_pylist() == [{"id": 3}]


def test_a_span_without_commits_or_out_of_range_is_named(tables: Implementation) -> None:
    source = tables.source("orders", SCHEMA, [(1, "a")])
    head = source.head()

    nothing = source.classify(head, head, ["id"])
    assert (nothing.kind, nothing.rows, nothing.broken) == ("none", 0, None)
    assert net(source.changes(nothing, ["id"])) == {}

    for since, upto in ((head + 1, head + 2), (head, head + 1), (head + 1, head)):
        broken = source.classify(since, upto, ["id"]).broken
        assert broken is not None
        assert broken.code == SOURCE_REWOUND
