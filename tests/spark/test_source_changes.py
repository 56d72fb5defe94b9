"""Sources, views and functions that change under a stream table: what it costs, and that it is incremental again after it."""

from __future__ import annotations

from collections import Counter

import pytest

from trickle import DefinitionError, Options, SourceError, StateError, Trickle
from trickle.refresh.run import Refresh
from trickle.refresh.steps import ApplyChange

QUERY = "SELECT k, sum(v) AS total, count(*) AS n FROM src GROUP BY k"


@pytest.fixture
def t(spark):
    spark.sql("CREATE DATABASE moving")
    spark.sql("USE moving")
    make(spark)
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE moving CASCADE")


def make(spark):
    spark.sql(
        "CREATE TABLE src (id INT, k STRING, v INT, w INT) USING delta "
        "TBLPROPERTIES (delta.columnMapping.mode = 'name', delta.enableChangeDataFeed = true)"
    )
    spark.sql("INSERT INTO src VALUES (1, 'a', 1, 0), (2, 'a', 2, 0), (3, 'b', 3, NULL), (4, NULL, 4, 0)")


def is_exact(spark, name, query):
    rows = [Counter(map(tuple, frame.collect())) for frame in (spark.table(name), spark.sql(query))]
    return rows[0] == rows[1]


def test_what_happens_to_a_source_is_classified_and_incremental_again_afterwards(spark, t):
    t.create("sums", QUERY)
    t.create("few", "SELECT k, total FROM sums WHERE n > 1")
    steps = [
        ("harmless", "ALTER TABLE src ADD COLUMN extra STRING", None),
        ("harmless", "ALTER TABLE src RENAME COLUMN w TO u", None),
        ("harmless", "ALTER TABLE src DROP COLUMN u", None),
        ("overwritten", "INSERT OVERWRITE src VALUES (1, 'a', 1, 'x'), (2, 'a', 2, 'x'), (9, 'c', 7, 'x')", None),
        ("restored", "RESTORE TABLE src TO VERSION AS OF 1", None),
        ("truncated", "TRUNCATE TABLE src", None),
        ("made anew", "DROP TABLE src", "SOURCE_REPLACED"),
    ]
    for what, statement, code in steps:
        spark.sql(statement)
        if code is not None:
            make(spark)
        report = t.refresh_all()
        found = report.tables["moving.sums"]
        assert (found.reason.code if found.reason else None) == code, what
        assert found.mode == ("full" if code else found.mode), what
        spark.sql("INSERT INTO src (id, k, v) VALUES (5, 'a', 10), (6, 'd', 1)")
        after = t.refresh_all().tables
        assert {one.mode for one in after.values()} <= {"differential", "no_data"}, what
        assert after["moving.sums"].mode == "differential", what
        assert is_exact(spark, "sums", QUERY), what
        assert is_exact(spark, "few", f"SELECT k, total FROM ({QUERY}) WHERE n > 1"), what


