"""Projects over a real session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.command import Terminal, environment, pipe
from trickle import Trickle, TrickleError
from trickle.project.load import open_project
from trickle.project.work import Work

if TYPE_CHECKING:
    from pathlib import Path

FEW = ("--conf", "spark.driver.memory=1g", "--master", "local[1]")

# Each reads what comes after it by name, across the kinds of files, and with and without its schema.
FILES = {
    "a.sql": "-- trickle: {schedule: 1m, tags: {team: sales}}\nSELECT week, projects.b.top FROM weekly CROSS JOIN projects.b",
    "b.sql": "CREATE STREAM TABLE b REFRESH POLICY INCREMENTAL STRICT AS SELECT max(total) AS top FROM daily",
    "c.py": """
import trickle

@trickle.stream_table(comment="by week", mode="differential")
def weekly():
    return spark.table("daily").selectExpr("day div 7 AS week", "total").groupBy("week").sum("total")

@trickle.stream_table
def daily():
    return "SELECT day, sum(amount) AS total FROM sales GROUP BY day"
""",
}


@pytest.fixture(scope="module")
def trickle(spark):
    spark.sql("CREATE DATABASE projects")
    spark.sql("USE projects")
    spark.sql("CREATE TABLE sales (day INT, amount INT) USING delta")
    spark.sql("INSERT INTO sales VALUES (1, 5), (1, 7), (8, 1)")
    spark.sql("USE default")
    yield Trickle(spark)
    spark.sql("USE default")
    spark.sql("DROP DATABASE projects CASCADE")


def make(folder: Path, files: dict[str, str], more: str = "") -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "trickle.yml").write_text(f"name: a\ndefaults: {{schema: projects, schedule: 5m, owner: ann}}\n{more}")
    return folder / "trickle.yml"


def entered(trickle: Trickle, file: Path) -> Work:
    work = Work(trickle, open_project(file))
    work.enter()
    return work


def actions(plan) -> dict[str, str]:
    return {step.name.removeprefix("projects."): step.action for step in plan.steps}


def test_a_project_is_planned_applied_and_changed(trickle, spark, tmp_path):
    work = entered(trickle, make(tmp_path, FILES))
    assert actions(work.plan()) == {"daily": "create", "weekly": "create", "b": "create", "a": "create"}
    assert trickle.tables() == []

    assert set(actions(work.apply()).values()) == {"create"}
    assert sorted(map(tuple, spark.table("a").collect())) == [(0, 12), (1, 12)]
    a, weekly = trickle.table("a"), trickle.table("weekly")
    assert (a.schedule, a.options.owner, a.options.tags) == ("1m", "ann", {"team": "sales"})
    assert (weekly.schedule, weekly.mode, weekly.options.comment, weekly.query) == (
        "5m",
        "differential",
        "by week",
        None,
    )
    assert set(actions(work.apply()).values()) == {"nothing"}
    assert [view for view in spark.catalog.listTables() if view.isTemporary] == []

    spark.sql("INSERT INTO sales VALUES (9, 100)")
    report = trickle.refresh_all()
    assert report
    assert {done.mode for done in report.tables.values()} == {"differential"}
    assert all(trickle.verify(table.name) for table in trickle.tables())

    # A column more in daily, and a reader of it in Python: neither is there yet when all is checked.
    more = FILES["c.py"].replace("AS total", "AS total, count(*) AS n") + (
        '\n@trickle.stream_table\ndef counts():\n    return spark.table("daily").select("day", "n")\n'
    )
    work = entered(trickle, make(tmp_path, FILES | {"c.py": more}))
    found = actions(work.plan())
    assert (found["daily"], found["counts"]) == ("query", "create")
    work.apply()
    assert sorted(map(tuple, spark.table("counts").collect())) == [(1, 2), (8, 1), (9, 1)]
    assert all(trickle.verify(table.name) for table in trickle.tables())

    # Comments of columns are options: they are set in place, stay with another query, and are taken away.
    b = "CREATE STREAM TABLE b (n COMMENT 'how many') AS SELECT count(*) FROM sales"
    work = entered(trickle, make(tmp_path, FILES | {"c.py": more, "d.sql": b.replace("TABLE b", "TABLE d")}))
    assert actions(work.apply())["d"] == "create"
    assert spark.table("d").schema["n"].metadata == {"comment": "how many"}
    b = b.replace("how many", "all").replace("TABLE b", "TABLE d")
    assert actions(entered(trickle, make(tmp_path, {"d.sql": b})).apply())["d"] == "options"
    assert spark.table("d").schema["n"].metadata == {"comment": "all"}
    trickle.alter("d", "SELECT count(*) AS n, max(day) AS day FROM sales")
    assert spark.table("d").schema["n"].metadata == {"comment": "all"}
    b = b.replace(" COMMENT 'all'", "")
    entered(trickle, make(tmp_path, {"d.sql": b})).apply()
    assert not spark.table("d").schema["n"].metadata.get("comment")

    (tmp_path / "d.sql").unlink()
    (tmp_path / "a.sql").unlink()
    assert actions(entered(trickle, tmp_path / "trickle.yml").plan())["a"] == "left"
    assert actions(entered(trickle, tmp_path / "trickle.yml").apply(prune=True))["a"] == "drop"


def test_another_process_finds_nothing_to_do(trickle, spark, tmp_path):
    best = """
