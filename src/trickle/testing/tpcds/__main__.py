"""Run the suite and report: ``python -m trickle.testing.tpcds --queries 5,64 --regime look-ups``.

A line for each refresh: what was wrong if anything was, how long it took, how long the query itself took. At the end
the refreshes, from the second round on, that took more than ten times as long as their query.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from trickle.session import local_session
from trickle.testing.regimes import REGIMES, regime
from trickle.testing.tpcds.data import ROUNDS
from trickle.testing.tpcds.queries import NUMBERS
from trickle.testing.tpcds.suite import Outcome, Suite

SLOW = 10
"""A refresh that takes this many times as long as its query is reported."""


def main() -> int:
    """Run, and give 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m trickle.testing.tpcds", description=__doc__)
    parser.add_argument("--queries", default=",".join(map(str, NUMBERS)), help="numbers, separated by commas")
    parser.add_argument("--regime", default="default", choices=list(REGIMES))
    asked = parser.parse_args()
    numbers = [int(number) for number in asked.queries.split(",")]
    if unknown := set(numbers).difference(NUMBERS):
        parser.error(f"no query {', '.join(map(str, sorted(unknown)))}; there are {NUMBERS[0]} to {NUMBERS[-1]}")
    with tempfile.TemporaryDirectory(prefix="tpcds") as folder:
        spark = local_session(Path(folder) / "warehouse")
        suite = Suite(spark, Path(folder) / "sources", options=regime(asked.regime))
        failed, slow = _run(suite, numbers)
        spark.stop()
    _say(f"{len(numbers) - len(failed)} of {len(numbers)} queries exact and differential after each round")
    _say(f"slower than {SLOW} times the query: {', '.join(slow) or 'none'}")
    return 1 if failed else 0


def _run(suite: Suite, numbers: list[int]) -> tuple[set[int], list[str]]:
    """Return the queries that failed, and the slow refreshes."""
    failed: set[int] = set()
    slow: list[str] = []
    for round_ in range(ROUNDS + 1):
        if round_:
            suite.mutate(round_)
        for number in (number for number in numbers if number not in failed):
            where = f"q{number:02d} round {round_}"
            try:
                outcome = suite.refresh(number) if round_ else suite.create(number)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
                times = ""
            else:
                wrong = outcome.wrong()
                times = f"{outcome.seconds:.2f} s, the query {outcome.query_seconds:.2f} s, {outcome.rows} rows"
                if round_ > 1 and _is_slow(outcome):
                    slow.append(f"{where} ({times})")
            if wrong:
                failed.add(number)
            _say(f"{where}: {wrong or 'ok'} {times}".rstrip())
    return failed, slow


def _is_slow(outcome: Outcome) -> bool:
    return outcome.seconds > SLOW * outcome.query_seconds


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
