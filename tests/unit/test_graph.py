"""Which stream table reads which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.errors import DefinitionError
from trickle.model.graph import Graph

DIAMOND = Graph({"left": ("orders",), "right": ("orders", "people"), "both": ("left", "right"), "other": ("people",)})


def test_waves_go_from_the_base_outward():
    assert DIAMOND.waves() == (("left", "other", "right"), ("both",))
    assert DIAMOND.bases == {"orders", "people"}


def test_waves_of_some_tables_leave_the_others_where_they_are():
    assert DIAMOND.waves(["both", "left"]) == (("left",), ("both",))


def test_upstream_and_downstream_follow_every_path():
    assert DIAMOND.upstream(["both"]) == {"left", "right", "both"}
    assert DIAMOND.downstream(["orders"]) == {"orders", "left", "right", "both"}
    assert DIAMOND.readers("people") == ("right", "other")


def test_a_cycle_is_refused_with_its_path():
    graph = Graph({"a": ("b", "t"), "b": ("c",), "c": ("a",), "d": ("a",)})

    with pytest.raises(DefinitionError) as caught:
        graph.waves()

    assert caught.value.code == "CYCLE"
    assert "a reads b reads c reads a" in str(caught.value)


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=12))
def test_each_table_comes_after_what_it_reads(drawn):
    graph = Graph({f"t{n}": tuple(f"t{s}" if s < n else f"base{s}" for s in reads) for n, reads in enumerate(drawn)})

    waves = graph.waves()

    place = {name: number for number, wave in enumerate(waves) for name in wave}
    assert place.keys() == graph.reads.keys()
    for name, sources in graph.reads.items():
        assert all(place[s] < place[name] for s in sources if s in place)
