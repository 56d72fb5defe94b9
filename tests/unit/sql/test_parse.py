"""Statements about stream tables are read from text; what is wrong is named with its place."""

from __future__ import annotations

import pytest

from trickle.errors import SqlSyntaxError
from trickle.model.schedule import Cron, Downstream, Every, OnCommit
from trickle.sql.parse import parse
from trickle.sql.statements import (
    Clauses,
    Column,
    CreateStreamTable,
    DescribeStreamTable,
    DropSchedule,
    DropStreamTable,
    ExplainCreate,
    ExplainStreamTable,
    RefreshStreamTable,
    RenameStreamTable,
    ReplaceQuery,
    ResumeStreamTable,
    SetClauses,
    ShowRefreshHistory,
    ShowStreamTables,
    SuspendStreamTable,
    UnsetProperties,
)

QUERY = "SELECT day, sum(amount) AS total FROM orders GROUP BY day"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (f"create stream table daily as {QUERY};", CreateStreamTable("daily", QUERY)),
        (f"CREATE MATERIALIZED VIEW daily AS {QUERY}", CreateStreamTable("daily", QUERY)),
        (f"CREATE OR REPLACE STREAM TABLE s.daily AS {QUERY}", CreateStreamTable("s.daily", QUERY, or_replace=True)),
        (f"CREATE OR REFRESH MATERIALIZED VIEW d AS {QUERY}", CreateStreamTable("d", QUERY, or_replace=True)),
        (f"CREATE STREAM TABLE IF NOT EXISTS d AS {QUERY}", CreateStreamTable("d", QUERY, if_not_exists=True)),
        ("REFRESH STREAM TABLE `my schema`.`a``b`", RefreshStreamTable("`my schema`.`a``b`")),
        (
            "/* a /* nested */ one */ REFRESH -- really\n MATERIALIZED VIEW d FULL ;;",
            RefreshStreamTable("d", full=True),
        ),
        ("ALTER STREAM TABLE d SUSPEND", SuspendStreamTable("d")),
        ("ALTER STREAM TABLE d RESUME", ResumeStreamTable("d")),
        ("ALTER STREAM TABLE d RESUME skip", ResumeStreamTable("d", "skip")),
        ("ALTER STREAM TABLE d RENAME TO e", RenameStreamTable("d", "e")),
        ("ALTER STREAM TABLE d AS SELECT 1", ReplaceQuery("d", "SELECT 1")),
        ("ALTER STREAM TABLE d DROP SCHEDULE", DropSchedule("d")),
        ("ALTER STREAM TABLE d UNSET TBLPROPERTIES ('a', b.c)", UnsetProperties("d", ("a", "b.c"))),
        ("ALTER STREAM TABLE d ADD SCHEDULE EVERY 1 HOUR", SetClauses("d", Clauses(schedule=Every(3600.0)))),
        ("ALTER MATERIALIZED VIEW d SET CLUSTER BY NONE", SetClauses("d", Clauses(cluster_by=()))),
        (
            "ALTER STREAM TABLE d SET TARGET_LAG = '1 minute' COMMENT 'x'",
            SetClauses("d", Clauses(schedule=Every(60.0), comment="x")),
        ),
        ("DROP STREAM TABLE d", DropStreamTable("d")),
        ("DROP MATERIALIZED VIEW IF EXISTS d CASCADE", DropStreamTable("d", if_exists=True, cascade=True)),
        ("SHOW STREAM TABLES", ShowStreamTables()),
        ("SHOW STREAM TABLES IN shop LIKE 'd*'", ShowStreamTables("shop", "d*")),
        ("SHOW MATERIALIZED VIEWS FROM shop 'd*'", ShowStreamTables("shop", "d*")),
        ("SHOW REFRESH HISTORY", ShowRefreshHistory()),
        ("SHOW REFRESH HISTORY FOR d LIMIT 3", ShowRefreshHistory("d", 3)),
        ("DESC STREAM TABLE d", DescribeStreamTable("d")),
        ("DESCRIBE EXTENDED MATERIALIZED VIEW d", DescribeStreamTable("d", extended=True)),
        ("EXPLAIN STREAM TABLE d", ExplainStreamTable("d")),
        ("EXPLAIN CREATE STREAM TABLE d AS SELECT 1", ExplainCreate(CreateStreamTable("d", "SELECT 1"))),
    ],
)
def test_a_statement_is_read(text, statement):
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-- nothing\n",
        "SELECT 1",
        "SELECT 'it has no end",
        "CREATE TABLE stream (a INT)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE STREAMING TABLE s AS SELECT * FROM STREAM t",
        "REFRESH TABLE t",
        "DROP TABLE d",
        "SHOW TABLES",
        "DESCRIBE orders",
        "EXPLAIN SELECT 1",
        "'REFRESH STREAM TABLE d'",
        "`CREATE` STREAM TABLE d AS SELECT 1",
        "/* REFRESH STREAM TABLE d */ SELECT 1",
    ],
)
def test_what_is_not_about_stream_tables_is_left_to_spark(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("clause", "schedule"),
    [
        ("SCHEDULE EVERY 5 MINUTES", Every(300.0)),
        ("SCHEDULE REFRESH EVERY 1 hour 30 minutes", Every(5400.0)),
        ("SCHEDULE EVERY INTERVAL 2 DAYS", Every(172_800.0)),
        ("SCHEDULE EVERY '90s'", Every(90.0)),
        ("SCHEDULE CRON '0 6 * * 1-5' AT TIME ZONE 'Europe/Berlin'", Cron("0 6 * * 1-5", "Europe/Berlin")),
        ("SCHEDULE CRON '0 0 6 ? * MON-FRI'", Cron("0 6 * * MON-FRI")),
        ("SCHEDULE CRON '0 15 6 ? * 1,7'", Cron("15 6 * * 0,6")),
        ("TRIGGER ON UPDATE", OnCommit()),
        ("TRIGGER ON UPDATE AT MOST EVERY INTERVAL 10 SECONDS", OnCommit(10.0)),
        ("TRIGGER ON UPDATE AT MOST EVERY INTERVAL '10' SECOND", OnCommit(10.0)),
        ("TARGET_LAG = '5 minutes'", Every(300.0)),
        ("TARGET_LAG = DOWNSTREAM", Downstream()),
        ("target_lag 'downstream'", Downstream()),
    ],
)
def test_a_schedule_is_read_in_the_words_of_each_peer(clause, schedule):
    statement = parse(f"CREATE STREAM TABLE d {clause} AS SELECT 1")

    assert statement.clauses.schedule == schedule


