"""What comes in through the public verbs: text that is not one query, odd values, broken and copied tables, Spark's errors."""

from __future__ import annotations

import json
import logging
from functools import partial

import pytest

from trickle import DefinitionError, SparkError, StateError, Trickle, TrickleError, UnknownTableError

COUNTS = "SELECT b, count(*) AS n FROM src GROUP BY b"


@pytest.fixture(scope="module")
def yard(spark):
    """A schema of its own with one source and one stream table; dropped with all that was made in it."""
    spark.sql("CREATE DATABASE yard")
    spark.sql("USE yard")
    spark.sql("CREATE TABLE src (a INT, b STRING) USING delta")
    spark.sql("INSERT INTO src VALUES (1,'x'),(2,'y')")
    spark.sql("CREATE VIEW seen AS SELECT a FROM src")
    trickle = Trickle(spark)
    trickle.create("counts", COUNTS)
    yield trickle
    spark.sql("USE default")
    spark.sql("DROP DATABASE yard CASCADE")


# -- text

HOSTILE = (
    "BEGIN SELECT 1; DROP TABLE src; END",
    "BEGIN SELECT 1 AS a; END",
    "BEGIN END",
    "BEGIN DECLARE n INT = 1; INSERT INTO src VALUES (n, 'n'); SELECT * FROM src; END",
    "BEGIN IF true THEN DELETE FROM src; END IF; SELECT 1 AS a; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN DROP TABLE src; END; SELECT 1 AS a; END",
    "BEGIN WHILE true DO DELETE FROM src; END WHILE; END",
    "EXECUTE IMMEDIATE 'DROP TABLE src'",
    "EXECUTE IMMEDIATE 'INSERT INTO src VALUES (3, ''z'')'",
    "EXECUTE IMMEDIATE 'SELECT 1 AS a'",
    "EXECUTE IMMEDIATE 'BEGIN DROP TABLE src; END'",
    "SELECT 1 AS a; DROP TABLE src",
    "SELECT 1 AS a; SELECT 2 AS a",
    "SELECT 1 AS a /* */; -- \n DELETE FROM src",
    "INSERT INTO src VALUES (3, 'z')",
    "INSERT INTO IDENTIFIER('src') VALUES (3, 'z')",
    "INSERT OVERWRITE src SELECT 1, 'a'",
    "INSERT INTO src REPLACE WHERE a = 1 SELECT 1, 'a'",
    "INSERT OVERWRITE DIRECTORY '{folder}/out' USING parquet SELECT 1 AS a",
    "WITH q AS (SELECT 1 AS a, 'b' AS b) INSERT INTO src SELECT * FROM q",
    "WITH q AS (INSERT INTO src VALUES (3, 'z')) SELECT * FROM q",
    "FROM src INSERT INTO src SELECT a, b INSERT INTO src SELECT a, b",
    "SELECT * FROM (DELETE FROM src)",
    "SELECT a FROM src WHERE a IN (INSERT INTO src VALUES (3, 'z'))",
    "UPDATE src SET a = 9",
    "DELETE FROM src",
    "DELETE FROM delta.`{folder}/src`",
    "MERGE INTO src USING seen ON src.a = seen.a WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE src",
    "DROP TABLE src",
    "DROP TABLE IDENTIFIER('src')",
    "DROP VIEW seen",
    "DROP DATABASE yard CASCADE",
    "CREATE DATABASE other",
    "CREATE TABLE made AS SELECT 1 AS a",
    "CREATE TABLE IDENTIFIER('made') USING delta AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE src (a INT) USING delta",
    "CREATE TABLE made SHALLOW CLONE src",
    "CREATE TABLE made LIKE src",
    "CREATE VIEW made AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW IDENTIFIER('made') AS SELECT 1 AS a",
    "CREATE FUNCTION made() RETURNS INT RETURN 1",
    "DROP TEMPORARY FUNCTION IF EXISTS IDENTIFIER('made')",
    "ALTER TABLE src ADD COLUMN c INT",
    "ALTER TABLE src SET TBLPROPERTIES ('a' = 'b')",
    "ALTER VIEW seen AS SELECT 2 AS a",
    "COMMENT ON TABLE src IS 'x'",
    "ANALYZE TABLE src COMPUTE STATISTICS",
    "RESTORE TABLE src TO VERSION AS OF 0",
    "OPTIMIZE src",
    "VACUUM src RETAIN 0 HOURS",
    "REORG TABLE src APPLY (PURGE)",
    "CONVERT TO DELTA parquet.`{folder}/src`",
    "CALL system.anything(1)",
    "SET spark.sql.ansi.enabled = false",
    "SET TIME ZONE 'Asia/Tokyo'",
    "RESET",
    "USE default",
    "DECLARE VARIABLE made INT DEFAULT 1",
    "SET VARIABLE made = 1",
    "CACHE TABLE made AS SELECT 1 AS a",
    "CLEAR CACHE",
    "ADD FILE '/etc/passwd'",
    "REFRESH TABLE src",
    "MSCK REPAIR TABLE src",
    "LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE src",
    "EXPLAIN SELECT 1 AS a",
    "EXPLAIN ANALYZE DELETE FROM src",
    "DESCRIBE QUERY SELECT 1 AS a",
    "SHOW TABLES",
    "",
    "   ;",
    "SELECT '\ud800' AS a",
)


