"""Under which limits and without which optimisations a query is maintained."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Final

from trickle import Trickle
from trickle.compile.program import OPTIMISATIONS
from trickle.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT: Final = "without "
"""Begins a regime's name that goes on with optimisations to switch off: ``without at_hand, stages``."""


def regimes() -> Mapping[str, Any]:
    """Give the limits of each named regime."""
    try:
        found: Mapping[str, Any] = import_module("trickle.testing.regimes").REGIMES
    except ModuleNotFoundError:
        return {"default": None}
    return {"default": None, **found}


def draw_regime(rng: Random, only: str | None = None) -> str:
    """Draw the name of a regime; in a quarter of all cases one that is only without some optimisations."""
    if only is not None:
        return only
    if rng.random() < 0.25:
        some = [name for name in sorted(OPTIMISATIONS) if rng.random() < rng.choice((0.15, 0.5, 1.0))]
        return WITHOUT + ", ".join(some) if some else "default"
    return rng.choice(sorted(regimes()))


def check_regime(name: str) -> None:
    """Refuse a regime that does not exist.

    Raises:
        DefinitionError: UNKNOWN_OPTION, with the names that exist.
    """
    if name.startswith(WITHOUT):
        if set(_passes(name)) <= OPTIMISATIONS:
            return
    elif name in regimes():
        return
    hint = f"Known are {', '.join(sorted(regimes()))}; or '{WITHOUT}' and some of {', '.join(sorted(OPTIMISATIONS))}."
    raise DefinitionError("UNKNOWN_OPTION", f"there is no regime named {name!r}.", hint=hint)


def under(spark: SparkSession, name: str) -> Trickle:
    """Give the engine under a regime."""
    check_regime(name)
    if name.startswith(WITHOUT):
        return Trickle(spark, disable=_passes(name))
    options = regimes()[name]
    return Trickle(spark) if options is None else Trickle(spark, options=options)  # type: ignore[call-arg]


def _passes(name: str) -> list[str]:
    return [part.strip() for part in name.removeprefix(WITHOUT).split(",")]
