"""What a statement means for the verbs."""

from __future__ import annotations

from trickle.model.spec import Spec
from trickle.sql.meaning import query_of, to_spec, words_of
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

    assert query.text == "SELECT `a`, `b c` FROM (\nSELECT 1, 2 -- two\n) AS `t` (`a`, `b c`)"
    assert query.lines_before == 1
    assert query_of(read("")).lines_before == 0
