"""Folders that were put back, emptied, garbled or used by another: noticed, said, and made good."""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from trickle import DefinitionError, Options, SourceError, StateError, Trickle, TrickleError, UnknownTableError
from trickle.refresh import run
from trickle.refresh.run import Refresh
from trickle.refresh.steps import ApplyChange, RefreshStateTable
from trickle.tables.delta import state_tables as delta_state_tables
from trickle.tables.delta import table as delta_table
from trickle.tables.delta.jvm import DeltaHandle

TOTALS = "SELECT customer, sum(amount) AS total, max(amount) AS most FROM sales GROUP BY customer"
SCHEMA = pa.schema([("customer", pa.string()), ("amount", pa.int64())])


class Sales:
    """A source that is written without Spark, and stream tables over it."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark = spark
        self.trickle = Trickle(spark)
        self.folder = folder
        self.log = folder / "_delta_log"

    def insert(self, *rows: tuple[str | None, int]) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        write_deltalake(self.folder, table, mode="append")

    def newest(self) -> Path:
        return newest(self.folder)

    def totals(self) -> set[tuple[str | None, int, int]]:
        """What the stream tables should hold."""
        amounts: dict[str | None, list[int]] = {}
        for row in DeltaTable(self.folder).to_pyarrow_table().to_pylist():
            amounts.setdefault(row["customer"], []).append(row["amount"])
        return {(customer, sum(some), max(some)) for customer, some in amounts.items()}

    def rows(self, name: str) -> set[tuple[str | None, int, int]]:
        """What a stream table holds."""
        folder = self.state(name).parent.parent
        return {tuple(row.values()) for row in DeltaTable(folder).to_pyarrow_table().to_pylist()}

    def state(self, name: str) -> Path:
        """The folder of a stream table's state."""
        return self.folder.parent / name.rpartition(".")[2] / "_trickle" / "1"

    def elsewhere(self) -> Trickle:
        """Another process, which knows nothing of before."""
        getattr(getattr(self.spark._jvm.org.apache.spark.sql.delta, "DeltaLog$"), "MODULE$").clearCache()
        delta_table._SHARED.clear()
        return Trickle(self.spark)


@pytest.fixture
def sales(spark):
    spark.sql("CREATE DATABASE damaged")
    spark.sql("USE damaged")
    spark.sql("CREATE TABLE sales (customer STRING, amount BIGINT) USING delta")
    location = spark.sql("DESCRIBE DETAIL sales").first()["location"]
    made = Sales(spark, Path(location.removeprefix("file:")))
    made.insert(("ann", 10), ("bob", 20), (None, 7))
    yield made
    spark.sql("USE default")
    spark.sql("DROP DATABASE damaged CASCADE")


@pytest.mark.parametrize("further", [1, 2])
def test_a_source_put_back_from_a_backup_and_written_on_is_recomputed(sales, tmp_path, further):
    names = {"totals": "auto", "strict": "differential"}
    for name, mode in names.items():
        sales.trickle.create(name, TOTALS, mode=mode)
    for here in (True, False):
        trickle = sales.trickle
        shutil.copytree(sales.folder, tmp_path / f"backup{here}")
        sales.insert(("ann", 1))
        assert {trickle.refresh(name).mode for name in names} == {"differential"}
        shutil.rmtree(sales.folder)
        shutil.copytree(tmp_path / f"backup{here}", sales.folder)
        for amount in range(further):
            sales.insert(("eve", amount))
        trickle = trickle if here else sales.elsewhere()

        report = trickle.refresh("totals")
        with pytest.raises(SourceError) as refused:
            trickle.refresh("strict")

        assert (report.mode, report.reason.code) == ("full", "SOURCE_RESTORED")
        assert refused.value.code == "SOURCE_RESTORED"
        assert "full=True" in refused.value.hint
        trickle.refresh("strict", full=True)
        sales.insert(("bob", 1))
        assert {trickle.refresh(name).mode for name in names} == {"differential"}
        assert all(trickle.verify(name) for name in names)


