"""What a statement means for the verbs."""

from __future__ import annotations

import pytest

from trickle.errors import DefinitionError
from trickle.model.definition import Definition
from trickle.model.spec import Spec
from trickle.model.table_options import TableOptions, read_table_options
from trickle.sql.meaning import query_of, read_script, to_spec, words_of, write_script
from trickle.sql.parse import parse


def read(rest):
    return parse(f"CREATE STREAM TABLE shop.daily {rest} AS SELECT 1, 2 -- two")


def test_a_statement_becomes_a_spec():
    statement = read("SCHEDULE EVERY 5 MINUTES REFRESH POLICY INCREMENTAL STRICT PARTITIONED BY (day) COMMENT 'c'")

    assert to_spec(statement) == Spec(
        "shop.daily", "SELECT 1, 2 -- two", "differential", "5m", {"partition_by": ("day",), "comment": "c"}
    )
    assert statement.must_be_incremental


def test_own_properties_are_options():
    statement = read(
        "TBLPROPERTIES ('trickle.owner' = 'ann', trickle.max_change_rows = 10, trickle.max_change_ratio = 0.5, "
        "'trickle.tags.tier' = 'gold', 'trickle.timeout' = '5m', 'team' = 'x', 'trickle.definition' = 'y')"
    )

    assert words_of(statement.clauses) == {
        "owner": "ann",
        "max_change_rows": 10,
        "max_change_ratio": 0.5,
        "tags": {"tier": "gold"},
        "timeout": "5m",
        "properties": {"team": "x", "trickle.definition": "y"},
    }


def test_a_column_list_names_the_columns_of_the_query():
    query = query_of(read("(a COMMENT 'x', `b c`)"))
    assert to_spec(read("(a COMMENT 'x', `b c`)")).options == {"column_comments": {"a": "x"}}

    assert query.text == "SELECT `a`, `b c` FROM (\nSELECT 1, 2 -- two\n) AS `t` (`a`, `b c`)"
    assert query.lines_before == 1
    assert query_of(read("")).lines_before == 0


DEFINITION = Definition(
    query="SELECT day, 'a;b' AS text -- odd\nFROM orders",
    mode="differential",
    schedule="0 6 * * 1-5 Europe/Berlin",
    catalog="spark_catalog",
    schema_name="shop",
    spark="4.1.4",
    options=TableOptions(
        comment="it's",
        column_comments={"day": "the day"},
        cluster_by=("day",),
        properties={"team": "x"},
        tags={"tier": "gold"},
        owner="ann",
        timeout="5m",
        max_change_ratio=0.5,
        suspend_after=2,
    ),
)


def test_definitions_survive_being_written_as_statements():
    plain = Definition(query="SELECT 1 AS one -- the end", catalog="c", schema_name="s", spark="4.1.4")
    text = write_script([("shop.daily", DEFINITION), ("shop.`b c`", plain)])
    daily, other = read_script(text)

    assert (daily.name, daily.query, daily.mode) == ("shop.daily", DEFINITION.query, "differential")
    assert daily.schedule == DEFINITION.schedule
    assert read_table_options(daily.options) == DEFINITION.options
    assert other == Spec("shop.`b c`", "SELECT 1 AS one -- the end")


@pytest.mark.parametrize("words", [{"partition_by": ["day", "DAY"]}, {"cluster_by": ("a", "b", "a")}])
def test_a_column_is_given_once(words):
    with pytest.raises(DefinitionError, match="twice") as caught:
        read_table_options(words)

    assert (caught.value.code, bool(caught.value.hint)) == ("BAD_OPTION", True)


@pytest.mark.parametrize("text", ["", "-- nothing", "SELECT 1", "DROP STREAM TABLE a", "nonsense"])
def test_a_script_that_defines_nothing_is_refused(text):
    with pytest.raises(DefinitionError, match="BAD_DEFINITIONS"):
        read_script(text)


def test_a_dataframe_is_no_sql():
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        write_script([("a", Definition(query=None, plan="x", catalog="c", schema_name="s", spark="4.1.4"))])
