"""TPC-H source tables: loaded once per scale into a pristine folder, copied for each run, since runs change them.

    <folder>/pristine/sf1/<table>     as loaded; only ever read
    <folder>/current/<schema>/<table> the copy that a run changes; removed at its end

Data files of a Delta table never change once written, so the copy has hard links to them, and its own log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import schema
from bench.show import doing
from trickle.testing import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def tpch_sources(spark: SparkSession, folder: Path, *, scale: float, name: str) -> Iterator[tpch.Sources]:
    """Return the eight tables as loaded, in a schema of this name that is the current one."""
    current = folder.resolve() / "current" / name
    with doing(f"TPC-H data of scale {scale:g}: loading or copying"):
        shutil.rmtree(current, ignore_errors=True)
        shutil.copytree(pristine(folder, scale), current, copy_function=_link_data)
    try:
        with schema(spark, name):
            for table in tpch.TABLES:
                spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{current / table}'")
            yield tpch.Sources(current, scale)
    finally:
        shutil.rmtree(current, ignore_errors=True)


def pristine(folder: Path, scale: float) -> Path:
    """Return the folder of the tables as loaded, made at the first call for a scale."""
    place = folder.resolve() / "pristine" / f"sf{scale:g}"
    if not place.exists():
        unfinished = place.with_name(f"{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        tpch.store(scale=scale, location=unfinished)
        unfinished.rename(place)
    return place


def _link_data(source: str, copy: str) -> None:
    if source.endswith(".parquet") and "_delta_log" not in source:
        try:
            os.link(source, copy)
        except OSError:  # a file system without links
            shutil.copy2(source, copy)
    else:
        shutil.copy2(source, copy)
