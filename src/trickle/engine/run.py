"""Brings a graph of stream tables to one cut: each once, after what it reads, side by side where nothing stands between."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trickle.engine.suspend import SuspendedNowError
from trickle.engine.verbs import describe_failure
from trickle.errors import SourceError, TrickleError
from trickle.model.digests import is_same_digest
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
        cut: The version of each base table, by its place. A table that others have brought further since stays there.
        refresh: Refreshes one table.
        on_outcome: Called with what became of each table as soon as it is known.
        suspended: The stream tables that are left where they are; those that read one read it as it is.
        trigger: Who asked for it.
        timeout: The seconds that the refresh of each table may take; None for what its options say.
        asked: The base tables whose version somebody asked for: to go there, a table goes back, too.
        is_ended: Asked before each table; once it says so, no other one is begun, and those left are in no part of the report.
        lag: A table whose sources committed without changing a row is left where it is, until so many commits came.
    """

    members: Members
    cut: dict[str, int]
    refresh: RefreshOne
    full: bool = False
    on_outcome: OnOutcome | None = None
    lag: int = 20
    suspended: dict[str, Suspension] = field(default_factory=dict)
    trigger: Trigger = "manual"
    timeout: float | None = None
    asked: Collection[str] = ()
    is_ended: Callable[[], bool] = lambda: False
    _reports: dict[str, RefreshReport] = field(default_factory=dict)
    _errors: dict[str, TrickleError] = field(default_factory=dict)

    def run(self, names: Collection[str], workers: int = 1) -> RunReport:
        """Refresh tables; one that fails stops only those that read it."""
        began = time.perf_counter()
        graph = self.members.graph
        waiting = [name for wave in graph.waves(names) for name in wave if name not in self.suspended]
        if workers == 1:
            for name in waiting:
                if self.is_ended():
                    break
                self._settle(name, self._outcome(name))
        else:
            self._run_side_by_side(waiting, workers)
        off_cut = graph.downstream([*self.suspended, *filter(self._is_off_cut, self._reports)])
        shown = {self.members.show(node): version for node, version in self.cut.items()}
        return RunReport(
            dict(self._reports),
            dict(self._errors),
            shown,
            time.perf_counter() - began,
            skipped={name: why for name, why in self.suspended.items() if name in names},
            off_cut=tuple(name for name in self._reports if name in off_cut),
        )

    def _run_side_by_side(self, waiting: list[str], workers: int) -> None:
        running: dict[Future[RefreshReport | TrickleError], str] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="trickle-refresh") as pool:
            while waiting or running:
                if self.is_ended():
                    waiting.clear()
                left = {*waiting, *running.values()}
                ready = [n for n in waiting if not left & set(self.members.members[n].reads.values())]
                for name in ready[: workers - len(running)]:  # no more, so that the others need not begin
                    waiting.remove(name)
                    running[pool.submit(self._outcome, name)] = name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._settle(running.pop(future), future.result())

    def _settle(self, name: str, outcome: RefreshReport | TrickleError) -> None:
        if isinstance(outcome, SuspendedNowError):
            self.suspended[name] = outcome.suspension  # since the run began
            return
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
                return self.refresh(member, self._request(member))
        except Exception as error:
            return describe_failure(error, f"refresh of '{name}'")

    def _request(self, member: Member) -> Request:
        request = Request(full=self.full, timeout=self.timeout, trigger=self.trigger)
        if member.table.prepared.obstacles:
            return request  # Spark reads the newest versions
        versions = {name: self._version(member, name, node) for name, node in member.reads.items()}
        at = {name: version for name, version in versions.items() if member.reads[name] in self.asked}
        return replace(request, at=at or None, pinned=versions)

    def _version(self, member: Member, name: str, node: str) -> int:
        source = member.table.prepared.sources[name]
        if node in self.members.bases:
            # One that did not answer when the run began has the version that the first of its readers sees.
            return self.cut[node] if node in self.cut else self.cut.setdefault(node, source.head())
        report = self._reports.get(node)
        newest = source.head() if report is None else report.version
        last = None if self.full else _last_seen(member, name)
        if last is None or not 0 < newest - last <= self.lag:
            return newest
        # What changed no row upstream is no news here.
        columns = member.table.prepared.used.get(name, ())
        versions = source.classify(last, newest, columns)
        return last if versions.broken is None and versions.kind == "none" else newest

    def _is_off_cut(self, name: str) -> bool:
        """Return whether a table was brought to other versions of what it reads than the run chose."""
        member, frontier = self.members.members[name], self._reports[name].frontier
        if member.table.prepared.obstacles:
            return True
        for source, node in member.reads.items():
            if node in self.members.bases and frontier.get(source) != self.cut.get(node):
                return True
            if node in self._reports and frontier.get(source, -1) > self._reports[node].version:
                return True
        return False


def _last_seen(member: Member, name: str) -> int | None:
    """Return the version of a source that a table stands on, None if it is not surely the same table's."""
    target = member.table.target
    try:
        record = read_record(target.name, target.state())
    except (TrickleError, OSError):
        return None  # the refresh itself says what is wrong
    source = member.table.prepared.sources[name]
    seen = None if record is None else record.frontier.get(name)
    if seen is None or seen.version > source.head():
        return None
    return seen.version if is_same_digest(source.digest(seen.version), seen.digest) else None