def test_a_commit_that_was_read_cut_short_is_read_again_when_it_is_whole(sales):
    table = sales.trickle.create("totals", TOTALS)
    sales.insert(("ann", 1))
    commit = sales.newest()
    whole = commit.read_bytes()
    commit.write_bytes(b"".join(line for line in whole.splitlines(True) if b'"add"' not in line))
    assert table.refresh().mode == "differential"
    commit.write_bytes(whole)
    report = table.refresh()
    assert (report.mode, report.reason.code) == ("full", "SOURCE_RESTORED")

    sales.insert(("ann", 2))
    commit = sales.newest()
    whole = commit.read_bytes()
    for damage in (b"", whole[:-30], b"[]\n"):
        commit.write_bytes(damage)
        with pytest.raises(SourceError) as refused:
            table.refresh()
        assert refused.value.code == "UNREADABLE_LOG"
        assert commit.name in refused.value.message
    commit.write_bytes(whole)

    assert table.refresh().mode == "differential"
    assert sales.trickle.verify("totals")


@pytest.mark.parametrize("here", [True, False])
def test_a_commit_in_the_middle_that_was_read_cut_short_is_noticed_when_it_is_whole(sales, here):
    trickle = sales.trickle
    for name, mode in {"totals": "auto", "strict": "differential"}.items():
        trickle.create(name, TOTALS, mode=mode)
    commits = []
    for amount in range(4):
        sales.insert(("ann", amount))
        commits.append(sales.newest())
    whole = commits[1].read_bytes()
    commits[1].write_bytes(b"".join(line for line in whole.splitlines(True) if b'"add"' not in line))
    assert {trickle.refresh(name).mode for name in ("totals", "strict")} == {"differential"}
    trickle = trickle if here else sales.elsewhere()
    assert trickle.refresh("totals").mode == "no_data"

    commits[1].write_bytes(whole)
    report = trickle.refresh("totals")
    sales.insert(("bob", 1))
    with pytest.raises(SourceError) as refused:
        trickle.refresh("strict")

    assert (report.mode, report.reason.code) == ("full", "SOURCE_RESTORED")
    assert commits[1].stem.lstrip("0") in report.reason.text
    assert refused.value.code == "SOURCE_RESTORED"
    trickle.refresh("strict", full=True)
    assert trickle.refresh("totals").mode == "differential"
    assert all(trickle.verify(name) for name in ("totals", "strict"))


def test_commits_that_a_log_no_longer_has_are_not_taken_for_others(sales):
    table = sales.trickle.create("totals", TOTALS, mode="differential")
    for amount in range(3):
        sales.insert(("ann", amount))
    assert table.refresh().mode == "differential"
    DeltaTable(sales.folder).create_checkpoint()
    sales.insert(("ann", 9))
    for version in range(3):
        (sales.log / f"{version:020d}.json").unlink()

    assert sales.elsewhere().refresh("totals").mode == "differential"
    assert sales.trickle.verify("totals")


def test_text_that_looks_like_line_ends_and_optional_files_do_not_matter(sales):
    sales.insert(("x\u2028y", 1), ("z\x85", 2))
    commit = sales.newest()
    commit.write_text(
        "".join(
            json.dumps(json.loads(line), ensure_ascii=False) + "\n" for line in commit.read_text().split("\n") if line
        )
    )
    assert "\u2028" in commit.read_text(encoding="utf-8")
    (sales.log / "_last_checkpoint").write_text("garbage")
    (sales.log / f"{commit.stem}.crc").write_text("[")

    table = sales.trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("a\u2029", 1))

    assert table.refresh().mode == "differential"
    assert sales.elsewhere().verify("totals")


def test_a_gap_in_a_log_is_named(sales):
    table = sales.trickle.create("totals", TOTALS)
    for amount in range(2):
        sales.insert(("ann", amount))
    (sales.log / f"{2:020d}.json").rename(sales.folder / "missing")

    with pytest.raises(SourceError) as refused:
        table.refresh()

    assert refused.value.code == "UNREADABLE_LOG"
    assert "not contiguous" in refused.value.message
    (sales.folder / "missing").rename(sales.log / f"{2:020d}.json")
    assert table.refresh().mode == "differential"
    assert sales.trickle.verify("totals")


