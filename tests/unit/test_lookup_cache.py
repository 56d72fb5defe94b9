"""Rows of keys that were asked for before, and of the others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trickle.model.options import Options
from trickle.tables.arrow.rows import with_keys
from trickle.tables.cache.lookups import LookupCache

ROWS = pa.table({"k": pa.array([n % 7 if n % 5 else None for n in range(40)]), "n": range(40)})


class Files:
    """What is looked into; remembers the keys that were searched for."""

    def __init__(self, columns=("k", "n")):
        self.columns = list(columns)
        self.searched = []

    def search(self, keys):
        self.searched.append({name: values.to_pylist() for name, values in keys.items()})
        return with_keys(ROWS, keys).select(self.columns)


def find(looked, place, keys, search):
    """Search for what is not known."""
    known, missing = looked.known(place, keys)
    if missing is None:
        return known
    others = search(missing)
    return None if others is None else looked.put(place, keys, known, others)


@settings(deadline=None)
@given(asked=st.lists(st.tuples(st.sampled_from("ab"), st.sets(st.integers(-1, 8), max_size=6)), max_size=6))
def test_rows_are_those_of_a_search(asked):
    looked, files = LookupCache(), Files()

    for place, keys in asked:
        wanted = {"k": pa.array(sorted(keys), pa.int64())}
        found = find(looked, (place,), wanted, files.search)

        assert sorted(found["n"].to_pylist()) == with_keys(ROWS, wanted)["n"].to_pylist()


def test_only_other_keys_are_searched_for():
    looked, files = LookupCache(), Files()

    for keys in ([1, 2, 3], [3, 2], [1, 2, 4], [5, 6, 1]):
        find(looked, (), {"k": pa.array(keys)}, files.search)
    find(looked, ("elsewhere",), {"k": pa.array([1])}, files.search)
    find(looked, (), {"n": pa.array([1])}, files.search)
    find(looked, (), {"k": pa.array([1]), "n": pa.array([1])}, files.search)

    assert files.searched == [
        {"k": [1, 2, 3]},
        {"k": [4]},
        {"k": [5, 6, 1]},
        {"k": [1]},
        {"n": [1]},
        {"k": [1], "n": [1]},
    ]


def test_rows_without_their_key_tell_nothing_of_some_of_their_keys():
    looked, files = LookupCache(), Files(["n"])

    for keys in ([1, 2], [1], [1, 2]):
        find(looked, (), {"k": pa.array(keys)}, files.search)

    assert [keys["k"] for keys in files.searched] == [[1, 2], [1]]


def test_the_same_is_not_searched_for_again():
    looked, files = LookupCache(), Files()

    for _ in range(2):
        for keys in ({}, {"k": pa.array([1]), "n": pa.array([1])}):
            find(looked, (), keys, files.search)

    assert len(files.searched) == 2


@pytest.mark.parametrize("options", [Options(lookup_cache_entries=1), Options(lookup_cache_bytes=16 * 6)])
def test_the_latest_are_known(options):
    looked, files = LookupCache(options), Files()

    for key in (1, 2, 2, 1):
        find(looked, (), {"k": pa.array([key])}, files.search)

    assert [keys["k"] for keys in files.searched] == [[1], [2], [1]]


def test_what_cannot_be_searched_is_not_found():
    looked, files = LookupCache(), Files()
    find(looked, (), {"k": pa.array([1, 2])}, files.search)

    assert find(looked, (), {"k": pa.array([1, 2, 3])}, lambda _: None) is None
