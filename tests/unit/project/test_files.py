"""SQL and Python files of a project, read without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import trickle
from trickle import DefinitionError
from trickle.project.elements import Elements
from trickle.project.load import open_project
from trickle.project.select import select
from trickle.project.sql_files import read_sql
from trickle.project.texts import with_views
from trickle.sql.names import replace_names


def read(text: str, file: str = "tables/daily.sql") -> Elements:
    elements = Elements("shop")
    read_sql(text, file, elements)
    return elements


def test_a_file_with_one_query_is_a_table_of_its_name():
    (dataset,) = read("SELECT 1 AS one; -- that is all").datasets.values()

    assert (dataset.name, dataset.kind, dataset.query) == ("daily", "stream table", "SELECT 1 AS one")
    assert str(dataset.place) == "tables/daily.sql:1"


def test_a_header_says_more():
    text = """
-- What a day brings.
-- trickle:
--   name: sales.by_day
--   schedule: 90s
--   mode: differential
--   partition_by: day
--   tags: {team: sales}
-- More about it: nothing.

WITH a AS (SELECT 1 AS day)
SELECT * FROM a"""
    elements = read(text)
    (dataset,) = elements.datasets.values()

    assert (*elements.datasets,) == (("sales", "by_day"),)
    assert (dataset.words.schedule, dataset.words.mode) == ("1m30s", "differential")
    assert dataset.words.options() == {"partition_by": ("day",), "tags": {"team": "sales"}}
    assert dataset.place.line == 11


def test_statements_define_tables_streams_and_views():
    elements = read("""
CREATE STREAM TABLE a SCHEDULE EVERY 5 MINUTES COMMENT 'it''s' TBLPROPERTIES ('trickle.owner' = 'ann') AS
SELECT 1 AS one;
CREATE OR REFRESH STREAMING TABLE events (id BIGINT, at STRUCT<x: INT>) CLUSTER BY (id);
CREATE FLOW f AS INSERT INTO events BY NAME SELECT * FROM STREAM(raw);
SET spark.sql.ansi.enabled = false;
CREATE TEMPORARY VIEW v AS SELECT ';' AS semicolon;
CREATE MATERIALIZED VIEW b REFRESH POLICY INCREMENTAL STRICT AS SELECT 2 AS two;
CREATE STREAM TABLE c (x COMMENT 'the x') REFRESH POLICY INCREMENTAL AS SELECT 3
""")
    kinds = {dataset.name: dataset.kind for dataset in elements.datasets.values()}
    a, events, v, b, c = elements.datasets.values()
    (flow,) = elements.flows

    assert kinds == {
        "a": "stream table",
        "events": "streaming table",
        "v": "view",
        "b": "stream table",
        "c": "stream table",
    }
    assert (a.words.schedule, a.words.comment, a.words.owner, a.place.line) == ("5m", "it's", "ann", 3)
    assert (events.schema, events.words.cluster_by) == ("id BIGINT, at STRUCT<x: INT>", ("id",))
    assert (flow.name, flow.target, flow.query) == ("f", "events", "SELECT * FROM STREAM(raw)")
    assert (v.query, v.conf) == ("SELECT ';' AS semicolon", {"spark.sql.ansi.enabled": "false"})
    assert (a.conf, b.words.mode) == ({}, "differential")
    assert (c.words.column_comments, c.words.mode, c.must_be_incremental) == ({"x": "the x"}, "auto", True)
    assert not a.must_be_incremental
    elements.check_flows()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "NOT_A_QUERY", "tables/daily.sql:1: there is no SQL in this file."),
        ("-- nothing", "NOT_A_QUERY", "there is no SQL"),
        ("hello world", "NOT_A_DEFINITION", "tables/daily.sql:1: 'hello world' defines nothing"),
        ("SELECT 1;\nSELECT 2", "NOT_A_QUERY", "tables/daily.sql:2: a second statement begins here."),
        ("SELECT 'a", "SQL_SYNTAX", "tables/daily.sql:1: this string has no end."),
        (
            "CREATE STREAM TABLE a AS SELECT 1;\n\nDROP TABLE b",
            "NOT_A_DEFINITION",
            "tables/daily.sql:3: 'DROP TABLE b'",
        ),
        ("CREATE STREAM TABLE a\nSCHEDUL EVERY 5 MINUTES\nAS SELECT 1", "SQL_SYNTAX", "tables/daily.sql:2: "),
        ("CREATE STREAM TABLE a LOCATION '/x' AS SELECT 1", "BAD_PROJECT", "LOCATION"),
        (
            "CREATE STREAM TABLE a AS SELECT 1;\nCREATE STREAM TABLE Shop.A AS SELECT 2",
            "DUPLICATE_NAME",
            "daily.sql:1.",
        ),
        ("-- trickle:\n--   shedule: 5m\nSELECT 1", "UNKNOWN_KEY", "tables/daily.sql:2: there is no key 'shedule'"),
        (
            "-- trickle: {schedule: often}\nSELECT 1",
            "BAD_PROJECT",
            "tables/daily.sql:1: schedule: 'often' is not a schedule",
        ),
        ("-- trickle:\n--   a: [\nSELECT 1", "BAD_PROJECT", "this is not YAML"),
        (
            "-- trickle: {mode: full}\nCREATE STREAM TABLE a AS SELECT 1",
            "BAD_PROJECT",
            "a file with statements has no header",
        ),
        ("-- trickle: {name: a b}\nSELECT 1", "BAD_NAME", "tables/daily.sql:2: 'a b' is not a table name."),
    ],
)
def test_what_is_wrong_in_sql_is_told_with_its_place(text, code, message):
    with pytest.raises(DefinitionError) as raised:
        read(text)

    assert raised.value.code == code
    assert message in raised.value.message
    assert "\n" not in str(raised.value)


def make(folder, **files: str):
    (folder / "trickle.yml").write_text("name: a")
    (folder / "tables").mkdir()
    for name, text in files.items():
        (folder / "tables" / name.replace("_py", ".py").replace("_sql", ".sql")).write_text(text)
    return open_project(folder / "trickle.yml")


def test_python_files_define_tables_by_functions(tmp_path):
    text = """import trickle
