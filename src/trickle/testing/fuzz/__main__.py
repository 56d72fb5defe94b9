"""``python -m trickle.testing.fuzz --minutes 10 --seed 7``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from trickle.errors import DefinitionError
from trickle.session import JAVA_OPTIONS, local_session
from trickle.testing.fuzz.case import draw_case
from trickle.testing.fuzz.choose import choose
from trickle.testing.fuzz.regimes import read_regime
from trickle.testing.fuzz.report import Summary, script
from trickle.testing.fuzz.run import Bench, check
from trickle.testing.fuzz.shrink import shrink
from trickle.testing.jvm import QUICK_START

VIEWS: Final = 5
"""Stream tables of a case."""


def main(arguments: list[str] | None = None) -> int:
    """Run cases until the time is over; 1 if one failed."""
    asked = _parser().parse_args(arguments)
    seed = asked.seed if asked.seed is not None else Random().randrange(1_000_000)
    with tempfile.TemporaryDirectory(prefix="trickle-fuzz-") as folder:
        spark = local_session(folder, cores=1, memory="2g", config={JAVA_OPTIONS: QUICK_START})
        summary, seconds = _run(Bench(spark), seed, asked)
        spark.stop()
    _say(f"\nseed {seed}: {summary.text(seconds)}")
    return 1 if summary.failures else 0


def _run(bench: Bench, seed: int, asked: argparse.Namespace) -> tuple[Summary, float]:
    summary = Summary()
    began = time.monotonic()
    until = began + 60 * asked.minutes
    shrinking = 0.0
    number = asked.case if asked.case is not None else asked.first
    while True:
        outcome = bench.run(choose(bench.plain, draw_case(seed, number, regime=asked.regime), VIEWS))
        summary.add(outcome)
        for n, failure in enumerate(outcome.failures):
            at = time.monotonic()
            _say(
                f"seed {seed} case {number}: {failure.kind}\n  {failure.view.regime}\n  {failure.view.sql}\n  {failure.text}"
            )
            small = shrink(failure, partial(check, bench), asked.shrink_seconds) if asked.shrink_seconds else failure
            text = script(small, f"make fuzz SEED={seed} CASE={number}")
            path = Path(asked.failures) / f"seed{seed}-case{number}-{n}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            _say(f"  made small, in {path}:\n{text}")
            shrinking += time.monotonic() - at
        number += 1
        _say(
            f"case {number - 1}: {len(outcome.refreshes)} refreshes, in all {summary.refreshes} of which "
            f"{summary.changed} changed rows, {time.monotonic() - began:.0f} s"
        )
        if asked.case is not None or time.monotonic() > until:
            return summary, time.monotonic() - began - shrinking


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=_minutes, default=5.0, help="how long to go on")
    parser.add_argument("--seed", type=_whole, help="where chance starts; drawn if not given")
    parser.add_argument("--case", type=_whole, help="run only this case of the seed")
    parser.add_argument("--first", type=_whole, default=0, help="the number of the first case")
    parser.add_argument("--regime", type=_regime, help="run all under this regime")
    parser.add_argument("--failures", default="fuzz-failures", help="the folder for failures")
    parser.add_argument("--shrink-seconds", type=float, default=90.0, help="how long a failure may be made smaller")
    return parser


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not 0 < minutes <= 24 * 60:
        message = f"{text!r} is not a number of minutes between 0 and 1440"
        raise argparse.ArgumentTypeError(message)
    return minutes


def _whole(text: str) -> int:
    if not text.isdecimal():
        message = f"{text!r} is not a whole number of 0 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _regime(text: str) -> str:
    try:
        read_regime(text)
    except DefinitionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
