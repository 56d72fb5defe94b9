"""``python -m trickle.testing.soak --minutes 10 --seed 7``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

from trickle.api import Trickle
from trickle.session import local_session
from trickle.testing.soak.run import Choice, soak


def main(arguments: list[str] | None = None) -> int:
    """Run one soak; 1 if anything did not hold."""
    asked = _parser().parse_args(arguments)
    seed = asked.seed if asked.seed is not None else Random().randrange(1_000_000)
    choice = Choice(60 * asked.minutes, seed, asked.rate, asked.kill_every, asked.redeploy_every)
    folder = Path(tempfile.mkdtemp(prefix="trickle-soak-"))
    try:
        (folder / "logs").mkdir()
        spark = local_session(folder / "warehouse", memory="1g", config={"spark.ui.enabled": "false"})
        outcome = soak(Trickle(spark), folder / "warehouse", folder / "logs", choice, _say)
        spark.stop()
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for what, found in outcome.counts.items():
        _say(f"{what:>26}  {found}")
    for failure in outcome.failures:
        _say(f"FAILED: {failure}")
    _say(f"seed {seed}: {len(outcome.failures)} failures{f', all files are in {folder}' if asked.keep else ''}")
    return 1 if outcome.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=_positive, default=10.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="where chance starts; drawn if not given")
    parser.add_argument("--rate", type=_positive, default=3.0, help="commits a second to base tables")
    parser.add_argument("--kill-every", type=_positive, default=30.0, help="seconds between two kills, about")
    parser.add_argument("--redeploy-every", type=_positive, default=10.0, help="seconds between two redeploys, about")
    parser.add_argument("--keep", action="store_true", help="leave the tables and the runners' logs")
    return parser


def _positive(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        message = f"{text!r} is not a number above 0"
        raise argparse.ArgumentTypeError(message)
    return found


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