import helper

@trickle.stream_table(schedule="5m", tags={"team": "sales"})
def daily():
    return helper.QUERY

@trickle.stream_table
def weekly():
    return "SELECT 2"
"""
    project = make(tmp_path, a_py=text)
    (tmp_path / "helper.py").write_text('QUERY = "SELECT 1"')
    daily, weekly = project.load().datasets.values()

    assert (daily.name, daily.query(), daily.words.schedule) == ("daily", "SELECT 1", "5m")
    assert str(daily.place) == "tables/a.py:4"
    assert (weekly.name, weekly.query()) == ("weekly", "SELECT 2")


def test_outside_of_a_project_the_decorator_leaves_a_function_as_it_is():
    @trickle.stream_table(schedule="5m")
    def daily():
        return 7

    assert daily() == 7


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("def a(:", "BAD_PYTHON", "tables/a.py:1: this is not Python"),
        ("x = 1\ny = x / 0", "BAD_PYTHON", "tables/a.py:2: ZeroDivisionError"),
        ("import nothing_like_it", "BAD_PYTHON", "ModuleNotFoundError"),
        (
            "import trickle\n@trickle.stream_table(shedule='5m')\ndef a(): ...",
            "UNKNOWN_KEY",
            "tables/a.py:2: there is no key",
        ),
        ("import trickle\n@trickle.stream_table(mode='fast')\ndef a(): ...", "BAD_PROJECT", "tables/a.py:2: mode"),
        ("raise SystemExit(0)", "BAD_PYTHON", "SystemExit"),
    ],
)
def test_what_is_wrong_in_python_is_told_with_its_place(tmp_path, text, code, message):
    with pytest.raises(DefinitionError) as raised:
        make(tmp_path, a_py=text).load()

    assert raised.value.code == code
    assert message in raised.value.message
    assert "\n" not in str(raised.value)


def test_two_tables_of_one_name_are_refused_with_both_files(tmp_path):
    python = "import trickle\n@trickle.stream_table\ndef daily(): ..."
    with pytest.raises(DefinitionError) as raised:
        make(tmp_path, daily_sql="SELECT 1", more_py=python).load()

    assert raised.value.code == "DUPLICATE_NAME"
    assert "tables/more.py:2" in raised.value.message
    assert "tables/daily.sql:1" in raised.value.message


def test_streaming_tables_need_a_place_for_checkpoints(tmp_path):
    with pytest.raises(DefinitionError, match="NO_STORAGE"):
        make(tmp_path, a_sql="CREATE STREAMING TABLE a AS SELECT * FROM STREAM b").load()


def test_the_working_folder_and_path_are_as_before(tmp_path):
    before = Path.cwd(), list(sys.path)
    project = make(tmp_path, a_py="import os, sys\nsys.path.append('x')\nassert os.path.exists('trickle.yml')")
    project.load()

    assert (Path.cwd(), sys.path) == before


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("SELECT shop.a.x, 'shop.a' FROM shop.a -- shop.a", "SELECT `b`.x, 'shop.a' FROM `b` -- shop.a"),
        ("SELECT * FROM Shop . `A` JOIN other.shop.a", "SELECT * FROM `b` JOIN other.shop.a"),
        ("SELECT a.shop.a FROM a", "SELECT a.shop.a FROM a"),
    ],
)
def test_names_are_replaced_where_they_are_names(text, after):
    assert replace_names(text, {("shop", "a"): "b"}) == after


def test_views_become_part_of_a_query():
    assert with_views("SELECT 1", {}) == "SELECT 1"
    text = with_views("WITH x AS (SELECT 1) SELECT * FROM x, v", {"v": "SELECT 2 -- two", "w": "SELECT * FROM v"})

    assert text == (
        "WITH `v` AS (\nSELECT 2 -- two\n),\n`w` AS (\nSELECT * FROM v\n)\n(\nWITH x AS (SELECT 1) SELECT * FROM x, v\n)"
    )


READS = {"s.a": ["base"], "s.b": ["s.a"], "s.c": ["s.b"], "t.d": []}


@pytest.mark.parametrize(
    ("patterns", "selected"),
    [
        (["b"], "s.b"),
        (["s.b"], "s.b"),
        (["+b"], "s.a s.b"),
        (["b+"], "s.b s.c"),
        (["+b+"], "s.a s.b s.c"),
        (["s.*"], "s.a s.b s.c"),
        (["tag:night*"], "t.d"),
        (["a", "D"], "s.a t.d"),
    ],
)
def test_tables_are_selected(patterns, selected):
    assert select(patterns, READS, {"t.d": ["nightly"]}) == tuple(selected.split())


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(DefinitionError, match="NOTHING_SELECTED"):
        select(["a", "x*"], READS, {})
