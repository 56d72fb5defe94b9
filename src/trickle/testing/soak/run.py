"""One soak: lets runners, a writer, a reader and redeploys loose on one warehouse, ends them, and looks at what is left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from trickle.model.reason import COST, DEFINITION_CHANGED, FIRST_REFRESH, SOURCE_ALTERED
from trickle.testing.soak.processes import Process, Runners
from trickle.testing.soak.reader import Reader
from trickle.testing.soak.tables import BASES, Deployment

if TYPE_CHECKING:
    from trickle.api import Trickle

TAKEN_OVER_SECONDS: Final = 25.0
"""A term of 15 seconds, a look, and what two busy cores add."""

_EXPECTED: Final = (COST, DEFINITION_CHANGED, FIRST_REFRESH, SOURCE_ALTERED, "REQUESTED")
"""Why a refresh may be full here: nobody vacuums, restores or damages anything."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """How a soak goes.

    Attributes:
        seconds: How long.
        rate: Commits a second to base tables.
        kill_every: Seconds between two kills, about.
        redeploy_every: Seconds between two redeploys, about.
    """

    seconds: float
    seed: int
    rate: float = 3.0
    kill_every: float = 30.0
    redeploy_every: float = 10.0


@dataclass(slots=True)
class Outcome:
    """What a soak did and found.

    Attributes:
        counts: What was done, in words.
        failures: What was wrong; empty if all held.
    """

    counts: dict[str, object] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def soak(trickle: Trickle, folder: Path, logs: Path, choice: Choice, say: Say) -> Outcome:
    """Make the tables, let everything loose, and compare what is left with the sources."""
    random = Random(choice.seed)
    for name, made in BASES.items():
        trickle.spark.sql(f"CREATE TABLE {name} {made}")
    deployment = Deployment()
    trickle.apply(deployment.specs())
    say(f"{len(deployment.specs())} stream tables over {len(BASES)} base tables are made")

    outcome, runners, reader = Outcome(), Runners(folder, logs, random), Reader(trickle)
    for _ in range(2):
        runners.start()
    writer = Process.start("writer", logs / "writer.log", str(folder), str(choice.seed), str(choice.rate))
    reader.start()
    try:
        deployment = _let_loose(trickle, choice, random, deployment, runners, outcome, say)
        if writer.end() != 0:
            outcome.failures.append(f"the writer failed: {writer.out.with_suffix('.err').read_text('utf-8')[-1000:]}")
        runners.end()
    finally:
        reader.stop()
        writer.kill(with_children=True)
        runners.kill_all()
    say("ended; comparing what is left")
    _compare(trickle, deployment, outcome)
    reader.look()
    _note(outcome, runners, reader, writer)
    return outcome


def _let_loose(
    trickle: Trickle,
    choice: Choice,
    random: Random,
    deployment: Deployment,
    runners: Runners,
    outcome: Outcome,
    say: Say,
) -> Deployment:
    """Kill and redeploy until the time is over; return the last deployment."""
    began = time.monotonic()
    kill_at, deploy_at = (began + random.expovariate(1 / every) for every in (choice.kill_every, choice.redeploy_every))
    steps, longest = Counter[str](), 0.0
    while (now := time.monotonic()) < began + choice.seconds:
        runners.look()
        if now >= kill_at and runners.kill_one():
            say(f"{now - began:5.0f} s: killed a runner")
            kill_at = now + random.expovariate(1 / choice.kill_every)
        if now >= deploy_at:
            deployment = deployment.next(random)
            try:
                plan = trickle.apply(deployment.specs(), prune=True)
            except Exception as error:
                outcome.failures.append(f"a redeploy failed: {type(error).__name__}: {error}")
            else:
                steps.update(step.action for step in plan.changes)
                say(f"{now - began:5.0f} s: redeployed {', '.join(map(str, plan.changes)) or 'nothing'}")
            longest = max(longest, time.monotonic() - now)
            deploy_at = time.monotonic() + random.expovariate(1 / choice.redeploy_every)
        time.sleep(0.1)
    outcome.counts["redeployed"] = dict(steps)
    outcome.counts["longest redeploy, s"] = round(longest, 1)
    return deployment


def _note(outcome: Outcome, runners: Runners, reader: Reader, writer: Process) -> None:
    (written,) = writer.lines() or [{}]
    runs = runners.lines("run")
    outcome.counts.update(
        {
            "commits written": sum(written.values()),
            "runs": len(runs),
            "refreshes that committed": sum(run["refreshed"] for run in runs),
            "runners killed": runners.kills,
            "taken over after, s": [round(seconds, 1) for seconds in runners.took_over],
            "failures that passed": dict(Counter(line["code"] for line in runners.lines("failed"))),
            "cuts read": reader.reads,
            "longest read, s": round(reader.longest, 1),
        }
    )
    outcome.failures.extend([*runners.failures, *reader.failures])
    outcome.failures.extend([f"{line['table']} was suspended: {line['why']}" for line in runners.lines("suspended")])
    late = [seconds for seconds in runners.took_over if seconds > TAKEN_OVER_SECONDS]
    outcome.failures.extend([f"a lease was taken over after {seconds:.1f} s" for seconds in late])
    if not runs or not reader.reads:
        outcome.failures.append("nothing ran, or nothing was read")


def _compare(trickle: Trickle, deployment: Deployment, outcome: Outcome) -> None:
    """Bring all tables to one last cut, compare each with Spark's own answer there, and look what refreshes there were."""
    modes, reasons = Counter[str](), Counter[str]()
    report = trickle.refresh_all()
    outcome.failures.extend([f"at the end {name} failed: {error}" for name, error in report.errors.items()])
    outcome.failures.extend([f"at the end {name} is suspended: {why}" for name, why in report.skipped.items()])
    queries = deployment.queries()
    names = sorted(table.name.split(".")[-1] for table in trickle.tables())
    if names != sorted(queries):
        outcome.failures.append(f"there are {names}, not {sorted(queries)}")
    for name in queries:
        if not (verified := trickle.verify(name)):
            outcome.failures.append(f"{name} is not its query: {verified}")
        for past in trickle.history(name, limit=None):
            modes[past.mode] += 1
            if past.reason is not None:
                reasons[past.reason.split(":")[0].split("]")[0].strip("[")] += 1
    outcome.counts.update({"tables compared": len(queries), "refreshes": dict(modes), "full because": dict(reasons)})
    outcome.failures.extend([f"{n} full refreshes for {why}" for why, n in reasons.items() if why not in _EXPECTED])
    outcome.failures.extend(
        [f"{one.table} is {one.health}: {one.problem}" for one in trickle.status() if one.health != "ok"]
    )
