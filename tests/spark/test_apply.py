"""A set of definitions as the truth."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from trickle import DefinitionError, Spec, Trickle

A = "SELECT day, sum(amount) AS total FROM sales GROUP BY day"
B = "WITH a AS (SELECT * FROM daily) SELECT day FROM a WHERE total > (SELECT avg(total) FROM applied.daily)"


@pytest.fixture
def t(spark):
    spark.sql("CREATE DATABASE applied")
    spark.sql("USE applied")
    spark.sql("CREATE TABLE sales (day STRING, amount INT) USING delta")
    spark.sql("INSERT INTO sales VALUES ('mon', 5), ('mon', 7), ('tue', 1)")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE applied CASCADE")


def actions(plan):
    return {step.name.removeprefix("applied."): step.action for step in plan.steps}


def test_the_set_is_the_truth(t, spark):
    # In the wrong order, and dry: the queries tell who reads whom.
    wanted = {"best": B, "daily": Spec("daily", A, schedule="1m", options={"owner": "ann"})}
    dry = t.apply(wanted, dry_run=True)
    assert list(actions(dry)) == ["daily", "best"]
    assert t.tables() == []
    assert actions(t.apply(wanted)) == {"daily": "create", "best": "create"}
    assert t.table("daily").schedule == "1m"
    assert actions(t.apply(wanted)) == {"daily": "nothing", "best": "nothing"}

    exported = t.export()
    assert actions(t.apply(exported)) == {"daily": "nothing", "best": "nothing"}
    assert actions(t.apply(t.export(format="sql"))) == {"daily": "nothing", "best": "nothing"}
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        t.export(format="yaml")

    more = A.replace("AS total", "AS total, max(amount) AS most")
    wanted = {"daily": Spec("daily", more, options={"owner": "bob"}), "high": "SELECT most FROM daily"}
    plan = t.apply(wanted, dry_run=True)
    assert actions(plan) == {"daily": "query", "high": "create", "best": "left"}
    assert "about" in str(plan)
    assert actions(t.apply(wanted)) == {"daily": "query", "high": "create", "best": "left"}
    assert t.table("daily").options.owner == "bob"
    spark.sql("INSERT INTO sales VALUES ('wed', 9)")
    run = t.refresh_all()
    assert run
    assert {report.mode for report in run.tables.values()} == {"differential"}
    assert all(t.verify(table.name) for table in t.tables())

    # Back to the exported set, from another schema, without the rest.
    spark.sql("USE default")
    back = t.apply(exported, prune=True)
    assert actions(back) == {"daily": "evolve", "best": "nothing", "high": "drop"}
    spark.sql("USE applied")
    assert Counter(table.name for table in t.tables()) == Counter(["applied.best", "applied.daily"])
    assert t.refresh_all()
    assert all(t.verify(table.name) for table in t.tables())


def test_bad_sets_change_nothing(t, spark):
    t.apply({"daily": A})
    stood = t.export()
    wrong = [
        ({"x": "SELECT * FROM y", "y": "SELECT * FROM x"}, "CYCLE"),
        ({"daily": "SELECT count(*) AS n FROM daily"}, "CYCLE"),
        ({"ok": A, "bad": "SELECT nothing FROM sales"}, "BAD_SQL"),
        ({"ok": A, "bad": "DROP TABLE sales"}, "NOT_A_QUERY"),
        ({"ok": A, "sales": "SELECT 1 AS one"}, "NAME_TAKEN"),
        ([Spec("ok", A), Spec("ok", A)], "DUPLICATE_NAME"),
        ([Spec("ok", A), Spec("applied.ok", A)], "DUPLICATE_NAME"),
        ("SELECT 1 AS one", "BAD_DEFINITIONS"),
        ([Spec("ok", A, schedule="often")], "BAD_SCHEDULE"),
        ([Spec("ok", A, options={"colour": "red"})], "UNKNOWN_OPTION"),
        ([Spec("ok", A, options={"partition_by": "moon"})], "BAD_OPTION"),
        ([Spec("ok", A, mode="fast")], "BAD_MODE"),
        (7, "BAD_DEFINITIONS"),
        ("{}", "BAD_DEFINITIONS"),
        (json.dumps({"format": 9, "stream_tables": []}), "BAD_DEFINITIONS"),
    ]
    for definitions, code in wrong:
        with pytest.raises(DefinitionError, match=code):
            t.apply(definitions)
        assert t.export() == stood, code
    t.create("best", B)
    with pytest.raises(DefinitionError, match="STILL_READ"):
        t.apply({"best": B}, prune=True)


def test_what_fails_below_a_new_table_changes_nothing(t, spark):
    t.apply({"old": Spec("old", "SELECT day, total + 0 AS total FROM (SELECT day, amount AS total FROM sales)")})
    stood = t.export()
    wrong = [
        ({"daily": A, "bad": "SELECT nosuch FROM daily"}, "BAD_SQL"),
        ({"daily": A, "bad": "SELECT d.nosuch FROM applied.daily AS d"}, "BAD_SQL"),
        ({"daily": A, "bad": "SELECT day, day FROM daily"}, "DUPLICATE_COLUMN"),
        ({"daily": A, "bad": Spec("bad", "SELECT day FROM daily", options={"partition_by": "total"})}, "BAD_OPTION"),
        ({"daily": A, "bad": Spec("bad", "SELECT rand() AS r FROM daily", mode="differential")}, "NON_DETERMINISTIC"),
        ({"daily": A, "mid": "SELECT day AS d FROM daily", "bad": "SELECT day FROM mid"}, "BAD_SQL"),
        ({"daily": A, "old": "SELECT nosuch FROM daily"}, "BAD_SQL"),
        ({"daily": A, "old": Spec("old", "SELECT day FROM daily", options={"location": "/elsewhere"})}, "BAD_OPTION"),
        ({"daily": "SELECT day FROM old", "old": "SELECT day FROM daily"}, "CYCLE"),
    ]
    for definitions, code in wrong:
        with pytest.raises(DefinitionError, match=code):
            t.apply(definitions)
        assert t.export() == stood, definitions
    assert t.apply(
        {
            "daily": A,
            "best": "SELECT daily.day FROM applied.daily WHERE daily.total > 1 AND applied.daily.day <> 'sun'",
            "cte": "WITH daily AS (SELECT * FROM applied.daily) SELECT total FROM daily",
        }
    )


def test_a_set_may_turn_who_reads_whom_around(t, spark):
    t.apply({"base": A, "top": "SELECT day, total FROM base"})

    plan = t.apply({"top": A, "base": "SELECT day, total FROM top WHERE total > 0"})

    assert actions(plan) == {"top": "query", "base": "query"}
    assert all(t.verify(name) for name in ("base", "top"))


def test_what_the_set_no_longer_reads_is_pruned(t, spark):
    t.apply({"low": A, "high": "SELECT day FROM low"})

    plan = t.apply({"high": "SELECT day FROM sales"}, prune=True)

    assert actions(plan) == {"high": "query", "low": "drop"}
    assert [table.name for table in t.tables()] == ["applied.high"]


def test_what_the_set_will_read_is_not_pruned_halfway(t, spark):
    t.apply({"low": A, "high": "SELECT day FROM sales"})
    stood = t.export()

    with pytest.raises(DefinitionError, match="STILL_READ"):
        t.apply({"high": "SELECT day FROM low"}, prune=True)

    assert t.export() == stood


def test_a_cycle_is_told_with_its_path(t, spark):
    t.apply({"one": A, "two": "SELECT * FROM one", "three": "SELECT * FROM two"})

    with pytest.raises(DefinitionError) as caught:
        t.alter("one", "SELECT day, total FROM three")

    assert caught.value.code == "CYCLE"
    assert "applied.one reads applied.three reads applied.two reads applied.one" in caught.value.message