def test_a_source_that_comes_to_need_a_newer_reader_is_refused(sales):
    table = sales.trickle.create("totals", TOTALS)
    sales.insert(("ann", 1))
    commit = sales.newest()
    whole = commit.read_text()
    features = {"readerFeatures": ["sparkles"], "writerFeatures": ["sparkles"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    commit.write_text(f"{whole}\n{json.dumps(protocol)}\n")

    for full in (False, True):
        with pytest.raises(SourceError) as refused:
            table.refresh(full=full)
        assert refused.value.code == "UNSUPPORTED_PROTOCOL"
        assert "sparkles" in refused.value.message


def garble_record(folder: Path) -> None:
    commit = newest(folder)
    lines = [json.loads(line) for line in commit.read_text().split("\n") if line]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["userMetadata"] = "{"
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))


def newest(folder: Path, back: int = 1) -> Path:
    return sorted((folder / "_delta_log").glob("*.json"))[-back]


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def replace_by_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("not a folder")


def replace_by_table(path: Path) -> None:
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"other": [1]}))


def lose_checkpoint(folder: Path) -> None:
    DeltaTable(folder).create_checkpoint()
    for path in (folder / "_delta_log").glob("*"):
        if path.suffix == ".parquet" or (path.suffix == ".json" and path != newest(folder)):
            path.unlink()


DAMAGES = {
    "the log emptied": lambda state: empty(state / "_delta_log"),
    "the newest commit garbled": lambda state: newest(state).write_text("garbage"),
    "the newest commit lost": lambda state: newest(state).unlink(),
    "the record garbled": garble_record,
    "the folder replaced by a file": replace_by_file,
    "another table in its place": replace_by_table,
    "the files lost": lambda state: [path.unlink() for path in state.glob("*.parquet")],
}
MORE_DAMAGES = {
    "the newest commit emptied": lambda state: newest(state).write_text(""),
    "a commit in the middle lost": lambda state: newest(state, 2).unlink(),
    "the first commit lost": lambda state: newest(state, 0).unlink(),
    "a checkpoint lost": lose_checkpoint,
    "the log replaced by a file": lambda state: replace_by_file(state / "_delta_log"),
    "the folder above replaced by a file": lambda state: replace_by_file(state.parent),
    "the files garbled": lambda state: [path.write_text("garbage") for path in state.glob("*.parquet")],
}
UNREAD_HERE = {"a commit in the middle lost", "the first commit lost", "a checkpoint lost", "the files garbled"}
"""Damages to what the process that wrote it does not read again."""


def refusal(trickle: Trickle, name: str) -> StateError | None:
    try:
        trickle.refresh(name)
    except StateError as error:
        return error
    return None


@pytest.mark.parametrize("damages", [DAMAGES, pytest.param(MORE_DAMAGES, marks=pytest.mark.slow)], ids=["some", "more"])
@pytest.mark.parametrize("here", [True, False])
def test_any_damage_to_the_state_is_repaired(sales, damages, here):
    """This process still knows the rows that it wrote; another has only the files."""
    trickle = sales.trickle
    trickle.create("strict", TOTALS, mode="differential")
    trickle.create("loose", TOTALS)
    noticed: dict[str, set[str]] = {"strict": set(), "loose": set()}
    for title, damage in damages.items():
        for name in noticed:
            sales.insert(("ann", 1))
            assert trickle.refresh(name).mode == "differential", title
            damage(sales.state(name))
        sales.insert(("eve", 2))
        trickle = trickle if here else sales.elsewhere()

        report = trickle.refresh("loose")
        refused = refusal(trickle, "strict")
        repaired = trickle.refresh("strict", full=True)

        assert report.mode == "differential" or report.reason.code == "STATE_MISSING", (title, report)
        assert refused is None or refused.code == "STATE_MISSING", (title, refused)
        assert repaired.reason.code == "REQUESTED", title
        if report.mode == "full":
            noticed["loose"].add(title)
        if refused is not None:
            noticed["strict"].add(title)
        assert sales.rows("loose") == sales.rows("strict") == sales.totals(), title
    unread = UNREAD_HERE if here else set()
    assert all(titles >= damages.keys() - unread for titles in noticed.values()), noticed
    assert trickle.verify("loose")
    assert sales.elsewhere().verify("strict")


