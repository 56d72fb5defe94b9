"""Definitions by DataFrames are Java objects in a table's property: what is read back is a plan, and nothing else."""

from __future__ import annotations

import base64
import json

import pytest

from trickle import DefinitionError, Options, Trickle
from trickle.catalyst.freeze import thaw
from trickle.catalyst.jvm import Jvm


@pytest.fixture(scope="module")
def store(spark):
    spark.sql("CREATE DATABASE store")
    spark.sql("USE store")
    spark.sql("CREATE TABLE src (a INT, b STRING) USING delta")
    spark.sql("INSERT INTO src VALUES (1,'x'),(2,'y')")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE store CASCADE")


def serial(jvm, thing):
    buffer = jvm.cls("java.io.ByteArrayOutputStream")()
    jvm.cls("java.io.ObjectOutputStream")(buffer).writeObject(thing)
    return base64.b64encode(bytes(buffer.toByteArray())).decode()


def test_objects_that_no_plan_is_made_of_are_refused(spark, store):
    jvm = Jvm(spark)
    parser = spark._jsparkSession.sessionState().sqlParser()
    queue = jvm.cls("java.util.PriorityQueue")(1)
    held = jvm.cls("java.util.ArrayList")()
    held.add(jvm.cls("java.net.URL")("http://127.0.0.1:9/"))
    for hostile, named in (
        (queue, "java.util.PriorityQueue"),
        (held, "java.net.URL"),
        (jvm.cls("java.lang.RuntimeException")("x"), "java.lang.RuntimeException"),
        (jvm.cls("java.lang.Class").forName("java.lang.Runtime"), ""),
        (parser.parsePlan("DROP TABLE src"), "DropTable"),
        (parser.parsePlan("USE default"), "SetCatalogAndNamespace"),
    ):
        with pytest.raises(DefinitionError) as error:
            thaw(jvm, serial(jvm, hostile), spark.version)
        assert (error.value.code, bool(error.value.hint)) == ("PLAN_REFUSED", True), named
        assert named in error.value.message
    for garbled in ("", "not base64!", "AAAA", serial(jvm, "a text"), serial(jvm, held.getClass().getName())):
        with pytest.raises(DefinitionError) as error:
            thaw(jvm, garbled, spark.version)
        assert error.value.code == "UNREADABLE_PLAN", garbled
    assert spark.catalog.tableExists("store.src")


def test_a_plan_with_a_projection_of_no_columns_is_read_again(spark, store):
    store.create("constant", spark.sql("SELECT a, b FROM src UNION SELECT 7, 'seven'"), mode="differential")
    spark.sql("INSERT INTO src VALUES (3,'z')")
    again = Trickle(spark)
    assert again.refresh("constant").mode == "differential"
    assert again.verify("constant")
    store.drop("constant")


def test_a_hostile_property_ends_in_a_named_error(spark, store):
    store.create("planned", spark.table("src").groupBy("b").count())
    text = spark.sql("SHOW TBLPROPERTIES planned ('trickle.definition')").first()["value"]
    jvm = Jvm(spark)
    changed = json.dumps({**json.loads(text), "plan": serial(jvm, jvm.cls("java.util.PriorityQueue")(1))})
    spark.sql(f"ALTER TABLE planned SET TBLPROPERTIES ('trickle.definition' = '{changed}')")
    with pytest.raises(DefinitionError) as error:
        store.refresh("planned")
    assert error.value.code == "PLAN_REFUSED"
    store.drop("planned")


def test_stored_plans_can_be_refused_altogether(spark, store):
    from pyspark.sql import functions as f

    shout = f.udf(lambda text: text.upper(), "string")
    frame = spark.table("src").select("a", shout("b").alias("loud"))
    store.create("loud", frame)
    careful = Trickle(spark, stored_plans=False)
    spark.sql("DECLARE OR REPLACE VARIABLE least INT DEFAULT 1")

    by_options = Trickle(spark, options=Options(stored_plans=False))

    for door in (
        lambda: careful.refresh("loud"),
        lambda: by_options.refresh("loud"),
        lambda: careful.verify("loud"),
        lambda: careful.create("louder", frame),
        lambda: careful.create("louder", "SELECT a FROM src WHERE a > least"),
    ):
        with pytest.raises(DefinitionError) as error:
            door()
        assert (error.value.code, bool(error.value.hint)) == ("STORED_PLAN_REFUSED", True)
    assert careful.create("quiet", "SELECT a FROM src").refresh().mode == "no_data"
    assert "store.loud" in [t.name for t in careful.tables()]
    assert Trickle(spark).verify("loud")
    careful.drop("loud")
    careful.drop("quiet")
    spark.sql("DROP TEMPORARY VARIABLE least")
