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


E = "org.apache.spark.sql.catalyst.expressions."


def query_of(jvm, expression):
    return jvm.project([jvm.alias(expression, "x")], jvm.one_row())


def test_expressions_that_run_what_they_name_are_refused(spark, store):
    jvm = Jvm(spark)
    types = "org.apache.spark.sql.types."
    anything = jvm.cls(f"{types}ObjectType")(jvm.cls("java.lang.Class").forName("java.lang.Object"))
    text = jvm.singleton(f"{types}StringType")
    strings = jvm.cls("java.lang.Class").forName("java.lang.String")
    of_spark = jvm.cls("java.lang.Class").forName(f"{E}ExpressionImplUtils")
    a, none, lit = jvm.literal("a"), jvm.nil, jvm.literal
    objects = jvm.cls(f"{E}objects.DecodeUsingSerializer")
    class_tag = jvm.singleton("scala.reflect.ClassTag").apply(strings)
    values = lit(bytearray(b"bytes"))
    hostile = {
        "Invoke": jvm.cls(f"{E}objects.Invoke")(a, "getClass", anything, none, none, True, True, True),
        "StaticInvoke": jvm.cls(f"{E}objects.StaticInvoke")(
            strings, text, "valueOf", jvm.seq([a]), none, True, True, True, jvm.none
        ),
        "StaticInvoke of Spark": jvm.cls(f"{E}objects.StaticInvoke")(
            of_spark, text, "getSparkVersion", none, none, True, True, True, jvm.none
        ),
        "NewInstance": jvm.singleton(f"{E}objects.NewInstance").apply(strings, jvm.seq([a]), anything, True),
        "DecodeUsingSerializer": objects(values, class_tag, False),
        "DecodeUsingSerializer of Kryo": objects(values, class_tag, True),
        "InitializeJavaBean": jvm.cls(f"{E}objects.InitializeJavaBean")(
            a, jvm.cls("org.apache.spark.api.python.PythonUtils").toScalaMap(jvm.cls("java.util.HashMap")())
        ),
        "CallMethodViaReflection": jvm.call("java_method", [lit("java.lang.System"), lit("getProperty"), a]),
        "ScalaUDF": jvm.cls(f"{E}ScalaUDF")(
            jvm.singleton("scala.collection.immutable.Nil"), text, jvm.seq([a]), none, jvm.none, jvm.none, True, True
        ),
    }
    for named, expression in hostile.items():
        with pytest.raises(DefinitionError) as error:
            thaw(jvm, serial(jvm, query_of(jvm, expression)), spark.version)
        assert error.value.code == "PLAN_REFUSED", named
        assert named.split()[0] in error.value.message


def test_calls_that_no_function_of_spark_makes_are_refused(spark, store):
    jvm = Jvm(spark)
    typed = jvm.literal(None, jvm.singleton("org.apache.spark.sql.types.StringType"))
    told = {
        "java.lang.System.getProperty": ["java.lang.System", "getProperty", True, True, True],
        "ByteArrayMethods.arrayEquals": [
            "org.apache.spark.unsafe.array.ByteArrayMethods",
            "arrayEquals",
            *[True] * 3,
        ],
        "an object.getClass": [None, "getClass", True, True, True],
        "cannot be read": 7,
        "nothing": [],
    }
    for named, call in told.items():
        parts = [jvm.literal("__trickle_call"), jvm.literal(json.dumps(call)), typed, jvm.literal("user.home")]
        marker = jvm.cls(f"{E}Coalesce")(jvm.seq(parts))
        with pytest.raises(DefinitionError) as error:
            thaw(jvm, serial(jvm, query_of(jvm, marker)), spark.version)
        assert error.value.code == "PLAN_REFUSED", named


def test_functions_that_spark_makes_calls_of_java_methods_are_read_again(spark, store):
    from pyspark.sql import functions as f

    spark.sql("CREATE TABLE texts (a INT, b STRING, u STRING, j STRING) USING delta")
    rows = "(1, 'x y', 'http://a.b/c?d=e', '{\"k\":[1,2]}'), (2, 'ä', 'http://x/', '[3]')"
    spark.sql(f"INSERT INTO texts VALUES {rows}")
    frame = spark.table("texts").select(
        "a",
        f.decode(f.encode("b", "UTF-16"), "UTF-16").alias("same"),
        f.url_decode(f.url_encode("b")).alias("url"),
        f.parse_url("u", f.lit("HOST")).alias("host"),
        f.try_parse_json("j").cast("string").alias("variant"),
        f.to_json(f.struct("a", "b")).alias("json"),
        f.json_array_length("j").alias("length"),
        f.json_object_keys("j").alias("keys"),
        f.is_valid_utf8("b").alias("valid"),
        f.make_valid_utf8("b").alias("made"),
        f.expr("luhn_check(b)").alias("luhn"),
        f.base64(f.encode("b", "UTF-8")).alias("b64"),
        f.lpad(f.encode("b", "UTF-8"), 8, f.encode(f.lit("-"), "UTF-8")).alias("padded"),
        f.startswith(f.encode("b", "UTF-8"), f.encode(f.lit("x"), "UTF-8")).alias("starts"),
        f.xpath_string(f.concat(f.lit("<a>"), "b", f.lit("</a>")), f.lit("a")).alias("xpath"),
        f.bitmap_bit_position("a").alias("bit"),
        f.sentences("b").alias("sentences"),
        f.schema_of_variant(f.try_parse_json("j")).alias("schema"),
        f.make_timestamp_ntz(f.lit(2020), "a", f.lit(1), f.lit(2), f.lit(3), f.lit(4)).cast("string").alias("ntz"),
    )
    store.create("called", frame, mode="differential")
    spark.sql(f"INSERT INTO texts VALUES {rows.replace('(1', '(3').replace('(2', '(4')}")
    again = Trickle(spark)
    assert again.refresh("called").mode == "differential"
    assert again.verify("called").ok
    assert spark.table("called").count() == 4
    store.drop("called")


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