def test_a_garbled_record_of_the_table_itself_is_said_and_repaired(sales):
    sales.trickle.create("totals", TOTALS)
    garble_record(sales.state("totals").parent.parent)
    sales.insert(("eve", 2))

    with pytest.raises(StateError) as refused:
        sales.trickle.refresh("totals")

    assert refused.value.code == "UNREADABLE_RECORD"
    assert sales.trickle.refresh("totals", full=True).mode == "full"
    sales.insert(("eve", 3))
    assert sales.trickle.refresh("totals").mode == "differential"
    assert sales.trickle.verify("totals")


@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("moment", ["look", RefreshStateTable, ApplyChange])
def test_a_refresh_that_is_overtaken_starts_anew(sales, monkeypatch, moment, others):
    """Another process refreshes once, or so often that the state this one computes from is gone."""
    table = sales.trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("ann", 1))
    assert table.refresh().mode == "differential"
    sales.insert(("bob", 1))
    other, look, perform, met = sales.elsewhere(), run.look, Refresh._perform, []

    def overtake() -> None:
        met.append(moment)
        for amount in range(others):
            sales.insert(("eve", amount))
            assert other.refresh("totals").mode == "differential"

    def look_overtaken(tables, *facts):
        if moment == "look" and tables.store is not None and not met:
            overtake()
        return look(tables, *facts)

    def perform_overtaken(self, step, now):
        if moment != "look" and isinstance(step, moment) and now.state_tables and not met:
            overtake()
        return perform(self, step, now)

    monkeypatch.setattr(run, "look", look_overtaken)
    monkeypatch.setattr(Refresh, "_perform", perform_overtaken)
    report = table.refresh()

    assert met
    assert report.mode in ("differential", "no_data")
    assert sales.trickle.verify("totals")


def test_state_that_spark_writes_is_kept_too(sales, monkeypatch):
    """As on storage that is not local, or with a type that delta-rs does not know."""
    monkeypatch.setattr(delta_state_tables, "_make_in_driver", lambda *_: False)
    table = sales.trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("ann", 1), ("eve", 1))

    assert table.refresh().mode == "differential"
    assert max(sales.state("totals").glob("_delta_log/*.json")).name == f"{2:020d}.json"
    assert sales.trickle.verify("totals")


def test_a_widened_column_takes_one_full_refresh(spark, sales):
    spark.sql(
        "CREATE TABLE wide (k INT, n INT, d DECIMAL(10,2)) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql("INSERT INTO wide VALUES (1, 2, 3.5), (2, 3, 4)")
    query = "SELECT k, sum(n) AS s, max(n) AS `most of n`, sum(d) AS t FROM wide GROUP BY k"
    names = {"sums": "auto", "strict": "differential"}
    for name, mode in names.items():
        sales.trickle.create(name, query, mode=mode)
    sales.trickle.create("above", "SELECT max(`most of n`) AS m, sum(t) AS t FROM sums")
    spark.sql("ALTER TABLE wide CHANGE COLUMN n TYPE BIGINT")
    spark.sql("ALTER TABLE wide CHANGE COLUMN d TYPE DECIMAL(14,2)")
    spark.sql(f"INSERT INTO wide VALUES (1, {2**40}, 99999999999.5)")

    report = sales.trickle.refresh("sums")
    with pytest.raises(SourceError) as refused:
        sales.trickle.refresh("strict")

    assert (report.mode, report.reason.code) == ("full", "SOURCE_ALTERED")
    assert refused.value.code == "SOURCE_ALTERED"
    assert sales.trickle.refresh("strict", full=True).mode == "full"
    assert sales.trickle.refresh("above").reason.code == "SOURCE_ALTERED"
    assert dict(spark.table("sums").dtypes) == {"k": "int", "s": "bigint", "most of n": "bigint", "t": "decimal(24,2)"}
    spark.sql(f"INSERT INTO wide VALUES (2, {2**41}, 1), (3, 1, 1)")
    assert [sales.trickle.refresh(name).mode for name in (*names, "above")] == ["differential"] * 3
    assert all(sales.trickle.verify(name) for name in (*names, "above"))


@pytest.mark.parametrize("damage", ["garbage", "", "lost"])
def test_a_stream_table_whose_own_log_is_beyond_repair_is_made_anew(sales, damage):
    sales.trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("eve", 2))
    sales.trickle.refresh("totals")
    sales.insert(("eve", 3))
    sales.trickle.refresh("totals")
    commit = newest(sales.state("totals").parent.parent)
    if damage == "lost":
        commit = commit.with_name(f"{int(commit.stem) - 1:020d}.json")
        commit.unlink()
    else:
        commit.write_text(damage)
    trickle = sales.elsewhere()

    with pytest.raises(SourceError) as refused:
        trickle.refresh("totals", full=True)

    assert refused.value.code == "UNREADABLE_LOG"
    assert "DROP TABLE" in refused.value.hint
    sales.spark.sql("DROP TABLE totals")
    trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("eve", 4))
    assert trickle.refresh("totals").mode == "differential"
    assert trickle.verify("totals").ok


