"""The tables of one refresh: what is refreshed, what it reads, and the state tables opened so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from trickle.layout import is_remote
from trickle.model.options import DEFAULT, Options
from trickle.tables.looks import at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.compile.program import Program
    from trickle.model.definition import Mode
    from trickle.refresh.fuse import Fuse
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import SourceTable, StateStore, TargetTable


@dataclass(frozen=True, slots=True)
class RefreshTables:
    """A stream table, or one of its state tables, made ready to be refreshed once.

    Attributes:
        store: Where its state tables are; None if it has none.
        definition: The stored definition that it was prepared from; None if nobody else can replace it.
        fuse: Which changes are too big to be applied; None if none is.
    """

    prepared: Prepared
    target: TargetTable
    mode: Mode
    store: StateStore | None = None
    options: Options = DEFAULT
    definition: str | None = None
    fuse: Fuse | None = None
    _opened: dict[str, tuple[TargetTable, SourceTable]] = field(default_factory=dict)

    @property
    def sources(self) -> Mapping[str, SourceTable]:
        """The sources by name, and the state tables opened so far."""
        return {**self.prepared.sources, **{name: source for name, (_, source) in self._opened.items()}}

    def look_at_once(self) -> None:
        """Look at all logs that are far away side by side: then each of them is one that was seen."""
        sources = [source for source in self.prepared.sources.values() if is_remote(source.path)]
        if sources:
            names = [p.state_table.name for p in self.prepared.state_tables if p.state_table is not None]
            stored = [] if self.store is None else [partial(self.find_state_table, name) for name in names]
            at_once([self.target.state, *(source.head for source in sources), *stored])

    def program_of(self, state_table: str) -> Program:
        """Return the program of a state table."""
        return next(p for p in self.prepared.state_tables if p.state_table and p.state_table.name == state_table)

    def find_state_table(self, name: str) -> tuple[TargetTable, SourceTable] | None:
        """Return a state table to write and to read, None if there is none."""
        if name not in self._opened:
            found = self._store.get(name)
            if found is None:
                return None
            self._opened[name] = found
        return self._opened[name]

    def open_state_table(self, name: str, like: Callable[[], DataFrame]) -> tuple[TargetTable, SourceTable]:
        """Return a state table to write and to read; made empty with the columns of ``like()`` if there is none."""
        if name not in self._opened:
            self._opened[name] = self._store.open(name, like)
        return self._opened[name]

    def find_damage(self, name: str, like: Callable[[], DataFrame]) -> str | None:
        """Say in words why a state table cannot be used, None if all that can be seen of it is as it should be."""
        return self._store.damage(name, like)

    def forget_state_table(self, name: str) -> None:
        """Delete a state table."""
        self._opened.pop(name, None)
        self._store.forget(name)

    def clean_state_table(self, name: str, version: int) -> None:
        """Delete what only versions of a state table before this one need."""
        self._store.clean(name, version)

    def of_state_table(self, name: str) -> RefreshTables:
        """Return an opened state table as what is refreshed."""
        prepared = self.prepared.of_state_table(self.program_of(name), self.sources)
        return RefreshTables(prepared, self._opened[name][0], self.mode, options=self.options)

    @property
    def _store(self) -> StateStore:
        if self.store is None:
            message = "a plan with state tables needs a place for them"
            raise AssertionError(message)
        return self.store
