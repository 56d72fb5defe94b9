"""The command ``sql``, as far as it needs no Spark: what cannot be read is told before anything is started."""

from __future__ import annotations

import pytest

from tests.unit.cli.command import pipe, without_java


def test_a_statement_that_cannot_be_read_is_told_with_its_line(tmp_path):
    script = tmp_path / "tables.sql"
    script.write_text(
        "SELECT 1;\n\nREFRESH STREAM TABLE daily;  CREATE STREAM TABLE x\n  SCHEDUL EVERY 1 DAY AS SELECT 1;\n"
    )

    done = pipe("sql", "--file", script, "--warehouse", tmp_path, env=without_java())

    assert (done.code, done.out) == (2, "")
    assert "[SQL_SYNTAX] line 4, column 3: expected a clause or AS, found 'SCHEDUL'." in done.err
    assert "Did you mean SCHEDULE?" in done.err


def test_the_mark_that_windows_puts_before_a_text_is_no_part_of_it(tmp_path):
    script = tmp_path / "tables.sql"
    script.write_text("CREATE STREAM TABLE x SCHEDUL", encoding="utf-8-sig")

    done = pipe("sql", "--file", script, "--warehouse", tmp_path, env=without_java())

    assert "[SQL_SYNTAX] line 1, column 23" in done.err


@pytest.mark.parametrize("given", [(), ("SELECT 1", "--file", "x.sql"), ("--file", "/nowhere/x.sql")])
def test_statements_come_from_one_place(tmp_path, given):
    done = pipe("sql", *given, "--warehouse", tmp_path, env=without_java())

    assert done.code == 2
    assert "Traceback" not in done.err
