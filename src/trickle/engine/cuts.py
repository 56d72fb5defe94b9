"""Finds versions of stream tables that belong together: those that stand for the same versions of the base tables.

A version of a table belongs to a cut if each of its sources does at the version that it was computed from, or at another one
that has the same rows: a run leaves a table alone whose sources committed without changing a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.errors import StateError
from trickle.model.definition import RefreshRecord
from trickle.model.names import is_state_table

if TYPE_CHECKING:
    from trickle.engine.graph import Members

Cut = Mapping[str, int]
"""Versions of base tables, by their place."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts that stream tables have in common.

    Attributes:
        depth: How many versions of a table are looked at, from the newest back.
    """

    members: Members
    depth: int

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Return the version of each table at the newest cut that all have.

        Raises:
            StateError: ``NO_COMMON_CUT``.
        """
        found = self._search(tuple(names), {})
        if found is None:
            text = f"{', '.join(names)} have no cut in common among their last {self.depth} versions."
            raise StateError("NO_COMMON_CUT", text, hint="refresh_all() brings them to one.")
        return found

    def _search(self, names: tuple[str, ...], cut: Cut) -> dict[str, int] | None:
        if not names:
            return {}
        name = names[0]
        for version, record in self._records(name):
            wider = self._with(name, record, cut)
            rest = None if wider is None else self._search(names[1:], wider)
            if rest is not None:
                return {name: version, **rest}
        return None

    def _records(self, name: str) -> Iterator[tuple[int, RefreshRecord]]:
        """Return the refreshes of a table, the newest first."""
        target = self.members.members[name].table.target
        for version, text in target.records(self.depth):
            yield version, RefreshRecord.model_validate_json(text)

    def _with(self, name: str, record: RefreshRecord, cut: Cut) -> Cut | None:
        """Return a cut with the base tables that a refresh stands for, None if it does not belong to the cut."""
        if record.skipped is not None:
            return None
        member = self.members.members[name]
        for source_name, seen in record.frontier.items():
            if is_state_table(source_name):
                continue
            node = member.reads.get(source_name)
            wider = None if node is None else self._with_source(name, source_name, node, seen.version, cut)
            if wider is None:
                return None
            cut = wider
        return cut

    def _with_source(self, name: str, source_name: str, node: str, version: int, cut: Cut) -> Cut | None:
        if node in self.members.members:
            wider = (self._with(node, record, cut) for record in self._same(name, source_name, node, version))
            return next((found for found in wider if found is not None), None)
        known = cut.get(node)
        if known is None:
            return {**cut, node: version}
        return cut if self._is_same(name, source_name, *sorted((known, version))) else None

    def _same(self, name: str, source_name: str, node: str, version: int) -> Iterator[RefreshRecord]:
        """Return the refreshes of a stream table that gave it the rows of a version of it, as far as another table reads them.

        The newest comes first: so the cut is the newest, too. The last is the one that this version comes from; commits that
        are no refreshes may lie between: a property, files written anew.
        """
        for at, record in self._records(node):
            if self._is_same(name, source_name, *sorted((version, at))):
                yield record
            if at <= version:
                return

    def _is_same(self, name: str, source_name: str, since: int, upto: int) -> bool:
        """Say whether a source has the same rows at two versions, as far as a table reads them."""
        if since == upto:
            return True
        prepared = self.members.members[name].table.prepared
        versions = prepared.sources[source_name].classify(since, upto, prepared.used.get(source_name, ()))
        return versions.broken is None and versions.kind == "none"
