"""Delta tables read and written by the driver alone: no JVM is called."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaRsTable
from deltalake import Schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from trickle.errors import ConflictError, SourceError, StateError
from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.contract import WEIGHT
from trickle.tables.delta.source import DeltaSource
from trickle.tables.delta.state_tables import DeltaStateTables
from trickle.tables.delta.table import forget_table
from trickle.tables.delta.target import DeltaTarget

COLUMNS = ("k", "s", "n")
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("n", pa.int64())])
FIELDS = StructType([StructField("k", LongType()), StructField("s", StringType()), StructField("n", LongType())])
PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1000"}


def rows_of(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def stored(place: Path) -> Counter[Any]:
    return rows_of(DeltaRsTable(place).to_pyarrow_table().select(list(COLUMNS)))


def table(rows: Any, schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def change(rows: Counter[Any]) -> pa.Table:
    signed = [(*row, weight) for row, weight in rows.items() if weight]
    return table(signed, SCHEMA.append(pa.field(WEIGHT, pa.int64())))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty table."""
    DeltaRsTable.create(tmp_path / "t", Schema.from_json(FIELDS.json()), mode="error", configuration=PROPERTIES)
    return tmp_path / "t"


@pytest.fixture
def session() -> Any:
    """A session that nobody may ask for rows."""
    mock = MagicMock()
    mock.createDataFrame.side_effect = mock.read.schema.side_effect = AssertionError
    return mock


def random_row(chance: random.Random) -> tuple[int | None, str | None, int]:
    return chance.choice([None, *range(6)]), chance.choice([None, "a", "ü\u2028"]), chance.randrange(3)


@pytest.mark.parametrize("seed", range(6))
def test_any_writes_give_the_rows_and_changes_that_they_say(session: Any, place: Path, seed: int) -> None:
    chance = random.Random(seed)
    target = DeltaTarget(session, "t", str(place))
    reader = DeltaSource(session, "t", str(place), columns=ColumnCache(), options=Options(whole_rows=0))
    rows, history = Counter[Any](), {0: Counter[Any]()}
    for step in range(25):
        rows, new = Counter(rows), [random_row(chance) for _ in range(chance.randrange(4))]
        match chance.randrange(5):
            case 0:
                applied = target.append(table(new), f"{step}", target.state())
                rows.update(new)
            case 1:
                applied = target.overwrite(table(new), f"{step}", target.state())
                rows = Counter(new)
            case 2:
                applied = target.touch(f"{step}", target.state())
            case 3:
                gone = chance.sample(sorted(rows.elements(), key=repr), min(3, rows.total()))
                net = Counter(new)
                net.subtract(gone)
                applied = target.apply_bag(change(net), f"{step}", target.state())
                rows.update(new)
                rows.subtract(gone)
            case _:
                keyed = {row[0]: row for row in new}
                touched = [(k,) for k in {*keyed, chance.choice([None, *range(6)])}]
                keys = pa.schema([("k", pa.int64())])
                applied = target.replace_keys(
                    table(keyed.values()), table(touched, keys), ["k"], f"{step}", target.state()
                )
                rows = Counter({row: n for row, n in rows.items() if (row[0],) not in touched}) + Counter(
                    keyed.values()
                )
        rows = +rows
        history[applied.version] = rows
        if chance.randrange(4) == 0:
            forget_table(session, str(place))  # another process goes on
            target = DeltaTarget(session, "t", str(place))

        assert "driver" in applied.steps
        assert (target.state().record, target.state().version) == (f"{step}", applied.version)
        assert stored(place) == rows
        assert reader.head() == applied.version
        since = chance.choice(sorted(history))
        versions = reader.classify(since, applied.version, COLUMNS)
        found = reader.small_changes(versions, COLUMNS)
        assert versions.broken is None
        assert found is not None
        weights = Counter[Any]()
        for *row, weight in zip(*(column.to_pylist() for column in found.columns), strict=True):
            weights[tuple(row)] += weight
        expected = Counter(rows)
        expected.subtract(history[since])
        assert {r: w for r, w in weights.items() if w} == {r: w for r, w in expected.items() if w}
        wanted = pa.array([chance.randrange(6) for _ in range(2)], pa.int64())
        at = chance.choice([since, applied.version])
        met = reader.find(at, COLUMNS, {"k": wanted})
        if history[at]:
            assert met is not None
            assert rows_of(met) == {row: n for row, n in history[at].items() if row[0] in wanted.to_pylist()}
    assert reader.rows(applied.version) == rows.total()


