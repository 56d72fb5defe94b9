"""Whether what a stream table reads is up to date, from records and heads alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.engine.upstream import Upstream
from trickle.errors import SourceError
from trickle.model.definition import Definition, RefreshRecord, SourceVersion
from trickle.tables.contract import VersionRange
from trickle.tables.format_contract import Marks

DEFINITION = Definition(query="…", catalog="spark_catalog", schema_name="shop", spark="4.1").model_dump_json()


@dataclass
class Table:
    """A table, and the versions of others that it was computed from if it is a stream table."""

    name: str
    newest: int = 1
    frontier: dict[str, int] | None = None
    kind: Any = "append"
    looks: list[tuple[int, int]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/{self.name}"

    def head(self) -> int:
        return self.newest

    def columns(self, _: int) -> dict[str, Any]:
        return {"id": None}

    def record(self, _: int) -> str | None:
        if self.frontier is None:
            return None
        seen = {name: SourceVersion(version=version, identity=name) for name, version in self.frontier.items()}
        record = RefreshRecord(refresh_id="r", mode="full", frontier=seen, fingerprint="f", started="now")
        return record.model_dump_json()

    def classify(self, since: int, upto: int, columns: Any) -> VersionRange:
        assert tuple(columns) == ("id",)
        self.looks.append((since, upto))
        return VersionRange(since, upto, self.kind)


def warned(tables: list[Table], reads: str) -> list[str]:
    """Say of which of its sources a table that reads some is told."""
    by_name = {table.name: table for table in tables}

    def marks(place: str) -> Marks | None:
        return Marks(DEFINITION, is_copy=False) if by_name[place[1:]].frontier is not None else None

    def source_by_name(name: str, **_: str) -> Table:
        if name not in by_name:
            raise SourceError("SOURCE_MISSING", "gone.")
        return by_name[name]

    catalog: Any = SimpleNamespace(marks=marks, source_by_name=source_by_name)
    sources: Any = {name: by_name[name] for name in reads.split()}
    return [reason.text for reason in Upstream(catalog, 8).warnings(sources)]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ([Table("a", 1)], []),  # a base table is never behind
        ([Table("a", 3, {"t": 5}), Table("t", 5)], []),
        ([Table("a", 3, {"t": 5}), Table("t", 6)], ["a is behind what it reads"]),
        ([Table("a", 3, {"t": 5}), Table("t", 6, kind="none")], []),  # a commit without rows is no news
        ([Table("a", 3, {"b": 2}), Table("b", 2, {"t": 5}), Table("t", 6)], ["a is behind what it reads"]),
        ([Table("a", 3, {"b": 2, "@1": 7}), Table("b", 2, {"t": 6}), Table("t", 6)], []),
        ([Table("a", 3, {"gone": 2})], []),  # its own refresh says what is wrong
    ],
)
def test_what_is_behind_is_told(tables, told):
    assert warned(tables, "a") == told


def test_several_are_told_at_once():
    tables = [Table("a", 1, {"t": 1}), Table("b", 1, {"t": 1}), Table("t", 2)]

    assert warned(tables, "a b t") == ["a, b are behind what they read"]
