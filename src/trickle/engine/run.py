"""Brings a graph of stream tables to one cut: each once, after what it reads, side by side where nothing stands between."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trickle.engine.verbs import describe_failure
from trickle.errors import SourceError, TrickleError
from trickle.model.report import RunReport
from trickle.refresh.record import read_record
from trickle.refresh.request import Request
from trickle.session import exhaustion_told

if TYPE_CHECKING:
    from trickle.engine.graph import Member, Members
    from trickle.model.events import Trigger
    from trickle.model.report import RefreshReport
    from trickle.model.suspension import Suspension

RefreshOne = Callable[["Member", Request], "RefreshReport"]
OnOutcome = Callable[[str, "RefreshReport | TrickleError"], None]


@dataclass(slots=True)
class Run:
    """One pass over stream tables.

    Attributes:
        members: The stream tables of the catalog.
        cut: The version of each base table, by its place.
        refresh: Refreshes one table.
        on_outcome: Called with what became of each table as soon as it is known.
        suspended: The stream tables that are left where they are; those that read one read it as it is.
        trigger: Who asked for it.
        timeout: The seconds that the refresh of each table may take; None for what its options say.
        lag: A table whose sources committed without changing a row is left where it is, until so many commits came.
    """

    members: Members
    cut: Mapping[str, int]
    refresh: RefreshOne
    full: bool = False
    on_outcome: OnOutcome | None = None
    lag: int = 20
    suspended: Mapping[str, Suspension] = field(default_factory=dict)
    trigger: Trigger = "manual"
    timeout: float | None = None
    _reports: dict[str, RefreshReport] = field(default_factory=dict)
    _errors: dict[str, TrickleError] = field(default_factory=dict)

    def run(self, names: Collection[str], workers: int = 1) -> RunReport:
        """Refresh tables; one that fails stops only those that read it."""
        began = time.perf_counter()
        graph = self.members.graph
        waiting = [name for wave in graph.waves(names) for name in wave if name not in self.suspended]
        behind = graph.downstream(self.suspended)
        if workers == 1:
            for name in waiting:
                self._settle(name, self._outcome(name))
        else:
            self._run_side_by_side(waiting, workers)
        shown = {self.members.show(node): version for node, version in self.cut.items()}
        return RunReport(
            dict(self._reports),
            dict(self._errors),
            shown,
            time.perf_counter() - began,
            skipped={name: why for name, why in self.suspended.items() if name in names},
            off_cut=tuple(name for name in self._reports if name in behind),
        )

    def _run_side_by_side(self, waiting: list[str], workers: int) -> None:
        running: dict[Future[RefreshReport | TrickleError], str] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="trickle-refresh") as pool:
            while waiting or running:
                left = {*waiting, *running.values()}
                for name in [n for n in waiting if not left & set(self.members.members[n].reads.values())]:
                    waiting.remove(name)
                    running[pool.submit(self._outcome, name)] = name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._settle(running.pop(future), future.result())

    def _settle(self, name: str, outcome: RefreshReport | TrickleError) -> None:
        if isinstance(outcome, TrickleError):
            self._errors[name] = outcome
        else:
            self._reports[name] = outcome
        if self.on_outcome is not None:
            self.on_outcome(name, outcome)

    def _outcome(self, name: str) -> RefreshReport | TrickleError:
        member = self.members.members[name]
        read = {self.members.broken_at.get(node, node) for node in member.reads.values()}
        failed = sorted(read & {*self._errors, *self.members.broken})
        if failed:
            text = f"stream table '{name}' was not refreshed, because {', '.join(failed)} failed."
            return SourceError("UPSTREAM_FAILED", text, hint="Mend what failed; the next run goes on from here.")
        try:
            with exhaustion_told():
                return self.refresh(
                    member,
                    Request(full=self.full, at=self._versions(member), timeout=self.timeout, trigger=self.trigger),
                )
        except Exception as error:
            return describe_failure(error, f"refresh of '{name}'")

    def _versions(self, member: Member) -> dict[str, int] | None:
        """Return the version of each source to go to; None, for the newest, if the query cannot be pinned."""
        if member.table.prepared.obstacles:
            return None
        return {name: self._version(member, name, node) for name, node in member.reads.items()}

    def _version(self, member: Member, name: str, node: str) -> int:
        if node in self.cut:
            return self.cut[node]
        source = member.table.prepared.sources[name]
        report = self._reports.get(node)
        newest = source.head() if report is None else report.version
        last = None if self.full else _last_seen(member, name)
        if last is None or not 0 < newest - last <= self.lag:
            return newest
        # What changed no row upstream is no news here.
        columns = member.table.prepared.used.get(name, ())
        versions = source.classify(last, newest, columns)
        return last if versions.broken is None and versions.kind == "none" else newest


def _last_seen(member: Member, name: str) -> int | None:
    """Return the version of a source that a table stands on, None if it is not surely the same table's."""
    target = member.table.target
    try:
        record = read_record(target.name, target.state())
    except TrickleError:
        return None  # the refresh itself says what is wrong
    source = member.table.prepared.sources[name]
    seen = None if record is None else record.frontier.get(name)
    if seen is None or seen.version > source.head() or source.digest(seen.version) != seen.digest:
        return None
    return seen.version
