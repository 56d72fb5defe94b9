"""The facts by which a refresh decides: gathered by ``look``, extended as steps run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trickle.model.cost import Change, Costs, Estimate

if TYPE_CHECKING:
    from trickle.errors import StateError
    from trickle.model.definition import Mode, RefreshRecord, SourceVersion
    from trickle.model.reason import Reason
    from trickle.model.report import RefreshReport
    from trickle.tables.contract import TargetState, VersionRange


@dataclass(frozen=True, slots=True)
class StateTableFacts:
    """The facts about one state table.

    Attributes:
        is_required: True if the result would not be right without it: it holds values that cannot be computed twice alike.
        is_empty: True if it is not there, or has no refresh on record.
        digest: Of the version that the last refresh read, as it is now; None if it is gone.
        rebuilt: Why this refresh recomputed it; None if it did not, or has not come to it.
        damage: What this refresh found to be wrong with it.
        cause: The error that showed the damage.
    """

    name: str
    is_required: bool = False
    is_empty: bool = False
    digest: str | None = None
    rebuilt: Reason | None = None
    damage: str | None = None
    cause: Exception | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation of a stream table, or of one of its state tables, and its sources.

    Attributes:
        table: The name of the table.
        mode: The mode of the stream table.
        state: Where the table stood at the first look.
        record: What the last refresh says of itself; None if there is none, or a full refresh is requested.
        goal: The versions to go to; state tables join as they are refreshed.
        sources: The names of what the definition reads, for a state table those of lower state tables too.
        used: The names of sources and state tables that the table's own plan reads.
        fingerprint: Of the definition as it is now.
        obstacles: Why the query cannot be maintained incrementally.
        is_full_asked: True if all rows are to be recomputed in any case.
        is_redefined: True if they are, because the query is replaced by another.
        is_skip_asked: True if the frontier is to advance without the change.
        is_pinned: True if versions of sources were requested.
        is_ahead: True if another refresh has brought this state table further than the goal, from where it may not go back.
        ranges: What happened to each source, and each refreshed state table, that is not where the last refresh saw it.
        change: The changed rows, as far as the logs tell.
        costs: What earlier refreshes took.
        estimate: The seconds foreseen for either mode; None if there is nothing to choose.
        state_tables: What is known of the state tables, each after those that it reads.
        changed: Netted changed rows read of each source so far.
        is_change_empty: True if the computed change has no rows.
        mismatch: The error by which the change turned out not to be one that can be made to the stored rows.
        report: What the refresh did, once it is done.
    """

    table: str
    mode: Mode
    state: TargetState
    record: RefreshRecord | None
    goal: Mapping[str, SourceVersion]
    sources: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    fingerprint: str = ""
    obstacles: tuple[Reason, ...] = ()
    is_full_asked: bool = False
    is_redefined: bool = False
    is_skip_asked: bool = False
    is_pinned: bool = False
    is_ahead: bool = False
    ranges: Mapping[str, VersionRange] = field(default_factory=dict)
    change: Change = field(default_factory=lambda: Change.of([]))
    costs: Costs = field(default_factory=Costs)
    estimate: Estimate | None = None
    state_tables: tuple[StateTableFacts, ...] = ()
    changed: Mapping[str, int] = field(default_factory=dict)
    is_change_empty: bool = False
    mismatch: StateError | None = None
    report: RefreshReport | None = None

    @property
    def is_at_goal(self) -> bool:
        """True if the last refresh saw the sources at the goal."""
        record = self.record
        return record is not None and all(
            name in record.frontier and record.frontier[name].is_same(version) for name, version in self.goal.items()
        )

    @property
    def requires_state(self) -> bool:
        """True if the result would not be right without some state table."""
        return any(s.is_required for s in self.state_tables)

    @property
    def is_behind(self) -> bool:
        """True if the last refresh went without some state table."""
        return self.record is not None and any(s.name not in self.record.frontier for s in self.state_tables)

    def state_table(self, name: str) -> StateTableFacts:
        """Return the facts about a state table."""
        return next(s for s in self.state_tables if s.name == name)

    def with_state_table(self, facts: StateTableFacts) -> Situation:
        """Return the situation with other facts about a state table."""
        return replace(self, state_tables=tuple(facts if s.name == facts.name else s for s in self.state_tables))

    def with_frontier(self, name: str, version: SourceVersion) -> Situation:
        """Return the situation as if the last refresh had read a state table at a version."""
        if self.record is None:
            return self
        frontier = {**self.record.frontier, name: version}
        return replace(self, record=self.record.model_copy(update={"frontier": frontier}))
