"""Tables of results on Delta Lake, made without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trickle.model.options import DEFAULT, Options
from trickle.tables.delta.create import make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from trickle.tables.delta.target import DeltaTarget


def create_target(
    spark: SparkSession,
    name: str,
    rows: DataFrame,
    record: str,
    properties: Mapping[str, str] | None = None,
    *,
    options: Options = DEFAULT,
) -> DeltaTarget:
    """Make the table ``name`` and commit these rows with the record; see ``make_target``."""

    def fill(made: DeltaTarget) -> object:
        return made.append(rows, record, made.state())

    return make_target(spark, name, rows, fill, properties, options=options)
