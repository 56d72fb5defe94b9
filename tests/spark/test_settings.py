"""A query means what it meant when its table was created, whatever the settings of the session that refreshes it."""

from __future__ import annotations

import pytest

from trickle import Trickle
from trickle.engine.compiler import Compiler

THEN = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.caseSensitive": "false",
}
NOW = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.caseSensitive": "true",
}
QUERIES = {
    "sums": "SELECT K, sum(n) AS s, avg(x) AS a, min(CAST(s AS INT)) AS m, count(*) AS c FROM facts GROUP BY k",
    "values": """
        SELECT n + 1 AS a, i * i AS b, n / z AS c, i % z AS d, CAST(s AS INT) AS e, CAST(n AS INT) AS f, x * x AS g,
               element_at(array(1, 2), i) AS h
        FROM facts""",
    "times": """
        SELECT date_format(t, 'yyyy-MM-dd HH') AS a, CAST(t AS DATE) AS b, CAST(d AS TIMESTAMP) AS c, hour(t) AS e,
               to_date(s, 'yyyy-MM-dd') AS f, count(*) AS n
        FROM facts GROUP BY ALL""",
    "maps": "SELECT k, max(element_at(map(i, s, i % 2, 'even'), 0)) AS a, count(*) AS c FROM facts GROUP BY k",
    "joined": "SELECT f.n + u.w AS a, CAST(f.s AS INT) AS b, hour(f.t) AS c FROM facts f JOIN units u ON f.k = u.k",
    "ranked": "SELECT k, sum(n) OVER (PARTITION BY k ORDER BY t, i) AS s FROM facts",
}


def use(spark, settings):
    for key, value in settings.items():
        spark.conf.set(key, value)


@pytest.fixture
def facts(spark):
    before = {key: spark.conf.get(key) for key in THEN}
    spark.sql("CREATE DATABASE settings")
    spark.sql("USE settings")
    spark.sql(
        "CREATE TABLE facts (k INT, n BIGINT, i INT, z INT, s STRING, t TIMESTAMP, d DATE, x DECIMAL(38,10)) USING delta"
    )
    spark.sql("CREATE TABLE units (k INT, w BIGINT) USING delta")
    spark.sql("INSERT INTO units VALUES (1, 1), (2, 9223372036854775807)")
    yield lambda rows: spark.sql(f"INSERT INTO facts {rows}")
    use(spark, before)
    spark.sql("USE default")
    spark.sql("DROP DATABASE settings CASCADE")


ROWS = """
    SELECT 1, 9223372036854775807, 2147483647, 0, '2020-1-1', TIMESTAMP'2024-03-10 07:30:00Z', DATE'2024-03-10', 1.5BD
    UNION ALL SELECT 1, 7, 2, 3, 'seven', TIMESTAMP'2024-03-11 01:30:00Z', DATE'2024-03-11', 99999999999999.1BD
    UNION ALL SELECT 2, 7, 2, 3, '7', NULL, NULL, NULL
"""


def differences(spark, name):
    sides = f"SELECT * FROM {name}", QUERIES[name]
    return [spark.sql(f"({a}) EXCEPT ALL ({b})").collect() for a, b in (sides, sides[::-1])]


@pytest.mark.parametrize(
    ("disable", "names"),
    [
        pytest.param((), ("sums", "values"), id="driver"),
        pytest.param(("driver_execution", "key_lookup"), ("times", "maps"), id="spark"),
        pytest.param((), tuple(QUERIES), id="driver, all", marks=pytest.mark.slow),
        pytest.param(("driver_execution", "key_lookup"), tuple(QUERIES), id="spark, all", marks=pytest.mark.slow),
    ],
)
def test_a_query_keeps_its_meaning_under_other_settings(spark, facts, disable, names):
    facts(ROWS)
    use(spark, THEN)
    trickle = Trickle(spark, disable=disable)
    for name in names:
        trickle.create(name, QUERIES[name], mode="differential")

    for later in (trickle, Trickle(spark, disable=disable)):
        use(spark, NOW)
        facts(ROWS)
        modes = {later.refresh(name).mode for name in names}
        verified = [name for name in names if later.verify(name)]
        assert modes == {"differential"}
        assert verified == [*names]
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert spark.getActiveSession().conf.get("spark.sql.ansi.enabled") == "true"
        use(spark, THEN)
        assert {name: differences(spark, name) for name in names} == {name: [[], []] for name in names}

    name = names[0]
    assert trickle.refresh(name, full=True).mode == "full"
    facts(ROWS)
    assert trickle.refresh(name).mode == "differential"
    assert trickle.verify(name)


def test_rows_that_are_read_belong_to_the_users_session(spark, facts):
    facts(ROWS)
    use(spark, THEN)
    Trickle(spark).create("hours", "SELECT k, max(t) AS t FROM facts WHERE k = 1 GROUP BY k")
    use(spark, NOW)
    trickle = Trickle(spark)
    facts(ROWS)
    assert trickle.refresh("hours").mode == "differential"

    for frame in (trickle.table("hours").to_df(), *trickle.read(["hours"])):
        assert [row.h for row in frame.selectExpr("hour(t) AS h").collect()] == [10]
        assert frame.sparkSession is spark


def test_a_definition_keeps_its_settings_when_it_is_applied_elsewhere(spark, facts):
    facts(ROWS)
    use(spark, THEN)
    trickle = Trickle(spark)
    trickle.create("values", QUERIES["values"])
    text = trickle.export()
    trickle.drop("values")
    use(spark, NOW)

    trickle.apply(text)
    facts(ROWS)

    assert trickle.refresh("values").mode == "differential"
    use(spark, THEN)
    assert differences(spark, "values") == [[], []]


def test_a_table_is_not_compiled_again_because_the_session_wrote_to_a_source(spark, facts, monkeypatch):
    use(spark, THEN)
    trickle = Trickle(spark)
    trickle.create("sums", QUERIES["sums"], mode="differential")
    use(spark, NOW)
    facts(ROWS)
    trickle.refresh("sums")
    prepared = []
    prepare = Compiler.prepare
    monkeypatch.setattr(Compiler, "prepare", lambda self, *given: (prepared.append(given), prepare(self, *given))[1])

    facts(ROWS)
    assert trickle.refresh("sums").mode == "differential"

    assert prepared == []
