"""Scripts are split at the semicolons that end statements, and at no others."""

from __future__ import annotations

import pytest

from trickle.errors import SqlSyntaxError
from trickle.sql.split import split_script


def texts(script):
    return [part.text for part in split_script(script)]


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("", []),
        (" ; -- nothing ;\n /* ; */ ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\", `;`, r'\\', ';'; SELECT 2", ["SELECT ';', \";\", `;`, r'\\', ';'", "SELECT 2"]),
        ("SELECT 'it''s;', 'it\\'s;'; SELECT 2", ["SELECT 'it''s;', 'it\\'s;'", "SELECT 2"]),
        ("SELECT 1 -- ;\n+ 1; /* a /* ; */ ; */ SELECT 2", ["SELECT 1 -- ;\n+ 1", "SELECT 2"]),
        ("CREATE METRIC VIEW v AS $$a; 'b$$; SELECT 2", ["CREATE METRIC VIEW v AS $$a; 'b$$", "SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END; SELECT 3", ["BEGIN SELECT 1; SELECT 2; END", "SELECT 3"]),
        (
            "BEGIN IF a THEN SELECT CASE WHEN b THEN 1 END; END IF; BEGIN SELECT 1; END; END; SELECT 3",
            ["BEGIN IF a THEN SELECT CASE WHEN b THEN 1 END; END IF; BEGIN SELECT 1; END; END", "SELECT 3"],
        ),
        ("BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; SELECT 2; END; SELECT 3", None),
        ("SELECT begin FROM t; SELECT end FROM t", ["SELECT begin FROM t", "SELECT end FROM t"]),
    ],
)
def test_a_script_is_split(script, parts):
    if parts is None:
        parts = ["BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; SELECT 2; END", "SELECT 3"]

    assert texts(script) == parts


def test_each_part_knows_where_it_begins():
    script = "-- first\nSELECT 1;\n\n  REFRESH STREAM TABLE d;"

    first, second = split_script(script)

    assert (first.line, second.line) == (2, 4)
    assert script[second.start :].startswith("REFRESH")
    assert (second.column, second.placed) == (3, "\n\n\n  REFRESH STREAM TABLE d")


def test_what_has_no_end_is_told_with_its_place():
    with pytest.raises(SqlSyntaxError) as caught:
        split_script("SELECT 1;\nSELECT 'a; SELECT 2;")

    assert (caught.value.line, caught.value.column) == (2, 8)
