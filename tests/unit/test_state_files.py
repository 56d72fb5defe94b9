"""Which files of a state table are deleted: those that no version needs from one on, deletion vectors among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import polars as pl
import pyarrow as pa
from deltalake import write_deltalake

from trickle.model.options import Options
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.state_tables import DeltaStateTables

OPTIONS = Options(vector_rows=0, inline_vector_rows=0)


def test_a_file_with_another_vector_stays_and_the_old_vectors_go(tmp_path: Path) -> None:
    place = tmp_path / "_trickle" / "1"
    for start in (0, 100):
        rows = pa.table({"k": pa.array(range(start, start + 100), pa.int64())})
        write_deltalake(str(place), rows, mode="append", configuration={"delta.enableChangeDataFeed": "true"})
    tables = DeltaStateTables(MagicMock(), "t", str(tmp_path), options=OPTIONS)  # the driver writes without Spark
    found: Any = tables.get("@1")
    target, _ = found

    def delete(*keys: int) -> int:
        change = pa.table({"k": pa.array(keys, pa.int64()), WEIGHT: [-1] * len(keys)})
        return int(target.apply_bag(change, "", target.state()).version)

    both, first, second = delete(1, 101), delete(2), delete(102)
    expected = [k for k in range(200) if k not in (1, 2, 101, 102)]

    tables.clean("@1", first)  # the second file still has the vector that came with that of the first
    assert len(list(place.glob("*.bin"))) == 3
    assert sorted(pl.scan_delta(str(place), version=first).collect()["k"]) == sorted([*expected, 102])
    tables.clean("@1", second)
    assert len(list(place.glob("*.bin"))) == 2
    assert len(list(place.glob("*.parquet"))) == 2
    assert not list((place / "_change_data").glob("*.parquet"))
    assert sorted(pl.scan_delta(str(place)).collect()["k"]) == expected
    assert both < first < second