def everything(spark):
    """All that a statement could have changed."""
    tables = spark.sql("SHOW TABLES IN yard").collect()
    return {
        "schemas": sorted(d.name for d in spark.catalog.listDatabases()),
        "tables": sorted((t.tableName, t.isTemporary) for t in tables),
        "views": spark.sql("SHOW CREATE TABLE yard.seen").first()[0],
        "functions": sorted(f.name for f in spark.catalog.listFunctions() if f.namespace or f.isTemporary),
        "conf": dict(sorted(spark.conf.getAll.items())),
        "schema": spark.catalog.currentDatabase(),
        "rows": sorted(map(tuple, spark.table("yard.src").collect()), key=repr),
        "versions": [spark.sql(f"DESCRIBE HISTORY yard.{t}").count() for t in ("src", "counts")],
        "columns": spark.table("yard.src").columns,
    }


def test_what_is_not_one_query_is_refused_and_does_nothing(spark, yard, warehouse_folder):
    before = everything(spark)
    folder = warehouse_folder / "yard.db"
    through_create = [(partial(yard.create, "made"), text) for text in HOSTILE[::4]]  # the same way in, but slower
    for door, text in [(yard.validate, text) for text in HOSTILE] + through_create:
        with pytest.raises(DefinitionError) as error:
            door(text.replace("{folder}", str(folder)))
        assert error.value.code in ("NOT_A_QUERY", "BAD_SQL"), text
        assert error.value.hint, text
    assert everything(spark) == before
    assert not (folder / "out").exists()
    assert not (folder / "made").exists()


def test_a_stored_definition_is_parsed_as_strictly(spark, yard):
    yard.create("doctored", COUNTS)
    before = everything(spark)["rows"]
    for change, code in (
        ({"query": "BEGIN DROP TABLE src; SELECT 1 AS a; END"}, "NOT_A_QUERY"),
        ({"query": "EXECUTE IMMEDIATE 'DELETE FROM src'"}, "NOT_A_QUERY"),
        ({"settings": {"spark.sql.catalog.evil": "java.lang.Runtime"}}, "BAD_DEFINITION"),
    ):
        _doctor(spark, "doctored", change)
        with pytest.raises(TrickleError) as error:
            yard.refresh("doctored", full=True)
        assert (error.value.code, bool(error.value.hint)) == (code, True)
    assert everything(spark)["rows"] == before
    yard.drop("doctored")


def _doctor(spark, table, change):
    text = spark.sql(f"SHOW TBLPROPERTIES {table} ('trickle.definition')").first()["value"]
    changed = json.dumps({**json.loads(text), **change}).replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('trickle.definition' = '{changed}')")


def test_queries_of_every_form_pass(yard):
    for text in (
        "TABLE src",
        "VALUES (1), (2)",
        "SELECT a FROM src;",
        "FROM src SELECT a",
        "FROM src |> WHERE a > 1 |> SELECT a |> ORDER BY a",
        "SELECT * FROM IDENTIFIER('src')",
        "SELECT IDENTIFIER('a') FROM src",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT a, (SELECT max(a) FROM src) AS m FROM src WHERE EXISTS (SELECT 1 FROM seen WHERE seen.a = src.a)",
        "SELECT * FROM (SELECT a, b FROM src) PIVOT (count(*) FOR b IN ('x', 'y'))",
        "SELECT /*+ BROADCAST(src) */ a FROM src TABLESAMPLE (50 PERCENT) DISTRIBUTE BY a SORT BY a",
        "SELECT a, sum(a) OVER w AS s FROM src WINDOW w AS (PARTITION BY b)",
        "SELECT x FROM src LATERAL VIEW explode(array(a)) AS x",
        "(SELECT a FROM src) EXCEPT ALL (SELECT 1) ORDER BY 1 LIMIT ALL",
        "SELECT a FROM src VERSION AS OF 0",
    ):
        yard.validate(text)