@pytest.mark.slow
def test_a_table_behind_vacuumed_history_recovers(spark, t):
    t.create("sums", QUERY)
    spark.sql("UPDATE src SET v = v + 1 WHERE id < 3")
    spark.sql("DELETE FROM src WHERE id = 4")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql("VACUUM src RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    report = t.refresh("sums")
    assert (report.mode, report.reason.code) == ("full", "HISTORY_EXPIRED")
    spark.sql("INSERT INTO src VALUES (7, 'a', 1, 1)")
    assert t.refresh("sums").mode == "differential"
    assert is_exact(spark, "sums", QUERY)


@pytest.mark.parametrize(
    ("place", "with_feed"),
    [
        pytest.param("disk", True, marks=pytest.mark.slow),
        pytest.param("disk", False, marks=pytest.mark.slow),
        pytest.param("object store", True, marks=pytest.mark.slow),
        pytest.param("object store", False, marks=pytest.mark.slow),
    ],
)
def test_a_source_that_is_vacuumed_while_its_change_is_read_has_expired(
    spark, t, s3, monkeypatch, request, place, with_feed
):
    if place == "object store":
        spark.sql("CREATE DATABASE vacuumed LOCATION 's3a://lake/vacuumed'")
        request.addfinalizer(lambda: spark.sql("DROP DATABASE vacuumed CASCADE"))
    schema = "vacuumed" if place == "object store" else "moving"
    properties = f"TBLPROPERTIES (delta.enableChangeDataFeed = {with_feed})"
    spark.sql(f"CREATE TABLE {schema}.fed USING delta {properties} AS SELECT id, 1 AS v FROM range(9)")
    query = f"SELECT id % 3 AS k, sum(v) AS s, count(*) AS n FROM {schema}.fed GROUP BY 1"
    t = Trickle(spark, options=Options(read_ahead_bytes=0, disk_cache_bytes=0))
    for name, mode in (("loose", "auto"), ("strict", "differential")):
        t.create(name, query, mode=mode)
    perform, done = Refresh._perform, set()

    def vacuum_before(self, step, now):
        if isinstance(step, ApplyChange) and now.table not in done:
            done.add(now.table)
            spark.sql(f"VACUUM {schema}.fed RETAIN 0 HOURS")
        return perform(self, step, now)

    monkeypatch.setattr(Refresh, "_perform", vacuum_before)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    request.addfinalizer(lambda: spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled"))

    spark.sql(f"UPDATE {schema}.fed SET v = v + 1 WHERE id < 3")
    spark.sql(f"DELETE FROM {schema}.fed WHERE id = 4")
    loose = t.refresh("loose")
    spark.sql(f"UPDATE {schema}.fed SET v = v + 1 WHERE id = 5")
    with pytest.raises((SourceError, StateError)) as refused:
        t.refresh("strict")

    assert done
    assert (loose.mode, loose.reason.code) == ("full", "HISTORY_EXPIRED")
    assert refused.value.code == "HISTORY_EXPIRED"
    assert t.refresh("strict", full=True).mode == "full"
    spark.sql(f"INSERT INTO {schema}.fed VALUES (10, 1)")
    assert {t.refresh(name).mode for name in ("loose", "strict")} == {"differential"}
    assert all(is_exact(spark, name, query) for name in ("loose", "strict"))


def test_a_query_of_all_columns_gets_those_that_come(spark, t):
    query = "SELECT * FROM src WHERE v > 1"
    t.create("wide", query)
    t.create("wider", "SELECT * FROM wide")
    t.create("strict", query, mode="differential")
    before = spark.table("wide").columns
    spark.sql("ALTER TABLE src ADD COLUMN extra STRING")
    spark.sql("INSERT INTO src VALUES (8, 'z', 8, 8, 'new')")
    assert t.refresh_all(["wider"]).tables["moving.wide"].mode == "full"
    assert is_exact(spark, "wide", query)
    # What reads it by a star follows when it has something new.
    spark.sql("INSERT INTO src VALUES (9, 'y', 9, 9, 'newer')")
    report = t.refresh_all(["wider"])
    assert {name: one.mode for name, one in report.tables.items()} == {
        "moving.wide": "differential",
        "moving.wider": "full",
    }
    assert spark.table("wide").columns == [*before, "extra"] == spark.table("wider").columns
    assert is_exact(spark, "wide", query)
    assert is_exact(spark, "wider", query)
    with pytest.raises(SourceError, match="SOURCE_ALTERED"):
        t.refresh("strict")
    assert t.refresh("strict", full=True).mode == "full"
    spark.sql("DELETE FROM src WHERE id = 2")
    report = t.refresh_all()
    assert {one.mode for one in report.tables.values()} == {"differential"}
    assert is_exact(spark, "wider", query)
    assert is_exact(spark, "strict", query)


def test_a_query_of_all_columns_loses_those_that_go_though_no_row_changes(spark, t):
    query = "SELECT * FROM src WHERE v > 1"
    t.create("wide", query)
    t.create("strict", query, mode="differential")
    spark.sql("ALTER TABLE src DROP COLUMN w")
    with pytest.raises(SourceError, match="SOURCE_ALTERED"):
        t.refresh("strict")
    assert t.refresh("strict", full=True).mode == "full"
    report = t.refresh("wide")
    assert (report.mode, report.reason.code) == ("full", "DEFINITION_CHANGED")
    assert spark.table("wide").columns == spark.table("strict").columns == ["id", "k", "v"]
    spark.sql("INSERT INTO src VALUES (9, 'y', 9)")
    assert {t.refresh(name).mode for name in ("wide", "strict")} == {"differential"}
    assert is_exact(spark, "wide", query)
    assert is_exact(spark, "strict", query)


@pytest.mark.parametrize("how", ["alter", "replace", "apply"])
def test_a_table_whose_column_was_renamed_gets_another_query(spark, t, how):
    t.create("slim", "SELECT id, w FROM src", comment="kept")
    spark.sql("ALTER TABLE src RENAME COLUMN w TO u")
    spark.sql("INSERT INTO src VALUES (9, 'y', 9, 9)")
    with pytest.raises(DefinitionError, match="BAD_SQL") as caught:
        Trickle(spark).refresh("slim")
    assert "\n" not in caught.value.message  # Spark's plan is no help
    query = "SELECT id, u AS w FROM src"
    if how == "alter":
        t.alter("slim", query)
    elif how == "replace":
        t.create("slim", query, replace=True)
    else:
        assert [step.action for step in t.apply({"slim": query}).changes] == ["query"]
    assert is_exact(spark, "slim", query)
    assert t.table("slim").options.comment == ("kept" if how == "alter" else None)
    spark.sql("DELETE FROM src WHERE id = 1")
    assert t.refresh("slim").mode == "differential"
    assert is_exact(spark, "slim", query)


def test_a_redefined_function_is_noticed(spark, t):
    spark.sql("CREATE FUNCTION gross(net INT) RETURNS INT RETURN net * 2")
    spark.sql("CREATE FUNCTION known() RETURNS TABLE (k STRING) RETURN SELECT 'a' AS k")
    spark.sql("CREATE VIEW priced AS SELECT id, k, gross(v) AS price FROM src")
    try:
        query = "SELECT k, sum(price) AS total FROM priced WHERE k IN (SELECT k FROM known()) GROUP BY k"
        t.create("totals", query)
        assert t.refresh("totals").mode == "no_data"
        for redefined in (
            "FUNCTION gross(net INT) RETURNS INT RETURN net * 3",
            "FUNCTION known() RETURNS TABLE (k STRING) RETURN SELECT 'b' AS k UNION ALL SELECT 'a'",
        ):
            spark.sql(f"CREATE OR REPLACE {redefined}")
            report = t.refresh("totals")
            assert (report.mode, report.reason.code) == ("full", "DEFINITION_CHANGED")
            assert is_exact(spark, "totals", query)
            # The same words again are no other function.
            spark.sql(f"CREATE OR REPLACE {redefined}")
            spark.sql("INSERT INTO src VALUES (10, 'a', 5, 5), (11, 'b', 1, 1)")
            assert t.refresh("totals").mode == "differential"
            assert is_exact(spark, "totals", query)
    finally:
        spark.sql("DROP FUNCTION gross")
        spark.sql("DROP FUNCTION known")


def test_a_snapshot_is_kept_and_restored_with_its_frontier(spark, t):
    t.create("sums", QUERY)
    rows = Counter(map(tuple, spark.table("sums").collect()))
    kept = t.snapshot("sums", keep="60d")
    properties = spark.sql("DESCRIBE DETAIL sums").first()["properties"]
    assert properties["delta.deletedFileRetentionDuration"] == properties["delta.logRetentionDuration"]
    assert properties["delta.deletedFileRetentionDuration"] == "interval 5184000 seconds"
    assert t.snapshot("sums", keep="1d") == kept
    spark.sql("DELETE FROM src WHERE k = 'a'")
    t.refresh("sums")
    t.restore("sums", kept)
    assert Counter(map(tuple, spark.table("sums").collect())) == rows
    report = t.refresh("sums")
    assert (report.mode, report.rows_deleted) == ("differential", 1)
    assert is_exact(spark, "sums", QUERY)
    spark.sql("DELETE FROM sums")
    with pytest.raises(StateError, match="NO_SUCH_VERSION"):
        t.snapshot("sums")


@pytest.mark.parametrize(
    "reader", ["SELECT * FROM sums ORDER BY total DESC, k LIMIT 1", "SELECT * FROM sums WHERE n > 1"]
)
def test_readers_of_all_columns_follow_a_query_that_is_replaced(spark, t, reader):
    t.create("sums", "SELECT k, sum(v) AS total, max(v) AS n FROM src GROUP BY k")
    t.create("reader", reader)
    t.apply({"sums": "SELECT k, sum(v) AS total, max(v) AS n, count(*) AS m FROM src GROUP BY k", "reader": reader})
    for row in ("(7, 'a', 1, 1)", "(8, 'c', 100, 1)", "(9, 'c', 1, 1)"):
        report = t.refresh_all()
        for error in report.errors.values():
            raise error
        assert is_exact(spark, "reader", reader)
        assert spark.table("reader").columns == ["k", "total", "n", "m"]
        spark.sql(f"INSERT INTO src VALUES {row}")
    assert t.refresh_all().tables["moving.reader"].mode == "differential"
    assert is_exact(spark, "reader", reader)


def test_readers_follow_where_the_change_upstream_is_unknown(spark, t):
    t.create("sums", QUERY)
    t.create("reader", "SELECT k, total FROM sums WHERE n > 1")
    t.alter("sums", "SELECT k, CAST(sum(v) AS DOUBLE) AS total, count(*) AS n FROM src GROUP BY k")
    report = t.refresh_all()
    assert report
    assert report.tables["moving.reader"].mode == "full"
    assert is_exact(spark, "reader", "SELECT k, total FROM sums WHERE n > 1")
    assert t.read(["sums", "reader"])
    spark.sql("INSERT INTO src VALUES (7, 'a', 1, 1)")
    assert t.refresh_all().tables["moving.reader"].mode == "differential"
    assert is_exact(spark, "reader", "SELECT k, total FROM sums WHERE n > 1")


def test_results_have_the_values_of_char_varchar_and_default_columns_not_their_rules(spark, t):
    spark.sql(
        "CREATE TABLE kinds (id INT, c CHAR(4), v VARCHAR(5), n INT DEFAULT 7) USING delta PARTITIONED BY (c) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql("INSERT INTO kinds (id, c, v) VALUES (1, 'a', 'x '), (2, NULL, NULL)")
    plain = "SELECT c, v, n, id FROM kinds"
    queries = {"copied": plain, "longest": "SELECT c, max(v) AS v, count(*) AS n FROM kinds GROUP BY c"}
    for name, query in queries.items():
        t.create(name, query, mode="differential")

    spark.sql("INSERT INTO kinds (id, c, v) VALUES (3, 'a', 'y'), (4, 'bcde', 'zzzzz')")
    spark.sql("UPDATE kinds SET v = 'w' WHERE id = 1")

    for name, query in queries.items():
        assert t.refresh(name).mode == "differential"
        assert is_exact(spark, name, query)
        assert not any(field.metadata for field in spark.table(name).schema)
    assert spark.sql(f"SELECT DISTINCT length(c) FROM ({plain}) WHERE c IS NOT NULL").first()[0] == 4
    t.declare("kinds", primary_key="id")
