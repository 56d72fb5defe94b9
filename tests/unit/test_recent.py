"""A bounded memo."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

from trickle.catalyst.jvm import Jvm
from trickle.model.options import DEFAULT
from trickle.model.recent import Recent


def test_what_was_not_asked_for_the_longest_goes():
    memo: Recent[str, int] = Recent(2)
    numbers = count(1)

    def make(key: str) -> int:
        return memo.get(key, lambda: next(numbers))

    assert [make(key) for key in "abacab"] == [1, 2, 1, 3, 1, 4]
    assert memo.keys() == ["a", "b"]
    assert memo.known("c") is None
    memo.put("c", 7)
    assert (memo.known("c"), memo.keys()) == (7, ["b", "c"])


def test_none_is_a_value_too():
    memo: Recent[str, None] = Recent(2)
    asked = []
    for _ in range(3):
        memo.get("a", lambda: asked.append(1))

    assert asked == [1]


def test_constants_of_many_refreshes_are_not_all_kept(monkeypatch):
    monkeypatch.setattr(Jvm, "singleton", lambda _self, _path: SimpleNamespace(fromSQL=lambda text: text))
    jvm: Any = Jvm.__new__(Jvm)
    jvm._longs = Recent(DEFAULT.constants_kept)
    for value in range(3 * DEFAULT.constants_kept):
        assert jvm.literal(value) == f"{value}L"

    assert len(jvm._longs.keys()) == DEFAULT.constants_kept