import trickle
from pyspark.sql import functions as F

@trickle.stream_table
def best():
    return spark.table("by_day").orderBy(F.desc("total"), "day").limit(2)

@trickle.stream_table
def by_day():
    return spark.table("sales").groupBy("day").agg(F.sum("amount").alias("total"))
"""
    file = make(tmp_path, {"best.py": best})
    entered(trickle, file).apply()

    found = actions(entered(Trickle(spark), file).plan())
    assert (found["best"], found["by_day"]) == ("nothing", "nothing")


def test_validation_tells_of_each_table(trickle, tmp_path):
    files = {
        "good.sql": "SELECT day FROM sales",
        "over.sql": "SELECT day FROM good WHERE day > 1",
        "full.sql": "SELECT day, rand() AS r FROM sales",
        "strict.sql": "-- trickle: {mode: differential}\nSELECT day, rand() AS r FROM good",
        "lost.py": "import trickle\n@trickle.stream_table\ndef lost():\n    return spark.sql('SELECT rand() AS r FROM sales')",
    }
    found = entered(trickle, make(tmp_path, files)).validate()

    answers = {name.removeprefix("projects."): getattr(one, "code", None) or bool(one) for name, one in found.items()}
    assert answers == {
        "good": True,
        "over": True,
        "full": False,
        "strict": "NON_DETERMINISTIC",
        "lost": "NON_DETERMINISTIC",
    }
    assert "strict.sql:2" in found["projects.strict"].message
    assert "projects.good" not in {table.name for table in trickle.tables()}


WRONG = {
    "a cycle of SQL and Python": (
        {
            "a.sql": "SELECT * FROM b",
            "b.py": "import trickle\n@trickle.stream_table\ndef b():\n    return spark.table('a')",
        },
        "CYCLE",
        "a (a.sql:1) reads b (b.py:2) reads a (a.sql:1)",
    ),
    "a table that reads itself": ({"a.sql": "SELECT 1 AS x FROM a"}, "CYCLE", "a (a.sql:1) reads a (a.sql:1)"),
    "SQL that is none": ({"a.sql": "SELECT day\nFROM sales\nWHERE ((day > 1"}, "BAD_SQL", "a.sql:3"),
    "a column that is not there": ({"a.sql": "SELECT\n  dya\nFROM sales"}, "BAD_SQL", "a.sql:2"),
    "a table that is not there": ({"a.sql": "SELECT * FROM nothing"}, "BAD_SQL", "a.sql:1"),
    "a command": ({"a.sql": "-- trickle: {}\nTABLE sales; DROP TABLE sales"}, "NOT_A_QUERY", "a.sql:2"),
    "a column of another table of the project": (
        {"a.sql": "SELECT day FROM sales", "b.sql": "SELECT total FROM a"},
        "BAD_SQL",
        "b.sql:1",
    ),
    "a function that fails": (
        {"a.py": "import trickle\n@trickle.stream_table\ndef a():\n    return spark.table('sales').select(missing)"},
        "BAD_PYTHON",
        "a.py:4: NameError",
    ),
    "a function that gives nothing": (
        {"a.py": "import trickle\n@trickle.stream_table\ndef a():\n    pass"},
        "BAD_PYTHON",
        "a.py:2: the function gives a NoneType",
    ),
    "a policy that is not kept": (
        {"a.sql": "CREATE STREAM TABLE a REFRESH POLICY INCREMENTAL AS\nSELECT rand() AS r FROM sales"},
        "NON_DETERMINISTIC",
        "a.sql:2",
    ),
    "a layout that does not fit": (
        {"a.sql": "SELECT day FROM sales", "b.sql": "-- trickle: {partition_by: moon}\nSELECT day FROM a"},
        "BAD_OPTION",
        "b.sql:2",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_project_changes_nothing(trickle, spark, tmp_path, what):
    files, code, message = WRONG[what]
    work = entered(trickle, make(tmp_path, files))
    before = {table.name for table in spark.catalog.listTables()}

    with pytest.raises(TrickleError) as raised:
        work.apply()

    assert raised.value.code == code
    assert message in raised.value.message
    assert "\n" not in str(raised.value)
    assert {table.name for table in spark.catalog.listTables()} == before


# -- the command


@pytest.mark.slow
def test_apply_on_a_terminal_shows_what_it_does(tmp_path):
    assert pipe("init", tmp_path / "shop").code == 0
    arguments = ("apply", "--project", tmp_path / "shop", *FEW)
    terminal = Terminal(*arguments, env=environment(COLUMNS="200"))
    terminal.read_until("Starting Spark")

    assert terminal.end() == 0
    assert "Computing default.daily_revenue" in terminal.screen
    assert "4 changes." in terminal.screen
    assert "Traceback" not in terminal.screen
    status = pipe("status", "--format", "json", cwd=tmp_path / "shop")
    assert {table["health"] for table in status.json["tables"]} == {"ok"}
    assert len(status.json["tables"]) == 4


@pytest.mark.slow
def test_the_way_of_a_project_through_pipes(tmp_path):
    shop = tmp_path / "shop"
    assert pipe("init", shop).code == 0

    def run(*arguments: str):
        return pipe(*arguments, *FEW, cwd=shop / "tables")

    planned = run("plan", "--check", "--format", "json")
    assert (planned.code, planned.err) == (1, "")
    assert (planned.json["applied"], planned.json["changes"]) == (False, 4)
    assert pipe("status", "--format", "json", cwd=shop).json["tables"] == []
    validated = run("validate", "--format", "json")
    assert (validated.code, validated.json["ok"]) == (0, True)
    assert {table["maintainable"] for table in validated.json["tables"]} == {True}
    applied = run("apply", "--format", "json")
    assert (applied.code, applied.json["applied"]) == (0, True)
    assert run("plan", "--check").code == 0

    from trickle.project.example_data import change_orders

    change_orders(shop / "warehouse")
    refreshed = run("refresh", "--select", "daily_revenue+", "--format", "json")
    assert {table["table"] for table in refreshed.json["tables"]} == {"default.daily_revenue", "default.best_days"}
    assert {table["mode"] for table in refreshed.json["tables"]} == {"differential"}
    looped = run("run", "--for", "10s", "--format", "json")
    assert looped.code == 0
    assert run("verify").code == 0
    (shop / "tables" / "daily_revenue.sql").write_text("SELECT nothing FROM orders")
    wrong = run("apply")
    assert (wrong.code, wrong.out) == (1, "")
    assert "tables/daily_revenue.sql:1" in wrong.err
    assert len(wrong.err.splitlines()) == 1


@pytest.mark.slow
def test_ctrl_c_ends_an_apply_and_leaves_whole_tables(tmp_path):
    assert pipe("init", tmp_path / "shop").code == 0
    terminal = Terminal("apply", "--project", tmp_path / "shop", *FEW, env=environment(COLUMNS="200"))
    terminal.read_until("Computing default.")
    terminal.type("\x03")

    assert terminal.end() == 130
    assert "Traceback" not in terminal.screen
    again = pipe("apply", *FEW, cwd=tmp_path / "shop")
    assert again.code == 0, again
    assert pipe("verify", *FEW, cwd=tmp_path / "shop").code == 0


def test_a_schema_that_stays_empty_is_dropped_again(trickle, spark, tmp_path):
    (tmp_path / "one.sql").write_text("SELECT 1 AS one")
    (tmp_path / "trickle.yml").write_text("name: a\ndefaults: {schema: fresh}")
    work = Work(trickle, open_project(tmp_path / "trickle.yml"))

    with work.inside():
        assert actions(work.plan()) == {"fresh.one": "create"}
    assert not spark.catalog.databaseExists("fresh")
    with work.inside():
        work.apply()
    assert spark.catalog.tableExists("fresh.one")
    spark.sql("USE default")


@pytest.mark.slow
def test_what_only_looks_and_what_is_wrong_leave_no_warehouse(tmp_path):
    (tmp_path / "one.sql").write_text("SELECT 1 AS one")
    (tmp_path / "trickle.yml").write_text("name: a\ndefaults: {schema: fresh}")
    planned = pipe("plan", *FEW, cwd=tmp_path)
    (tmp_path / "two.sql").write_text("SELECT nothing FROM one")
    refused = pipe("apply", *FEW, cwd=tmp_path)

    assert (planned.code, refused.code) == (0, 1), (planned, refused)
    assert "two.sql:1" in refused.err
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.slow
def test_a_terminal_shows_one_display_and_the_plan_once(tmp_path):
    (tmp_path / "one.sql").write_text("SELECT 1 AS one")
    (tmp_path / "trickle.yml").write_text("name: a")
    terminal = Terminal("apply", "--project", tmp_path, *FEW, env=environment(COLUMNS="200"))
    assert terminal.end() == 0, terminal.screen
    again = Terminal("refresh", "--full", "--project", tmp_path, *FEW, env=environment(COLUMNS="200"))
    assert again.end() == 0, again.screen

    assert "Computing default.one (1 of 1 changes)" in terminal.screen
    assert "Refreshing default.one" in again.screen
    for screen in (terminal.screen, again.screen):
        assert "━" not in screen  # the bar of the library
    assert terminal.screen.count("ACTION") == 1


@pytest.mark.slow
def test_the_demo_and_the_doctor(tmp_path):
    shown = pipe("demo", "--orders", "2000", "--format", "json", *FEW, cwd=tmp_path)
    looked = pipe("doctor", "--warehouse", tmp_path, cwd=tmp_path)

    assert (shown.code, shown.json["ok"], len(shown.json["tables"])) == (0, True, 4)
    assert looked.code == 0
    assert "Spark starts, and refreshed a stream table" in looked.out
