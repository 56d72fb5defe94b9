"""Stream tables by SQL statements: through ``t.sql``, ``spark.sql`` and the command."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from tests.unit.cli.command import pipe
from trickle import (
    DefinitionError,
    NotDifferentiableError,
    RefreshReport,
    SqlSyntaxError,
    StreamTable,
    SuspendedError,
    Trickle,
    UnknownTableError,
    enable_sql,
)

TOTALS = "SELECT day, sum(amount) AS total FROM orders GROUP BY day"


@pytest.fixture
def t(spark):
    spark.sql("CREATE DATABASE said")
    spark.sql("USE said")
    spark.sql("CREATE TABLE orders (id INT, day STRING, amount INT) USING delta")
    spark.sql("INSERT INTO orders VALUES (1, 'mon', 5), (2, 'mon', 7), (3, 'tue', 1)")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE said CASCADE")


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_a_table_lives_by_sql(t, spark):
    made = t.sql(
        f"""
        CREATE STREAM TABLE daily (day COMMENT 'the day', total COMMENT 'it''s ${{x}} \\\\ all')
          COMMENT 'What we earn' REFRESH POLICY INCREMENTAL STRICT
          SCHEDULE EVERY 5 MINUTES CLUSTER BY (day)
          TBLPROPERTIES ('team' = 'ops', 'trickle.owner' = 'ann', 'trickle.tags.tier' = 'gold')
        AS {TOTALS};
        """
    )
    assert isinstance(made, StreamTable)
    assert (made.mode, made.schedule, made.options.owner) == ("differential", "5m", "ann")
    assert (made.options.properties, made.options.tags) == ({"team": "ops"}, {"tier": "gold"})
    assert {f.name: f.metadata["comment"] for f in spark.table("daily").schema} == {
        "day": "the day",
        "total": "it's ${x} \\ all",
    }

    t.sql("INSERT INTO orders VALUES (4, 'wed', 2)")
    report = t.sql("REFRESH STREAM TABLE said.`daily`")
    assert isinstance(report, RefreshReport)
    assert (report.mode, report.rows_inserted) == ("differential", 1)
    assert t.sql("REFRESH MATERIALIZED VIEW daily FULL").mode == "full"
    assert spark.table("daily").schema["day"].metadata["comment"] == "the day"

    altered = t.sql("ALTER STREAM TABLE daily SET TARGET_LAG = '1 hour' TBLPROPERTIES ('x' = 'y') COMMENT 'other'")
    assert (altered.schedule, altered.options.properties) == ("1h", {"team": "ops", "x": "y"})
    assert (altered.options.owner, altered.mode, altered.options.comment) == ("ann", "differential", "other")
    altered = t.sql("ALTER STREAM TABLE daily UNSET TBLPROPERTIES ('team', 'trickle.owner')")
    assert (altered.options.properties, altered.options.owner, altered.options.tags) == (
        {"x": "y"},
        None,
        {"tier": "gold"},
    )
    assert t.sql("ALTER STREAM TABLE daily DROP SCHEDULE").schedule is None

    t.sql("ALTER STREAM TABLE daily AS SELECT day, max(amount) AS total FROM orders GROUP BY day")
    assert rows(spark.table("daily")) == [("mon", 7), ("tue", 1), ("wed", 2)]
    assert t.verify("daily")

    t.sql("ALTER STREAM TABLE daily SUSPEND")
    with pytest.raises(SuspendedError):
        t.sql("REFRESH STREAM TABLE daily")
    assert isinstance(t.sql("ALTER STREAM TABLE daily RESUME"), StreamTable)
    assert t.sql("ALTER STREAM TABLE daily RENAME TO other").name.endswith("said.other")
    assert t.sql("DROP STREAM TABLE other") is None
    assert t.sql("DROP STREAM TABLE IF EXISTS other") is None
    for statement in ("DROP STREAM TABLE other", "DROP STREAM TABLE IF EXISTS orders"):
        with pytest.raises(UnknownTableError):
            t.sql(statement)


def test_create_again(t, spark):
    typed = "(day STRING, total DECIMAL(12, 2))"
    t.sql(f"CREATE MATERIALIZED VIEW daily {typed} AS SELECT day, sum(amount) FROM orders GROUP BY day")
    assert [f.dataType.simpleString() for f in spark.table("daily").schema] == ["string", "decimal(12,2)"]
    version = t.table("daily").frontier

    same = t.sql("CREATE STREAM TABLE IF NOT EXISTS daily AS SELECT 1 AS one")
    assert same.frontier == version
    with pytest.raises(DefinitionError) as caught:
        t.sql("CREATE STREAM TABLE daily AS SELECT 1 AS one")
    assert caught.value.code == "NAME_TAKEN"
    t.sql("CREATE OR REPLACE STREAM TABLE daily AS SELECT max(id) AS one FROM orders")
    assert rows(spark.table("daily")) == [(3,)]


def test_a_policy_is_kept(t):
    unstable = "SELECT id, uuid() AS u FROM orders"
    for policy in ("INCREMENTAL", "INCREMENTAL STRICT"):
        with pytest.raises(NotDifferentiableError) as caught:
            t.sql(f"CREATE STREAM TABLE x REFRESH POLICY {policy} AS {unstable}")
        assert caught.value.code == "NON_DETERMINISTIC"
    assert t.tables() == []

    made = t.sql(f"CREATE STREAM TABLE x REFRESH POLICY INCREMENTAL AS {TOTALS}")
    assert made.mode == "auto"
    assert t.sql("ALTER STREAM TABLE x SET REFRESH POLICY FULL").mode == "full"


def test_show_and_describe(t):
    t.sql(f"CREATE STREAM TABLE daily AS {TOTALS}")
    t.sql("CREATE STREAM TABLE top TARGET_LAG = DOWNSTREAM AS SELECT max(total) AS m FROM daily")
    t.sql("INSERT INTO orders VALUES (4, 'wed', 2)")

    shown = [(row["name"], row["health"], row["schedule"]) for row in t.sql("SHOW STREAM TABLES IN said").collect()]
    assert sorted(shown) == [("daily", "behind", None), ("top", "behind", "downstream")]
    assert [row["name"] for row in t.sql("SHOW STREAM TABLES LIKE 'D*|x'").collect()] == ["daily"]
    assert t.sql("SHOW STREAM TABLES IN default").collect() == []
    with pytest.raises(DefinitionError) as caught:
        t.sql("SHOW STREAM TABLES IN siad")
    assert (caught.value.code, bool(caught.value.hint)) == ("SCHEMA_NOT_FOUND", True)

    t.sql("REFRESH STREAM TABLE daily")
    history = t.sql("SHOW REFRESH HISTORY FOR daily").collect()
    assert [(row["mode"], row["trigger"]) for row in history] == [("differential", "manual"), ("full", "creation")]
    assert history[0]["frontier"] == dict(t.table("daily").frontier)
    assert len(t.sql("SHOW REFRESH HISTORY LIMIT 2").collect()) == 2

    described = {row["col_name"]: row["data_type"] for row in t.sql("DESCRIBE STREAM TABLE daily").collect()}
    assert described["total"] == "bigint"
    assert (described["Query"], described["Mode"], described["Health"]) == (TOTALS, "auto", "ok")
    extended = {row["col_name"]: row["data_type"] for row in t.sql("DESC EXTENDED STREAM TABLE daily").collect()}
    assert extended["Setting spark.sql.ansi.enabled"] in ("true", "false")


def test_explain(t):
    foreseen = t.sql(f"EXPLAIN CREATE STREAM TABLE daily AS {TOTALS}")
    assert "this query is maintained by its changes" in foreseen
    assert not foreseen.obstacles
    refused = t.sql("EXPLAIN CREATE STREAM TABLE daily AS SELECT rand() AS r FROM orders")
    assert [obstacle.code for obstacle in refused.obstacles] == ["NON_DETERMINISTIC"]
    assert "maintained by its changes (mode differential)" in t.sql(
        f"EXPLAIN CREATE STREAM TABLE daily REFRESH POLICY INCREMENTAL STRICT AS {TOTALS}"
    )
    assert "recomputed at each refresh (mode full)" in t.sql(
        f"EXPLAIN CREATE STREAM TABLE daily REFRESH POLICY FULL AS {TOTALS}"
    )
    for clauses, query, code in (
        ("REFRESH POLICY INCREMENTAL", "SELECT rand() AS r FROM orders", "NON_DETERMINISTIC"),
        ("REFRESH POLICY INCREMENTAL STRICT", "SELECT rand() AS r FROM orders", "NON_DETERMINISTIC"),
        ("PARTITIONED BY (nothing)", TOTALS, "BAD_OPTION"),
        ("TBLPROPERTIES (trickle.suspend_after = 0)", TOTALS, "BAD_OPTION"),
    ):
        for verb in ("EXPLAIN CREATE", "CREATE"):
            with pytest.raises(DefinitionError) as caught:
                t.sql(f"{verb} STREAM TABLE daily {clauses} AS {query}")
            assert caught.value.code == code
    assert t.tables() == []

    t.sql(f"CREATE STREAM TABLE daily AS {TOTALS}")
    explained = t.sql("EXPLAIN STREAM TABLE daily")
    assert explained.next_refresh.mode == "no_data"
    (state, _) = explained.parts
    assert state.plan.law
    assert state.plan.cost


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("CREATE STREAM TABLE d\nCOMMENT 'x' AS\nSELECT day\n  FRM orders", 4, 7, "orders"),
        ("CREATE STREAM TABLE d AS SELECT dai FROM orders", 1, 33, "dai"),
        ("CREATE STREAM TABLE d (a)\nAS SELECT *\n  FROM nowhere", 3, 8, "nowhere"),
        ("EXPLAIN CREATE STREAM TABLE d AS SELECT dai FROM orders", 1, 41, "dai"),
    ],
)
def test_what_spark_says_of_a_query_is_told_with_its_place(t, text, line, column, said):
    with pytest.raises(SqlSyntaxError) as caught:
        t.sql(text)

    assert caught.value.code == "BAD_SQL"
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("query", ["INSERT INTO orders VALUES (9, 'x', 9)", "DROP TABLE orders", "SET a = b"])
def test_only_a_query_is_taken_for_one(t, spark, query):
    with pytest.raises(DefinitionError) as caught:
        t.sql(f"CREATE STREAM TABLE d AS {query}")

    assert caught.value.code in ("NOT_A_QUERY", "BAD_SQL")
    assert spark.table("orders").count() == 3


def test_everything_else_goes_to_spark(t):
    frame = t.sql("SELECT id FROM orders WHERE amount > :least", {"least": 4})
    assert isinstance(frame, DataFrame)
    assert rows(frame) == [(1,), (2,)]
    with pytest.raises(ParseException):
        t.sql("SELEC 1")
    with pytest.raises(DefinitionError) as caught:
        t.sql("REFRESH STREAM TABLE daily", {"a": 1})
    assert caught.value.code == "BAD_OPTION"


def test_one_session_object_understands_the_statements(t, spark):
    plain = spark.sql
    undo = enable_sql(spark, t)
    try:
        assert spark.sql(f"CREATE STREAM TABLE daily AS {TOTALS}").collect()[0]["table"].endswith("said.daily")
        assert spark.sql("REFRESH STREAM TABLE daily").collect()[0]["mode"] == "no_data"
        assert spark.sql("ALTER STREAM TABLE daily SUSPEND").collect()[0]["cause"] == "user"
        assert "Next refresh" in spark.sql("EXPLAIN STREAM TABLE daily").collect()[0]["plan"]
        assert spark.sql("DROP STREAM TABLE daily").collect() == []
        assert rows(spark.sql("SELECT id FROM orders WHERE id > ?", args=[2])) == [(3,)]
        assert rows(spark.sql("SELECT * FROM {frame}", frame=spark.range(1))) == [(0,)]
        with pytest.raises(AnalysisException):
            spark.sql("SELECT * FROM nowhere")
    finally:
        undo()
    assert spark.sql == plain
    with pytest.raises(ParseException):
        spark.sql("SHOW STREAM TABLES")


def test_the_command_carries_out_a_script(t, warehouse_folder, tmp_path):
    script = tmp_path / "tables.sql"
    script.write_text(
        f"USE said;\nCREATE STREAM TABLE daily AS\n{TOTALS};\nSELECT * FROM daily ORDER BY day;\nSELECT nothing"
    )
    few = ("--conf", "spark.driver.memory=1g", "--master", "local[1]")

    done = pipe("sql", "--file", script, "--warehouse", warehouse_folder, *few)

    assert done.code == 1
    assert done.out.split() == [
        "table",
        "mode",
        "schedule",
        "said.daily",
        "auto",
        *["day", "total", "mon", "12", "tue", "1"],
    ]
    assert "line 5" in done.err
    assert "nothing" in done.err
    assert [status.health for status in t.status("daily")] == ["ok"]  # the session hears of the table, too
    assert rows(t.spark.table("daily")) == [("mon", 12), ("tue", 1)]


def test_answers_before_an_error_are_not_lost_in_json(t, warehouse_folder):
    few = ("--conf", "spark.driver.memory=1g", "--master", "local[1]")

    found = pipe("sql", "SELECT 1 AS one; SELECT nothing", "--warehouse", warehouse_folder, "--format", "json", *few)

    assert found.code == 1
    assert [answer["rows"] for answer in found.json["answers"]] == [[{"one": 1}]]
    assert found.json["error"]["code"] == "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"