@pytest.mark.parametrize("by_delta", [True, False])
def test_unfinished_files_that_killed_processes_left_are_removed(sales, by_delta):
    least = {"commit_rows": 0, "commit_actions": 0} if by_delta else {}
    trickle = Trickle(sales.spark, options=Options(sweep_interval=1, **least))
    trickle.create("totals", TOTALS, mode="differential")
    log = sales.state("totals").parent.parent / "_delta_log"
    old, new = log / ".trickle-old.tmp", log / ".trickle-new.tmp"
    for left in (old, new):
        left.write_text("{")
    os.utime(old, (0, 0))
    sales.insert(("eve", 2))

    assert trickle.refresh("totals").mode == "differential"

    assert [path.name for path in log.glob(".trickle-*.tmp")] == [new.name]


def test_a_stream_table_whose_own_log_is_garbled_is_still_one(sales):
    sales.trickle.create("totals", TOTALS)
    commit = newest(sales.state("totals").parent.parent)
    whole = commit.read_bytes()

    for trickle in (sales.trickle, sales.elsewhere()):
        commit.write_text("garbage")
        with pytest.raises(SourceError) as refused:
            trickle.refresh("totals")
        commit.write_bytes(whole)
        assert refused.value.code == "UNREADABLE_LOG"
        assert str(commit.parent.parent) in refused.value.message
        assert commit.name in refused.value.message

        sales.insert(("eve", 3))
        assert trickle.refresh("totals").mode == "differential"
        commit = newest(commit.parent.parent)
        whole = commit.read_bytes()


@pytest.mark.parametrize("again", [False, True])
def test_a_checkpoint_that_comes_after_a_drop_leaves_nothing(sales, monkeypatch, again):
    """SQL's DROP TABLE does not wait for it; and the name may be taken again before it comes."""
    trickle = Trickle(sales.spark, options=Options(checkpoint_interval=8))
    table = trickle.create("totals", TOTALS, mode="differential")
    trickle.settle()
    folder = sales.state("totals").parent.parent
    begun, dropped, write = threading.Event(), threading.Event(), DeltaHandle.checkpoint

    def write_late(handle):
        begun.set()
        assert dropped.wait(60)
        write(handle)

    monkeypatch.setattr(DeltaHandle, "checkpoint", write_late)
    while not begun.is_set():
        sales.insert(("eve", 1))
        table.refresh()
    sales.spark.sql("DROP TABLE totals")
    assert not folder.exists()
    if again:
        threading.Timer(1, dropped.set).start()
        trickle.create("totals", TOTALS, mode="differential")  # waits for it
    dropped.set()
    trickle.settle()
    monkeypatch.undo()

    if again:  # a checkpoint of what was made anew is one like any other
        newest = DeltaTable(folder).version()
        written = (folder / "_delta_log").glob("*.checkpoint.parquet")
        assert all(int(path.name.partition(".")[0]) <= newest for path in written)
    else:
        assert not folder.exists()
        trickle.create("totals", TOTALS, mode="differential")
    sales.insert(("eve", 4))
    assert sales.elsewhere().refresh("totals").mode == "differential"
    assert trickle.verify("totals").ok