@pytest.mark.parametrize(
    ("clause", "policy", "mode"),
    [
        ("REFRESH POLICY AUTO", "auto", "auto"),
        ("REFRESH POLICY INCREMENTAL", "incremental", "auto"),
        ("REFRESH POLICY INCREMENTAL STRICT", "incremental strict", "differential"),
        ("REFRESH_MODE = FULL", "full", "full"),
    ],
)
def test_a_policy_becomes_a_mode(clause, policy, mode):
    statement = parse(f"CREATE STREAM TABLE d {clause} AS SELECT 1")

    assert (statement.clauses.policy, statement.clauses.mode) == (policy, mode)


def test_clauses_stand_in_any_order():
    clauses = [
        "COMMENT 'it''s \\'ours\\''",
        "TBLPROPERTIES ('a' = 'b', c.d = 1.5, e = -2, f = TRUE)",
        "SCHEDULE EVERY 1 DAY",
        "PARTITIONED BY (day, `odd name`)",
        "REFRESH POLICY FULL",
        "LOCATION '/data/daily'",
        "USING delta",
    ]
    forwards = parse(f"CREATE STREAM TABLE d {' '.join(clauses)} AS SELECT 1")
    backwards = parse(f"CREATE STREAM TABLE d {' '.join(reversed(clauses))} AS SELECT 1")

    assert forwards == backwards
    assert forwards.clauses == Clauses(
        schedule=Every(86_400.0),
        policy="full",
        partitioned_by=("day", "odd name"),
        comment="it's 'ours'",
        properties=(("a", "b"), ("c.d", "1.5"), ("e", "-2"), ("f", "true")),
        location="/data/daily",
    )


def test_columns_have_names_types_and_comments():
    untyped = parse("CREATE STREAM TABLE d (a COMMENT 'first', `b c`) AS SELECT 1, 2")
    typed = parse(
        "CREATE STREAM TABLE d (a DECIMAL(10, 2), b STRUCT<x: INT, y: MAP<STRING, INT>> COMMENT 'z') AS SELECT 1, 2"
    )

    assert untyped.columns == (Column("a", comment="first"), Column("b c"))
    assert typed.columns == (
        Column("a", "DECIMAL(10, 2)"),
        Column("b", "STRUCT<x: INT, y: MAP<STRING, INT>>", "z"),
    )