def test_sums_are_added_up_and_counts_that_become_zero_go(session: Any, place: Path) -> None:
    target = DeltaTarget(session, "t", str(place))
    target.accumulate(table([(1, "a", 2), (0, "b", 1)]), ["s"], "1", target.state(), "n")
    target.accumulate(table([(5, "a", 1), (0, "b", -1), (0, "c", 0)]), ["s"], "2", target.state(), "n")

    assert stored(place) == {(6, "a", 3): 1}
    with pytest.raises(StateError):
        target.accumulate(table([(0, "a", -9)]), ["s"], "3", target.state(), "n")
    assert target.state().record == "2"


def test_of_two_refreshes_one_wins_and_the_other_leaves_nothing(session: Any, place: Path) -> None:
    first = DeltaTarget(session, "t", str(place))
    start = first.state()
    forget_table(session, str(place))
    second = DeltaTarget(session, "t", str(place))
    assert first.table is not second.table
    first.append(table([(1, "a", 1)]), "won", start)
    files = {path.name for path in place.rglob("*") if path.suffix in (".parquet", ".json", ".tmp")}

    with pytest.raises(ConflictError):
        second.append(table([(2, "b", 2)]), "lost", start)

    assert {path.name for path in place.rglob("*") if path.suffix in (".parquet", ".json", ".tmp")} == files
    assert (second.state().record, stored(place)) == ("won", {(1, "a", 1): 1})


def test_external_writes_are_seen(session: Any, place: Path) -> None:
    target = DeltaTarget(session, "t", str(place))
    target.append(table([(1, "a", 1)]), "ours", target.state())
    DeltaRsTable(place).delete("k = 1")

    assert target.state().external == ("DELETE",)
    assert target.overwrite(table([(2, "b", 2)]), "again", target.state()).rows_inserted == 1
    assert target.state().external == ()


def test_state_tables_are_made_written_cleaned_and_checked(session: Any, tmp_path: Path) -> None:
    states = DeltaStateTables(session, "shop.t", str(tmp_path))

    def like() -> Any:
        return MagicMock(schema=FIELDS)

    target, source = states.open("@1", like)
    assert target.table is source.table
    assert states.open("@1", like) == (target, source)
    for number in range(4):
        target.overwrite(table([(number, "a", 1)]), f"{number}", target.state())
    states.clean("@1", source.head())

    folder = tmp_path / "_trickle" / "1"
    assert len(list(folder.glob("*.parquet"))) == 1
    assert stored(folder) == {(3, "a", 1): 1}
    assert states.damage("@1", like) is None
    (file,) = folder.glob("*.parquet")
    whole = file.read_bytes()
    file.write_bytes(b"garbage")
    assert file.name in (states.damage("@1", like) or "")
    file.write_bytes(whole)
    log = folder / "_delta_log" / f"{2:020d}.json"
    log.write_text("garbage")  # what is remembered of it does not count
    assert log.name in (states.damage("@1", like) or "")


def test_a_log_that_is_garbled_is_named_by_its_table(session: Any, place: Path) -> None:
    target = DeltaTarget(session, "shop.t", str(place))
    target.touch("1", target.state())
    (place / "_delta_log" / f"{1:020d}.json").write_text("garbage")

    with pytest.raises(SourceError, match=r"'shop\.t' at") as refused:
        target.state()

    assert refused.value.code == "UNREADABLE_LOG"
