"""TPC-H data: made once per scale by ``tpchgen-cli``, loaded into Delta tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from trickle.api import Trickle

TABLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "region": ("r_regionkey",),
        "nation": ("n_nationkey",),
        "supplier": ("s_suppkey",),
        "customer": ("c_custkey",),
        "part": ("p_partkey",),
        "partsupp": ("ps_partkey", "ps_suppkey"),
        "orders": ("o_orderkey",),
        "lineitem": ("l_orderkey", "l_linenumber"),
    }
)
"""Every table with its primary key."""

FOREIGN_KEYS: Final[Mapping[str, Mapping[str | tuple[str, ...], str]]] = MappingProxyType(
    {
        "nation": {"n_regionkey": "region"},
        "supplier": {"s_nationkey": "nation"},
        "customer": {"c_nationkey": "nation"},
        "partsupp": {"ps_partkey": "part", "ps_suppkey": "supplier"},
        "orders": {"o_custkey": "customer"},
        "lineitem": {"l_orderkey": "orders", ("l_partkey", "l_suppkey"): "partsupp"},
    }
)
"""What the columns of a table refer to."""

FILE_BYTES: Final = 32 * 2**20
"""Size of a data file after loading: several files at scale 1, so that keys can skip some of them."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Loaded source tables.

    Attributes:
        location: Folder that holds one Delta table per source.
        scale: TPC-H scale factor.
    """

    location: Path
    scale: float

    def path(self, table: str) -> str:
        """Return the folder of one Delta table."""
        return str(self.location / table)


def declare(stream_tables: Trickle, *, check: bool = True) -> None:
    """Declare the keys that the standard gives the tables of the current schema."""
    for table, key in TABLES.items():
        foreign = FOREIGN_KEYS.get(table, {})
        stream_tables.declare(table, primary_key=key, foreign_key=foreign, check=check)


def generate(scale: float) -> Path:
    """Return the folder with ``<table>.parquet`` files of a scale, made at the first call.

    Folders are kept under ``TRICKLE_TPCH_CACHE``, by default ``~/.cache/trickle/tpch``.
    """
    cache = Path(os.environ.get("TRICKLE_TPCH_CACHE") or Path.home() / ".cache" / "trickle" / "tpch")
    folder = cache / f"sf{scale:g}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = tempfile.mkdtemp(dir=cache, prefix=f"{folder.name}.")
    try:
        subprocess.run([_generator(), "parquet", "--quiet", "-s", f"{scale:g}", "--output-dir", unfinished], check=True)
        Path(unfinished).rename(folder)
    except OSError:
        if not folder.exists():  # else another process was faster, and its data is the same
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def store(*, scale: float, location: Path, change_feed: bool = True) -> Sources:
    """Write the eight source tables under ``location``, unknown to any catalog yet."""
    from deltalake import write_deltalake

    folder = generate(scale)
    properties = {"delta.enableChangeDataFeed": str(change_feed).lower(), "delta.targetFileSize": str(FILE_BYTES)}
    for table in TABLES:
        write_deltalake(
            location / table,
            _rows(folder / f"{table}.parquet"),
            configuration=properties,
            target_file_size=FILE_BYTES,
        )
    return Sources(location, scale)


def load(
    spark: SparkSession,
    *,
    scale: float,
    location: Path,
    change_feed: bool = True,
    deletion_vectors: bool = False,
) -> Sources:
    """Make the eight source tables in the current schema of the session, stored under ``location``."""
    sources = store(scale=scale, location=location, change_feed=change_feed)
    for table in TABLES:
        spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{sources.path(table)}'")
        if deletion_vectors:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    return sources


def _rows(file: Path) -> pa.RecordBatchReader:
    """Read a file batch by batch, as nullable columns of plain types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    reader = pq.ParquetFile(file)
    plain = pa.schema(
        [
            pa.field(field.name, pa.string() if field.type == pa.string_view() else field.type)
            for field in reader.schema_arrow
        ]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader.iter_batches():
            yield pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(batch.columns, plain, strict=True)],
                schema=plain,
            )

    return pa.RecordBatchReader.from_batches(plain, batches())


def _generator() -> str:
    """Find ``tpchgen-cli`` beside this Python, else on the path."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        message = "tpchgen-cli is not installed: pip install tpchgen-cli"
        raise FileNotFoundError(message)
    return found
