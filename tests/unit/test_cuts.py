"""Which versions of stream tables belong together, by their records alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trickle.engine.cuts import Cuts
from trickle.engine.graph import Member, Members
from trickle.errors import StateError
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.tables.contract import VersionRange

CHANGED = frozenset({10, 11, 12})
"""The versions of every table that changed a row; those between are properties, or files written anew."""


def classify(since: int, upto: int, _: object) -> VersionRange:
    kind: Any = "mixed" if CHANGED & {*range(since + 1, upto + 1)} else "none"
    return VersionRange(since, upto, kind=kind)


def member(reads: str, *refreshes: tuple[int, int]) -> Any:
    """A stream table over one source: its versions, the newest first, each with that of the source."""
    records = [
        (
            version,
            RefreshRecord(
                refresh_id="r",
                mode="full",
                frontier={reads: SourceVersion(version=seen, identity=reads)},
                fingerprint="f",
                started="now",
            ).model_dump_json(),
        )
        for version, seen in refreshes
    ]
    target = SimpleNamespace(records=lambda depth: iter(records[:depth]))
    prepared = SimpleNamespace(sources={reads: SimpleNamespace(classify=classify)}, used={})
    table: Any = SimpleNamespace(target=target, prepared=prepared)
    return Member(table, {reads: reads})


def find(**members: Any) -> dict[str, int]:
    bases: Any = {"orders": None}
    return Cuts(Members(members, bases), depth=5).find([*members])


def test_the_newest_cut_that_both_have_is_found():
    sums = member("orders", (12, 12), (11, 11), (10, 10))

    assert find(sums=sums, best=member("sums", (7, 11), (6, 10))) == {"sums": 11, "best": 7}


@pytest.mark.parametrize("seen", [12, 13, 15])
def test_a_version_that_is_no_refresh_belongs_to_the_refresh_before(seen):
    assert find(sums=member("orders", (12, 3), (11, 2)), best=member("sums", (7, seen))) == {"sums": 12, "best": 7}


def test_a_later_version_with_the_same_rows_belongs_to_the_cut_too():
    sums = member("orders", (14, 3), (12, 2))

    assert find(sums=sums, best=member("sums", (7, 12))) == {"sums": 14, "best": 7}


def test_a_version_whose_rows_no_refresh_made_belongs_to_none():
    with pytest.raises(StateError, match="NO_COMMON_CUT"):
        find(sums=member("orders", (9, 3), (8, 2)), best=member("sums", (7, 10)))
