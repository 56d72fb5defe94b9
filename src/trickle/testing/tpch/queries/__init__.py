"""The 22 queries as text: ``qNN.sql`` beside this file."""

from __future__ import annotations

import re
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trickle.testing.tpch.data import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES: Final = tuple(f"q{number:02d}" for number in range(1, 23))

QUERIES: Final[Mapping[str, str]] = MappingProxyType(
    {name: resources.files(__name__).joinpath(f"{name}.sql").read_text("utf-8") for name in NAMES}
)


def sources_of(name: str) -> frozenset[str]:
    """Return the tables a query reads.

    >>> sorted(sources_of("q13"))
    ['customer', 'orders']
    """
    return frozenset(TABLES).intersection(re.findall(r"\w+", QUERIES[name]))