def test_names_of_columns_do_not_meet_those_of_trickle(spark, yard):
    spark.sql("CREATE TABLE odd (__weight BIGINT, __rows INT, __id STRING, __w INT) USING delta")
    spark.sql("INSERT INTO odd VALUES (1, 2, 'a', 4)")
    for query in (
        "SELECT a AS __weight FROM src",
        "SELECT __weight AS w FROM odd",
        "SELECT sum(__Weight) AS w FROM odd",
    ):
        for door in (yard.validate, partial(yard.create, "made")):
            with pytest.raises(DefinitionError) as error:
                door(query)
            assert error.value.code == "RESERVED_COLUMN"
    for name, query in (
        ("odd1", "SELECT __rows, __id, __w, 1.5D * __w AS c0 FROM odd"),
        ("odd2", "SELECT __rows AS __copy, sum(__w) AS __nth, max(__id) AS t0 FROM odd GROUP BY __rows"),
        ("odd3", "SELECT o.__id, s.a AS __gone FROM odd o LEFT JOIN src s ON s.a = o.__rows ORDER BY o.__w LIMIT 9"),
    ):
        table = yard.create(name, query, mode="differential")
        spark.sql("INSERT INTO odd VALUES (1, 2, 'b', 5), (1, 1, NULL, 7)")
        spark.sql("DELETE FROM odd WHERE __id = 'a'")
        assert table.refresh().mode == "differential"
        assert table.verify()
        table.drop()


@pytest.mark.parametrize("query", [None, 7, b"SELECT 1", ["SELECT 1"], {"a": 1}, object()])
def test_what_is_neither_text_nor_a_dataframe_is_no_query(yard, query):
    for door in (yard.validate, lambda q: yard.create("made", q)):
        with pytest.raises(DefinitionError) as error:
            door(query)
        assert error.value.code == "NOT_A_QUERY"


def test_a_query_nested_too_deep_is_named(yard):
    for text in (
        "SELECT " + "NOT " * 3000 + "true AS a",
        "SELECT * FROM " + "(SELECT * FROM " * 300 + "src" + ")" * 300,
        "SELECT 1" + "+ a" * 1500 + " AS x FROM src",
    ):
        with pytest.raises(DefinitionError) as error:
            yard.create("deep", text)
        assert error.value.code == "TOO_DEEP"


# -- the constructor


def test_arguments_of_trickle_are_checked(spark):
    for given, code in (
        ({"stored_plans": "no"}, "BAD_OPTION"),
        ({"disable": "speed"}, "UNKNOWN_OPTION"),
        ({"disable": [1]}, "BAD_OPTION"),
        ({"disable": 1}, "BAD_OPTION"),
        ({"disable": ["speed"]}, "UNKNOWN_OPTION"),
    ):
        with pytest.raises(DefinitionError) as error:
            Trickle(spark, **given)
        assert error.value.code == code
    with pytest.raises(TrickleError) as error:
        Trickle(None)
    assert error.value.code == "NOT_A_SESSION"


def test_arguments_of_verbs_are_checked(yard):
    for at in (5, {"src": "1"}, {1: 1}, ["src"], {"src": True}):
        with pytest.raises(DefinitionError) as error:
            yard.refresh("counts", at=at)
        assert error.value.code == "BAD_OPTION"
    for given in ({"foreign_key": 7}, {"foreign_key": ["a"]}, {"primary_key": 7}, {"foreign_key": {"a": 7}}):
        with pytest.raises(TrickleError):
            yard.declare("src", **given)
    for name in (None, 7, b"src", "src; DROP TABLE src", "src SET TBLPROPERTIES ('a'='b')", "nowhere.src"):
        with pytest.raises(TrickleError):
            yard.declare(name, primary_key="a")


# -- errors of Spark


def test_errors_of_spark_come_wrapped_with_their_condition(spark, yard, warehouse_folder):
    with pytest.raises(SparkError) as error:
        yard.create("nowhere.made", "SELECT a FROM src")
    assert (error.value.code, error.value.__cause__ is not None) == ("SCHEMA_NOT_FOUND", True)

    spark.sql("CREATE TABLE risky (a INT, d INT) USING delta")
    spark.sql("INSERT INTO risky VALUES (1, 1)")
    yard.create("quotients", "SELECT a / d AS q FROM risky", mode="differential")
    before = spark.table("quotients").collect()
    spark.sql("INSERT INTO risky VALUES (1, 0)")
    with pytest.raises(SparkError) as error:
        yard.refresh("quotients")
    assert error.value.code == "DIVIDE_BY_ZERO"
    assert "quotients" in error.value.message
    assert error.value.hint
    assert spark.table("quotients").collect() == before

    spark.sql("DROP TABLE risky")
    with pytest.raises(TrickleError) as error:
        yard.refresh("quotients")
    assert error.value.code == "SOURCE_MISSING"
    with pytest.raises(TrickleError) as error:
        Trickle(spark).refresh("quotients")
    assert error.value.code == "BAD_SQL"
    yard.drop("quotients")
    assert not (warehouse_folder / "yard.db" / "quotients").exists()


