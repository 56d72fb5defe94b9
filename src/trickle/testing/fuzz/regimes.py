"""Under which limits and optimisations a query is maintained: ``look-ups without order_joins, state_tables``."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from trickle import Trickle
from trickle.model.options import DEFAULT, OPTIMISATIONS, with_disabled
from trickle.testing.regimes import LIGHT, REGIMES, drawn, regime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT: Final = " without "


def draw_regime(rng: Random) -> str:
    """Draw a regime, in a quarter of all cases without some optimisations."""
    name = drawn(str(rng.random()))
    if rng.random() < 0.75:
        return name
    share = rng.choice((0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 1.0))
    some = [switch for switch in sorted(OPTIMISATIONS) if rng.random() < share]
    return name + WITHOUT + ", ".join(some) if some else name


def is_light(text: str) -> bool:
    """Return whether the driver computes most: ten rows by Spark take as long as ten refreshes by the driver."""
    name, switches = read_regime(text)
    return name in LIGHT and "driver_execution" not in switches


def read_regime(text: str) -> tuple[str, tuple[str, ...]]:
    """Split the text of a regime into its name and the optimisations it does without.

    Raises:
        DefinitionError: UNKNOWN_REGIME or UNKNOWN_OPTION, with the names that exist.
    """
    name, _, rest = text.partition(WITHOUT)
    regime(name)
    switches = tuple(part.strip() for part in rest.split(",")) if rest else ()
    with_disabled(DEFAULT, switches)
    return name, switches


def under(spark: SparkSession, text: str) -> Trickle:
    """Return the engine under a regime."""
    name, switches = read_regime(text)
    return Trickle(spark, options=REGIMES[name], disable=switches)