def test_a_late_checkpoint_that_was_left_does_not_take_a_name(sales, tmp_path):
    sales.trickle.create("totals", TOTALS)
    folder = sales.state("totals").parent.parent
    for place in (folder, sales.state("totals")):
        DeltaTable(place).create_checkpoint()
    shutil.copytree(folder, tmp_path / "kept")
    sales.spark.sql("DROP TABLE totals")
    keep = {"_delta_log", "_trickle", "1"}
    shutil.copytree(
        tmp_path / "kept",
        folder,
        ignore=lambda _, names: {name for name in names if name not in keep and "checkpoint" not in name},
    )
    trickle = sales.elsewhere()

    trickle.create("totals", TOTALS, mode="differential")

    sales.insert(("eve", 4))
    assert trickle.refresh("totals").mode == "differential"
    assert trickle.verify("totals").ok


def test_a_folder_that_is_not_ours_still_takes_a_name(sales):
    folder = sales.folder.parent / "totals"
    write_deltalake(folder, pa.table({"a": [1]}))
    DeltaTable(folder).create_checkpoint()
    for path in [*folder.glob("*.parquet"), *folder.glob("_delta_log/*.json")]:
        path.unlink()

    with pytest.raises(TrickleError):
        sales.trickle.create("totals", TOTALS)

    assert [*folder.glob("_delta_log/*.checkpoint.parquet")]


@pytest.mark.parametrize("title", [*DAMAGES, *MORE_DAMAGES])
@pytest.mark.parametrize("here", [True, False])
def test_a_damaged_stream_table_can_be_dropped(sales, title, here):
    """Its own log and files are damaged, not those of its state."""
    if title == "the folder above replaced by a file":
        pytest.skip("the folder above is the schema's")
    trickle = sales.trickle
    table = trickle.create("totals", TOTALS, mode="differential")
    trickle.create("above", "SELECT count(*) AS n FROM totals")
    sales.insert(("eve", 2))
    assert table.refresh().mode == "differential"
    folder = sales.state("totals").parent.parent
    {**DAMAGES, **MORE_DAMAGES}[title](folder)
    trickle = trickle if here else sales.elsewhere()

    nothing_tells = title == "the folder replaced by a file" and not here
    if nothing_tells or title == "another table in its place":
        with pytest.raises(UnknownTableError):
            trickle.drop("totals")
        assert folder.exists()
        return
    with suppress(DefinitionError):  # whoever reads it is known as long as its id is
        trickle.drop("totals")
    trickle.drop("above")
    if folder.exists():
        trickle.drop("totals")

    assert not sales.spark.catalog.tableExists("totals")
    assert not folder.exists()
    assert trickle.create("totals", TOTALS, mode="differential").refresh().mode == "no_data"
    sales.insert(("eve", 3))
    assert trickle.refresh("totals").mode == "differential"
    assert trickle.verify("totals").ok


def test_what_reads_a_damaged_stream_table_still_keeps_it(sales):
    sales.trickle.create("totals", TOTALS)
    sales.trickle.create("above", "SELECT count(*) AS n FROM totals")
    newest(sales.state("totals").parent.parent).write_text("garbage")
    trickle = sales.elsewhere()

    with pytest.raises(DefinitionError) as refused:
        trickle.drop("totals")

    assert refused.value.code == "STILL_READ"
    trickle.drop("totals", cascade=True)
    assert not [name for name in ("totals", "above") if sales.spark.catalog.tableExists(name)]


def test_an_ordinary_table_with_a_damaged_log_is_not_dropped(sales):
    newest(sales.folder, 0).write_text("garbage")

    with pytest.raises(TrickleError):
        sales.elsewhere().drop("sales")

    assert sales.folder.exists()
    newest(sales.folder, 0).unlink()
