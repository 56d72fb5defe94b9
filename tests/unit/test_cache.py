"""Bounded caches, and what all of them hold."""

from __future__ import annotations

import ast
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from trickle.catalyst.jvm import Jvm
from trickle.model.cache import Cache, cache_sizes
from trickle.model.options import DEFAULT

SOURCE = Path(__file__).parents[2] / "src/trickle"

#: With what bounds each.
UNBOUNDED = {
    "algebra/node.py: _SHAPES",  # the kinds of nodes
    "tables/storage/schemes.py: _opened",  # the buckets that a process works with
    "tables/storage/schemes.py: _said",  # what it said of them
    "tables/storage/settings.py: _given",  # the settings
    "warehouse.py: _elsewhere",  # the warehouses of a process
    "warehouse.py: _listed",
}


def test_what_was_not_asked_for_the_longest_goes():
    memo: Cache[str, int] = Cache("memo", 2)
    numbers = count(1)

    def make(key: str) -> int:
        return memo.get(key, lambda: next(numbers))

    assert [make(key) for key in "abacab"] == [1, 2, 1, 3, 1, 4]
    assert memo.keys() == ["a", "b"]
    assert memo.known("c") is None
    memo.put("c", 7)
    assert (memo.known("c"), memo.keys()) == (7, ["b", "c"])


def test_none_is_a_value_too():
    memo: Cache[str, None] = Cache("memo", 2)
    asked = []
    for _ in range(3):
        memo.get("a", lambda: asked.append(1))

    assert asked == [1]


def test_constants_of_many_refreshes_are_not_all_kept(monkeypatch):
    monkeypatch.setattr(Jvm, "singleton", lambda _self, _path: SimpleNamespace(fromSQL=lambda text: text))
    jvm: Any = Jvm.__new__(Jvm)
    jvm._longs = Cache("constants", DEFAULT.constants_kept)
    for value in range(3 * DEFAULT.constants_kept):
        assert jvm.literal(value) == f"{value}L"

    assert len(jvm._longs.keys()) == DEFAULT.constants_kept


def test_bytes_are_bounded_and_counted():
    texts: Cache[int, str] = Cache("texts", 10, max_bytes=6, bytes_of=len)
    for number, text in enumerate(("abc", "de", "fgh", "i")):
        texts.put(number, text)
    assert texts.keys() == [1, 2, 3]
    texts.put(2, "f")
    assert (texts.size().bytes, texts.size().entries) == (4, 3)
    assert (texts.pop(1), texts.pop(1), texts.size().bytes) == ("de", None, 2)

    texts.put(7, "too much to keep")

    assert (texts.keys(), texts.size().bytes) == ([], 0)


def test_what_is_pushed_out_is_told_and_the_newest_may_stay_whatever_its_size():
    gone: list[str] = []
    texts: Cache[int, str] = Cache("texts", max_bytes=3, bytes_of=len, least=1, evicted=gone.append)
    for number, text in enumerate(("abc", "too much", "de", "f")):
        texts.put(number, text)

    assert (texts.keys(), gone) == ([2, 3], ["abc", "too much"])


def test_nothing_else_is_kept_without_bounds():
    """Dictionaries and sets of modules live as long as the process: what grows in them must be a ``Cache``."""
    growing = {
        f"{file.relative_to(SOURCE)}: {node.target.id}"
        for file in SOURCE.rglob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
        if ast.unparse(node.value) in ("{}", "set()", "[]", "OrderedDict()", "dict()", "defaultdict(list)")
    }

    assert growing == UNBOUNDED


def test_sizes_are_summed_by_name_and_forgotten_with_the_cache():
    one, two = Cache[int, int]("numbers of a test", 3), Cache[int, int]("numbers of a test", 4)
    one.put(1, 1)
    two.put(1, 1)
    two.put(2, 2)

    found = cache_sizes()["numbers of a test"]

    assert (found.caches, found.entries, found.max_entries) == (2, 3, 7)
    del one, two
    assert "numbers of a test" not in cache_sizes()
