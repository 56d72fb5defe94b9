"""What a run has to say: a summary, and each failure as a script that shows it again."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from trickle.testing.fuzz.case import Failure, Outcome, View
from trickle.testing.fuzz.regimes import WITHOUT

SLOW: Final = 10.0
SLOW_SECONDS: Final = 1.0


@dataclass(slots=True)
class Summary:
    """Counts over all cases of a run."""

    cases: int = 0
    views: int = 0
    verified: int = 0
    refreshes: int = 0
    changed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    by_regime: Counter[str] = field(default_factory=Counter)
    by_construct: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    slow: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    slowest: tuple[float, str] = (0.0, "")

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        self.cases += 1
        self.views += outcome.created
        self.verified += outcome.verified
        self.refreshes += len(outcome.refreshes)
        self.failures.update(failure.kind for failure in outcome.failures)
        self.known.update(outcome.known)
        self.refused.update(outcome.refused)
        self.unusable.update(outcome.unusable)
        for refresh in outcome.refreshes:
            name, _, switches = refresh.view.regime.partition(WITHOUT)
            self.by_regime[name] += 1
            self.by_regime["without some optimisations"] += bool(switches)
            if refresh.mode == "differential" and refresh.changed:
                self.changed += 1
                self.by_construct.update(refresh.view.constructs)
            ratio = refresh.seconds / max(refresh.plain_seconds, 1e-3)
            if ratio > SLOW and refresh.seconds > SLOW_SECONDS:
                for construct in refresh.view.constructs:
                    self.slow[construct].append(ratio)
                if ratio > self.slowest[0]:
                    self.slowest = (ratio, f"{refresh.seconds:.1f} s, {refresh.view.regime}: {refresh.view.sql}")

    def text(self, seconds: float) -> str:
        """Write it for people."""
        rate = self.refreshes / max(seconds / 60, 1e-9)
        lines = [
            f"{self.cases} cases, {self.views} stream tables, {self.refreshes} refreshes compared ({rate:.0f} a minute), "
            f"{self.changed} of them changed rows, {self.verified} verified",
            f"by regime: {_counts(self.by_regime)}",
            f"by construct, refreshes that changed rows: {_counts(self.by_construct)}",
            f"refused: {_counts(self.refused)}",
            f"not run by Spark itself: {_counts(self.unusable)}",
        ]
        slow = sorted(self.slow.items(), key=lambda item: -len(item[1]))[:12]
        listed = ", ".join(f"{name} {len(r)} (median {median(r):.0f} ×)" for name, r in slow)
        lines.append(f"slower than {SLOW:.0f} × the query and {SLOW_SECONDS:.0f} s: {listed or 'none'}")
        if self.slowest[0]:
            lines.append(f"slowest: {self.slowest[0]:.0f} ×, {self.slowest[1]}")
        if self.known:
            lines.append(f"known and not mended: {_counts(self.known)}")
        lines.append(f"failures: {_counts(self.failures)}")
        return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "none"


def script(failure: Failure, origin: str) -> str:
    """Write a failure as a Python program that shows it again."""
    case = replace(failure.case, views=(View(failure.view.sql, failure.view.regime),))
    tables = "".join(f"    {table!r},\n" for table in case.tables)
    rounds = "".join("    (\n" + "".join(f"        {c!r},\n" for c in round_) + "    ),\n" for round_ in case.rounds)
    ddl = "\n".join(f"#   {table.ddl}" for table in case.tables)
    text = "\n".join(f"#   {line}" for line in failure.text.split("\n"))
    return f"""# {origin}
# {failure.kind}
{text}
{ddl}
import datetime
import tempfile
from decimal import Decimal
from math import inf, nan

from trickle.session import local_session
from trickle.testing.fuzz.case import Case, View
from trickle.testing.fuzz.changes import Change
from trickle.testing.fuzz.run import Bench, check
from trickle.testing.fuzz.tables import Table

TABLES = (
{tables})
ROUNDS = (
{rounds})
QUERY = {failure.view.sql!r}

bench = Bench(local_session(tempfile.mkdtemp(), cores=1))
print(check(bench, Case(TABLES, (View(QUERY, {failure.view.regime!r}),), ROUNDS)))
"""
