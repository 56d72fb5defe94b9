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

FILE_BYTES: Final = 32 * 2**20
"""Size of a data file after loading: several files at scale 1, so that keys can skip some of them."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Loaded source tables.

    Attributes:
        location: Folder that holds one Delta table per source.
        scale: TPC-H scale factor.
        deletion_vectors: Deletes and updates mark rows instead of rewriting files.
    """

    location: Path
    scale: float
    deletion_vectors: bool

    def path(self, table: str) -> str:
        """Give the folder of one Delta table."""
        return str(self.location / table)


def generate(scale: float) -> Path:
    """Give the folder with ``<table>.parquet`` files of a scale, made at the first call.

    Folders are kept under ``TRICKLE_TPCH_CACHE``, by default ``~/.cache/trickle/tpch``.
    """
    cache = Path(os.environ.get("TRICKLE_TPCH_CACHE") or Path.home() / ".cache" / "trickle" / "tpch")
    folder = cache / f"sf{scale:g}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = tempfile.mkdtemp(dir=cache, prefix=f"{folder.name}.")
    try:
        subprocess.run(
            [_generator(), "parquet", "--quiet", "-s", f"{scale:g}", "--output-dir", unfinished], check=True
        )
        Path(unfinished).rename(folder)
    except OSError:
        if not folder.exists():  # else another process was faster, and its data is the same
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def load(
    spark: SparkSession,
    *,
    scale: float,
    location: Path,
    change_feed: bool = True,
    deletion_vectors: bool = False,
) -> Sources:
    """Make the eight source tables in the current schema of the session, stored under ``location``."""
    from deltalake import write_deltalake

    folder = generate(scale)
    for table in TABLES:
        path = location / table
        write_deltalake(
            path,
            _rows(folder / f"{table}.parquet"),
            configuration={"delta.enableChangeDataFeed": str(change_feed).lower(), "delta.targetFileSize": str(FILE_BYTES)},
            target_file_size=FILE_BYTES,
        )
        spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{path}'")
        if deletion_vectors:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    return Sources(location, scale, deletion_vectors)


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
