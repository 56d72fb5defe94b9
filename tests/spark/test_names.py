"""Names of stream tables: what is not refused is created, listed, refreshed, verified and dropped, inside the warehouse."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from trickle import DefinitionError, Trickle
from trickle.engine.engine import Engine
from trickle.tables.delta import create as delta_create

GOOD = ("123", "1e5", "`select`", "UPPER", "_led", "a" * 255)
BAD = (
    "`..`", "`.`", "..", ".", "a..b", "`..`.t", "yard.`..`", "`../out`", "`a/b`", "`a\\b`", "`a.b`", "`a b`", "a b", "a-b",
    "tablé", "`tablé`", "таблица", "`表`", "`it's`", '`a"b`', "`a``b`", "`100%`", "`a%2Fb`", "`a:b`", "file:`x`",
    "`delta`.`/tmp/x`", "a;b", "`a", "a`", "``", "", " ", "a.b.c.d", "`a\nb`", "`a\x00b`", "`\ud800`", "x" * 256,
    "__trickle_x", "`é`.t", None, 7, b"t", ["t"],
)  # fmt: skip


@pytest.fixture(scope="module")
def place(spark):
    spark.sql("CREATE DATABASE place")
    spark.sql("USE place")
    spark.sql("CREATE TABLE src (a INT) USING delta")
    spark.sql("INSERT INTO src VALUES (1)")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE place CASCADE")


def folders(root):
    return sorted(str(p.relative_to(root)) for p in root.glob("*")) + sorted(p.name for p in root.glob("place.db/*"))


def test_a_name_that_is_refused_touches_nothing(place, warehouse_folder):
    before = folders(warehouse_folder), folders(warehouse_folder.parent)
    for name in BAD:
        for door in (
            lambda n: place.create(n, "SELECT a FROM src"),
            place.refresh,
            place.drop,
            place.table,
            place.adopt,
        ):
            with pytest.raises(DefinitionError) as error:
                door(name)
            assert (error.value.code, bool(error.value.hint)) in {("BAD_NAME", True), ("RESERVED_NAME", True)}, name
    assert (folders(warehouse_folder), folders(warehouse_folder.parent)) == before


def test_a_name_that_is_not_refused_goes_through_every_verb(spark, place, warehouse_folder):
    for name in GOOD:
        place.create(name, "SELECT a, count(*) AS n FROM src GROUP BY a")
    spark.sql("INSERT INTO src VALUES (2)")
    before = len(place.tables())
    for name in GOOD:
        full = place.table(name).name
        assert full in [t.name for t in place.tables()]
        assert place.refresh(full).mode == "differential"
        assert place.verify(name)
        assert len(place.table(full).to_df().collect()) == 2
        place.drop(name)
        assert not (warehouse_folder / "place.db" / name.strip("`").lower()).exists()
    assert before - len(place.tables()) == len(GOOD)


def test_of_two_that_create_one_name_one_wins(spark, place):
    """Both have looked for the name before either has made it."""
    both = threading.Barrier(2)
    outcomes = []

    def run(value):
        trickle = Trickle(spark)
        refuse = trickle._engine.catalog.refuse_existing

        def meet(name):
            refuse(name)
            both.wait()

        trickle._engine.catalog.refuse_existing = meet
        try:
            trickle.create("raced", f"SELECT a, {value} AS who FROM src")
            outcomes.append(value)
        except DefinitionError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=run, args=(value,)) for value in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "NAME_TAKEN" in outcomes
    (winner,) = [o for o in outcomes if o != "NAME_TAKEN"]
    assert {row["who"] for row in spark.table("raced").collect()} == {winner}
    assert place.verify("raced")
    place.drop("raced")


def test_a_table_that_another_process_made_meanwhile_stays(spark, place, warehouse_folder, monkeypatch):
    """It did not ask for the lock, and this catalog does not know of it."""
    there = warehouse_folder / "place.db" / "theirs"
    make_empty = delta_create._make_empty

    def late(*args):
        write_deltalake(there, pa.table({"a": [7]}))
        make_empty(*args)

    monkeypatch.setattr(delta_create, "_make_empty", late)
    with pytest.raises(DefinitionError) as error:
        place.create("theirs", "SELECT a FROM src")
    assert error.value.code == "NAME_TAKEN"
    assert spark.read.format("delta").load(str(there)).collect()[0]["a"] == 7

    monkeypatch.undo()
    with pytest.raises(DefinitionError, match="NAME_TAKEN"):
        place.create("theirs", "SELECT a FROM src")
    spark.sql("DROP TABLE theirs")


def test_a_creation_that_fails_takes_away_its_own_table_only(spark, place, warehouse_folder, monkeypatch):
    monkeypatch.setattr(Engine, "run", _fails)
    with pytest.raises(ZeroDivisionError):
        place.create("halfway", "SELECT a FROM src")
    assert not (warehouse_folder / "place.db" / "halfway").exists()
    assert not spark.catalog.tableExists("place.halfway")

    def replaced(*args, **kwargs):
        spark.sql("DROP TABLE place.halfway")
        spark.sql("CREATE TABLE place.halfway USING delta AS SELECT 9 AS theirs")
        raise ZeroDivisionError

    monkeypatch.setattr(Engine, "run", replaced)
    with pytest.raises(ZeroDivisionError):
        place.create("halfway", "SELECT a FROM src")
    assert [tuple(row) for row in spark.table("place.halfway").collect()] == [(9,)]
    spark.sql("DROP TABLE place.halfway")


def _fails(*args, **kwargs):
    raise ZeroDivisionError


@pytest.mark.slow
def test_of_two_processes_that_create_one_name_one_wins(spark, place, warehouse_folder):
    code = f"""
        import sys, trickle
        spark = trickle.local_session({str(warehouse_folder)!r}, cores=1, memory="1g")
        t = trickle.Trickle(spark)
        t.tables()
        print("ready", flush=True)
        for name in sys.stdin:
            try:
                t.create(name.strip(), "SELECT a, 2 AS who FROM place.src")
                print(2, flush=True)
            except trickle.DefinitionError as error:
                print(error.code, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        for turn in range(5):
            name = f"place.between{turn}"
            other.stdin.write(name + "\n")
            other.stdin.flush()
            try:
                place.create(name, "SELECT a, 1 AS who FROM src")
                mine = "1"
            except DefinitionError as error:
                mine = error.code
            both = {mine, other.stdout.readline().strip()}
            assert "NAME_TAKEN" in both
            (winner,) = both - {"NAME_TAKEN"}
            place.tables()
            assert {str(row["who"]) for row in spark.table(name).collect()} == {winner}
            assert place.verify(name)
        other.stdin.close()