def test_the_query_is_all_that_follows_as():
    text = "CREATE STREAM TABLE d AS\n  WITH x AS (SELECT ';' AS `as;` /* ; */) SELECT * FROM x -- done ;\n;"
    statement = parse(text)

    assert statement.query == "WITH x AS (SELECT ';' AS `as;` /* ; */) SELECT * FROM x -- done ;"
    assert text[statement.query_start :].startswith("WITH x")


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("CREATE STREAM TABLE AS SELECT 1", 1, 24, "expected a clause or AS, found 'SELECT'"),
        ("CREATE STREAM TABLE", 1, 20, "expected the name of a stream table, found the end"),
        ("CREATE STREAM TABLE a.b.c.d AS SELECT 1", 1, 21, "not a table name"),
        ("CREATE STREAM TABLE __trickle_x AS SELECT 1", 1, 21, "Trickle's own"),
        ("CREATE STREAM TABLE d\n  SCHEDUL EVERY 5 MINUTES AS SELECT 1", 2, 3, "Did you mean SCHEDULE?"),
        ("CREATE STREAM TABLE d SCHEDULE EVERI 5 MINUTES AS SELECT 1", 1, 32, "Did you mean EVERY?"),
        ("CREATE STREAM TABLE d SCHEDULE EVERY 5 MINUTS AS SELECT 1", 1, 40, "Did you mean MINUTES?"),
        ("CREATE STREAM TABLE d SCHEDULE EVERY 0 MINUTES AS SELECT 1", 1, 38, "not a duration"),
        ("CREATE STREAM TABLE d SCHEDULE CRON '* *' AS SELECT 1", 1, 37, "2 fields"),
        ("CREATE STREAM TABLE d SCHEDULE CRON '30 0 6 * * ?' AS SELECT 1", 1, 37, "names seconds"),
        ("CREATE STREAM TABLE d SCHEDULE CRON '0 0 6 L * ?' AS SELECT 1", 1, 37, "L is not known"),
        ("CREATE STREAM TABLE d SCHEDULE CRON '61 6 * * *' AS SELECT 1", 1, 37, "not a schedule"),
        ("CREATE STREAM TABLE d SCHEDULE CRON '1 6 * * *' AT TIME ZONE 'Mars' AS SELECT 1", 1, 37, "not a time zone"),
        ("CREATE STREAM TABLE d COMMENT 'a' COMMENT 'b' AS SELECT 1", 1, 35, "COMMENT occurs twice"),
        (
            "CREATE STREAM TABLE d SCHEDULE EVERY 1 DAY TARGET_LAG = '1 day' AS SELECT 1",
            1,
            44,
            "TARGET_LAG says again what SCHEDULE says",
        ),
        ("CREATE STREAM TABLE d TBLPROPERTIES ('a' = 1, 'a' = 2) AS SELECT 1", 1, 37, "'a' occurs twice"),
        ("CREATE STREAM TABLE d (a, A) AS SELECT 1, 2", 1, 23, "occurs twice"),
        ("CREATE STREAM TABLE d (a INT, b) AS SELECT 1, 2", 1, 23, "Give all of them a type"),
        ("CREATE STREAM TABLE d (a INT NOT NULL) AS SELECT 1", 1, 30, "found 'NOT'"),
        ("CREATE STREAM TABLE d USING parquet AS SELECT 1", 1, 29, "expected DELTA"),
        (
            "CREATE STREAM TABLE d PARTITIONED BY (a) CLUSTER BY (b) AS SELECT 1",
            1,
            23,
            "either partitioned or clustered",
        ),
        (
            "ALTER STREAM TABLE d SET PARTITIONED BY (a) CLUSTER BY (b)",
            1,
            26,
            "either partitioned or clustered",
        ),
        ("CREATE STREAM TABLE d PARTITIONED BY (a, A) AS SELECT 1", 1, 38, "'a' stands twice"),
        ("ALTER STREAM TABLE d SET CLUSTER BY (a, b, a)", 1, 37, "'a' stands twice"),
        ("CREATE STREAM TABLE d WAREHOUSE = x AS SELECT 1", 1, 23, "expected a clause or AS, found 'WAREHOUSE'"),
        ("CREATE STREAM TABLE d AS ;", 1, 26, "expected a query after AS"),
        ("CREATE STREAM TABLE d COMMENT 'x'", 1, 34, "expected AS and a query, found the end"),
        ("CREATE STREAM TABLE d AS SELECT 1; SELECT 2", 1, 36, "a second statement begins here"),
        ("CREATE STREAM TABLE d AS SELECT 'a", 1, 33, "this string has no end"),
        ("CREATE STREAM TABLE d AS SELECT 1 /* x", 1, 35, "this comment has no end"),
        ("CREATE OR REPLACE STREAM TABLE IF NOT EXISTS d AS SELECT 1", 1, 32, "exclude each other"),
        ("REFRESH STREAM TABLE d FUL", 1, 24, "expected the end of the statement, found 'FUL'"),
        ("REFRESH STREAM TABLE 'd'", 1, 22, "found the string 'd'"),
        ("ALTER STREAM TABLE d SUSPENDED", 1, 22, "Did you mean SUSPEND?"),
        ("ALTER STREAM TABLE d SET", 1, 25, "expected a clause"),
        ("ALTER STREAM TABLE d SET LOCATION '/x'", 1, 26, "found 'LOCATION'"),
        ("ALTER STREAM TABLE d ADD COMMENT 'x'", 1, 26, "found 'COMMENT'"),
        ("SHOW REFRESH HISTORY LIMIT 0", 1, 28, "at least one refresh"),
        ("SHOW REFRESH HISTORY LIMIT many", 1, 28, "a number of refreshes"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text, line, column, said):
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)

    assert caught.value.code == "SQL_SYNTAX"
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert said in str(caught.value)


def test_an_error_shows_its_line_with_carets():
    with pytest.raises(SqlSyntaxError) as caught:
        parse("CREATE STREAM TABLE d\n\tSCHEDUL EVERY 5 MINUTES\nAS SELECT 1")

    assert str(caught.value).splitlines() == [
        "[SQL_SYNTAX] line 2, column 2: expected a clause or AS, found 'SCHEDUL'.",
        "  \tSCHEDUL EVERY 5 MINUTES",
        "  \t^^^^^^^",
        "Did you mean SCHEDULE?",
    ]