def test_a_file_that_cannot_be_read_is_named(spark, yard, warehouse_folder):
    spark.sql("CREATE TABLE worn (a INT) USING delta")
    spark.sql("INSERT INTO worn VALUES (1)")
    yard.create("sound", "SELECT a, count(*) AS n FROM worn GROUP BY a")
    spark.sql("INSERT INTO worn VALUES (2)")
    for file in (warehouse_folder / "yard.db" / "worn").glob("*.parquet"):
        file.write_bytes(b"nothing that Parquet knows")
    for door in (yard.refresh, lambda name: yard.refresh(name, full=True), yard.verify):
        with pytest.raises(SparkError) as error:
            door("sound")
        assert error.value.hint
        assert error.value.__cause__ is not None
    yard.drop("sound")


# -- definitions


def test_a_garbled_definition_hides_one_table_only(spark, yard, caplog):
    yard.create("garbled", COUNTS)
    spark.sql("ALTER TABLE garbled SET TBLPROPERTIES ('trickle.definition' = '{not json')")

    with caplog.at_level(logging.WARNING, logger="trickle"):
        names = [t.name for t in yard.tables()]
    assert "yard.counts" in names
    assert "yard.garbled" not in names
    assert "BAD_DEFINITION" in caplog.text
    for door in (yard.refresh, lambda name: yard.refresh(name, full=True), yard.verify, yard.explain, yard.table):
        with pytest.raises(StateError) as error:
            door("garbled")
        assert (error.value.code, bool(error.value.hint)) == ("BAD_DEFINITION", True)
    yard.drop("garbled")
    assert not spark.catalog.tableExists("yard.garbled")


def test_a_log_that_cannot_be_read_hides_one_table_only(spark, yard, warehouse_folder, caplog):
    yard.create("torn", COUNTS)
    log = warehouse_folder / "yard.db" / "torn" / "_delta_log"
    newest = max(log.glob("*.json"))
    (log / f"{int(newest.stem) + 1:020d}.json").write_bytes(b'{"commitInfo":{"tim')

    with caplog.at_level(logging.WARNING, logger="trickle"):
        names = [t.name for t in Trickle(spark).tables()]
    (log / f"{int(newest.stem) + 1:020d}.json").unlink()
    yard.drop("torn")
    assert "yard.counts" in names
    assert "yard.torn" not in names
    assert "yard.torn" in caplog.text


def test_a_copy_is_an_ordinary_table_until_it_is_adopted(spark, yard):
    spark.sql("CREATE TABLE cloned SHALLOW CLONE counts")
    spark.sql("CREATE TABLE alike LIKE counts")
    assert {t.name for t in yard.tables()} & {"yard.cloned", "yard.alike"} == set()
    for name in ("cloned", "alike"):
        for door in (yard.refresh, yard.verify, yard.explain, yard.drop, yard.table):
            with pytest.raises(UnknownTableError) as error:
                door(name)
            assert (error.value.code, f"adopt('yard.{name}')" in error.value.hint) == ("COPY_OF_STREAM_TABLE", True)

        table = yard.adopt(name)
        assert table.refresh().mode == "full"
        assert table.refresh().mode == "no_data"
        assert table.verify()
        assert yard.adopt(name).query == COUNTS  # again changes nothing
    assert yard.verify("counts")
    assert {"yard.cloned", "yard.alike", "yard.counts"} <= {t.name for t in yard.tables()}
    with pytest.raises(UnknownTableError):
        yard.adopt("src")
    yard.drop("cloned")
    yard.drop("alike")
    assert yard.verify("counts")


def test_a_table_replaced_by_a_clone_of_another_is_not_refreshed_as_that(spark, yard):
    yard.create("victim", "SELECT a FROM src")
    spark.sql("DELETE FROM victim")
    spark.sql("CREATE OR REPLACE TABLE victim SHALLOW CLONE counts")
    with pytest.raises(UnknownTableError) as error:
        yard.refresh("victim")
    assert error.value.code == "COPY_OF_STREAM_TABLE"
    spark.sql("DROP TABLE victim")
