"""The table formats that Trickle knows: one row for each, and the one that results are written in.

A format is a package that passes the contract tests (``tests/contract``), and a row here. Nothing above ``tables`` names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from deltalake.exceptions import DeltaError

from trickle.tables.delta.format import DeltaFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.model.options import Options
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.contract import TableFormat

    MakeFormat = Callable[[SparkSession, Options, ColumnCache | None], TableFormat]

FORMATS: Final[Mapping[str, MakeFormat]] = MappingProxyType({"delta": DeltaFormat})
"""The formats by name, in the order in which a leaf of a query is shown to them."""

FORMAT_ERRORS: Final[tuple[type[Exception], ...]] = (DeltaError,)
"""What the libraries that read and write the formats raise."""

RESULT_FORMAT: Final = "delta"
"""The format of stream tables and their state tables."""
