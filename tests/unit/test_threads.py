"""What several threads share: the same answers as one thread gets. The interpreter switches between them all the time."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.model.cache import Cache
from trickle.model.options import DEFAULT, Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.actions import FileAction
from trickle.tables.delta.driver.transaction import DriverTransaction, StoredRows
from trickle.tables.delta.files import FileList
from trickle.tables.delta.layout import Layout
from trickle.tables.delta.log import DeltaLogFiles
from trickle.tables.delta.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS = 2
VERSIONS = 40


@pytest.fixture(autouse=True)
def _often_switched() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[random.Random], object], times: int) -> None:
    """Do some work many times in several threads, each with a chance of its own."""

    def run(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(times):
            work(chance)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run, seed) for seed in range(THREADS)]:
            done.result()


def paths_at(version: int) -> list[str]:
    """The files at a version: each adds one, each odd one takes the one before out."""
    return [f"f{v}" for v in range(version + 1) if v % 2 or v == version]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table's log of some versions."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    schema = '{\\"type\\":\\"struct\\",\\"fields\\":[]}'
    start = f'{{"metaData":{{"id":"t","schemaString":"{schema}","partitionColumns":[]}}}}\n'
    start += '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
    for version in range(VERSIONS):
        stats = f'{{\\"numRecords\\":1,\\"minValues\\":{{\\"k\\":{version}}},\\"maxValues\\":{{\\"k\\":{version}}}}}'
        text = start if version == 0 else ""
        text += f'{{"add":{{"path":"f{version}","size":1,"stats":"{stats}"}}}}\n'
        if version % 2:
            text += f'{{"remove":{{"path":"f{version - 1}"}}}}\n'
        (log / f"{version:020d}.json").write_text(text)
    return tmp_path


def log_of(table: Path) -> DeltaLogFiles:
    handle: Any = SimpleNamespace(location=str(table), forget=lambda: None)
    return DeltaLogFiles(handle)


def test_the_list_of_files_is_that_of_the_version_asked_for(table):
    files = FileList(log_of(table))

    def ask(chance: random.Random) -> None:
        version = chance.randrange(VERSIONS)
        assert sorted(file.path for file in files.at(version) or ()) == sorted(paths_at(version))

    in_threads(ask, 20_000)


def test_counts_and_domains_are_those_of_the_version_asked_for(table):
    handle: Any = SimpleNamespace(location=str(table), forget=lambda: None)
    plain = DeltaTable(handle)

    def ask(chance: random.Random) -> None:
        version = chance.randrange(VERSIONS)
        assert plain.count(version) == len(paths_at(version))
        assert plain.domain(version, "k") == (1 if version == 0 else version)

    in_threads(ask, 2_000)


def test_the_head_is_the_newest_version_while_the_log_is_forgotten_and_read_again(table):
    log = log_of(table)
    newest = table / "_delta_log" / f"{VERSIONS - 1:020d}.json"

    def ask(chance: random.Random) -> None:
        if chance.randrange(20) == 0:
            newest.touch()  # another file in its place: another table
        assert log.head() == VERSIONS - 1
        assert log.metadata(VERSIONS - 1)["id"] == "t"
        assert [commit.version for commit in log.commits(3, 9)] == [4, 5, 6, 7, 8, 9]

    in_threads(ask, 1_000)


def test_stored_rows_are_those_of_the_files_asked_for(tmp_path):
    schema = pa.schema([pa.field("k", pa.int64())])
    files = []
    for number in range(4):
        pq.write_table(pa.table({"k": pa.array([number], pa.int64())}, schema), tmp_path / f"{number}.parquet")
        files.append(FileAction("add", {}, f"{number}.parquet", "", 1, 1))
    known = StoredRows()

    def transaction() -> DriverTransaction:
        # Its constructor looks at a table, which takes a JVM to make; reading stored rows takes the log's paths alone.
        made: Any = DriverTransaction.__new__(DriverTransaction)
        made.target = SimpleNamespace(log=DeltaLogFiles(SimpleNamespace(location=str(tmp_path))))
        made.folder = made.target.log.folder
        made.known, made.schema, made.file_schema = known, schema, schema
        made.layout = Layout("", {"k": schema.field("k")}, {"k": "k"}, frozenset(), frozenset())
        made.options = DEFAULT
        return made

    def ask(chance: random.Random) -> None:
        some: Any = chance.sample(files, 2)
        rows = transaction().stored(some)
        assert [part["k"][0].as_py() for part in rows] == [int(file.path[0]) for file in some]

    in_threads(ask, 1_000)


def test_cached_columns_stay_within_their_room_while_several_decode(tmp_path):
    size = 8 * 1000
    for number in range(6):
        values = pl.Series("k", range(number, number + 2**40 * 1000, 2**40), pl.Int64)
        pl.DataFrame([values]).write_parquet(tmp_path / f"{number}.parquet")
    columns = ColumnCache(Options(column_cache_bytes=3 * size))
    cached = []

    def ask(chance: random.Random) -> None:
        number = chance.randrange(6)
        file = str(tmp_path / f"{number}.parquet")
        missing = columns.reserve(file, {"k": size})
        if missing is None:
            return
        found = columns.keep(file, {"k": size}, missing, pl.read_parquet(file).get_columns() if missing else ())
        assert found is None or int(found["k"].numbers[0]) == number
        assert columns.bytes <= columns.max_bytes
        cached.append(found is not None)

    in_threads(ask, 300)
    assert any(cached)


def test_a_bounded_memo_never_holds_more_nor_other_values():
    memo: Cache[int, int] = Cache("memo", 5)

    def ask(chance: random.Random) -> None:
        number = chance.randrange(20)
        assert memo.get(number, lambda: number * number) == number * number
        assert len(memo.keys()) <= 5

    in_threads(ask, 5_000)
