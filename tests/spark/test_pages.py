"""The code of README, the tutorial and some how-to pages runs, and does what its comments say."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.unit.cli.command import environment, pipe

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
ORDERS = """
import trickle
spark = trickle.local_session(warehouse="howto")
t = trickle.Trickle(spark)
spark.sql("CREATE TABLE orders (id INT, day DATE, amount DECIMAL(10, 2)) USING delta")
spark.sql("INSERT INTO orders VALUES (1, DATE'2026-01-01', 19.90), (2, DATE'2026-01-02', 5.00)")
"""
FULL_BEFORE = """
t.drop("daily_revenue")
query = "SELECT day, sum(amount) AS revenue FROM orders GROUP BY day"
spark.sql(f"CREATE TABLE daily_revenue USING delta AS {query}")
"""


def blocks(page, *languages):
    text = page.read_text(encoding="utf-8")
    return [
        block
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if language in languages
    ]


def checked(page):
    """The Python of a page; what a comment beside an expression says is asserted."""
    return "\n".join("\n".join(map(_checked_line, block.splitlines())) for block in blocks(page, "python"))


def _checked_line(line):
    code, _, comment = line.partition("  # ")
    try:
        value = _value(comment)
        ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return line
    return f"{code[: len(code) - len(code.lstrip())]}says(({code.strip()}), {value!r}, {comment!r})"


def _value(comment):
    """The value that a comment begins with; ValueError if it begins with none."""
    if comment.startswith("[StreamTable("):
        return comment
    for text in (comment, comment.partition(": ")[0], comment.partition(" if ")[0]):
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            continue
    raise ValueError(comment)


SAYS = """
checks = 0
def says(found, wanted, comment):
    global checks
    checks += 1
    assert found == wanted or repr(found) == wanted, f"{found!r} is not {comment}"
"""


#: The blocks of the shell that no test runs as they are, by their first lines, and why.
NOT_RUN = {
    "make demo": "sets an environment up; tests/spark/test_projects.py runs the same demo",
    "make setup": "makes the environment that the tests run in",
    "trickle run --warehouse warehouse": "goes on until Ctrl-C; tests/spark/test_command.py drives it",
}
QUICK_START = "pip install ."


def first_line(block):
    return block.splitlines()[0].partition("  #")[0].strip()


def test_every_block_of_the_readme_and_the_tutorial_is_run_or_said_not_to_be():
    unseen = dict(NOT_RUN)
    for page in (ROOT / "README.md", TUTORIAL):
        fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences[::2]) <= {"python", "console", "text"}, page
        for block in blocks(page, "console"):
            assert first_line(block) == QUICK_START or unseen.pop(first_line(block), None), (page, first_line(block))
    assert not unseen


def quick_start():
    """The commands that README begins with, after the installation."""
    (block,) = [block for block in blocks(ROOT / "README.md", "console") if first_line(block) == QUICK_START]
    return block.partition("\n")[2]


def check_status(shown):
    """See that a status of all tables that were created ends what the commands said."""
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    head = max(at for at, words in enumerate(lines) if words[:2] == ["TABLE", "HEALTH"])
    created = [words[1] for words in lines if words[0] == "create"]
    assert len(created) > 2
    assert sorted(words[0] for words in lines[head + 1 :]) == sorted(created)
    assert {words[1] for words in lines[head + 1 :]} <= {"ok", "behind"}


@pytest.mark.slow
def test_the_quick_start_leads_from_init_to_status(tmp_path):
    env = environment()
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", quick_start()], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300
    )

    assert done.returncode == 0, done.stderr[-3000:]
    check_status(done.stdout)


@pytest.mark.slow
def test_python_blocks_run_and_say_the_truth(tmp_path):
    script = "\n".join(
        [
            *(SAYS, checked(ROOT / "README.md"), "t.drop('daily_revenue'); spark.stop()"),
            *(checked(TUTORIAL), "spark.stop()"),
            *(ORDERS, checked(DOCS / "how-to" / "use-sql.md"), checked(DOCS / "how-to" / "tune.md")),
            *(FULL_BEFORE, checked(DOCS / "how-to" / "migrate-from-full-refresh.md")),
            *("t.drop('daily_revenue')", checked(DOCS / "how-to" / "migrate-from-dbt-incremental.md")),
            "print('checks', checks)",
        ]
    )
    (tmp_path / "pages.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "pages.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    for shown in (block for page in (ROOT / "README.md", TUTORIAL) for block in blocks(page, "text")):
        assert shown.strip() in done.stdout, shown
    (checks,) = re.findall(r"^checks (\d+)$", done.stdout, re.MULTILINE)
    assert int(checks) >= 15


def commands():
    pages = [
        ROOT / "README.md",
        TUTORIAL,
        *sorted((DOCS / "how-to").glob("*.md")),
        *sorted((DOCS / "reference").glob("*.md")),
    ]
    for page in pages:
        for block in blocks(page, "console"):
            for line in block.splitlines():
                yield page, line.removeprefix("$ ").partition("  #")[0].strip()


def test_commands_on_pages_are_ones():
    from trickle.cli.main import app

    group = typer.main.get_command(app)
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    known = 0
    for page, line in commands():
        words = shlex.split(re.sub(r"[|>].*", "", line)) if line.startswith(("trickle ", "make ")) else []
        if not words or any("[" in word or word == "COMMAND" for word in words):
            continue
        if words[0] == "make":
            assert words[1] in targets, (page, line)
        else:
            _read_command(group, words[1:], (page, line))
        known += 1

    assert known > 20


def _read_command(group, words, where):
    """Read a command as the shell would, without doing anything."""
    context = group.make_context("trickle", list(words))
    rest = [*context._protected_args, *context.args]
    name, command, given = group.resolve_command(context, rest)
    assert command is not None, where
    with command.make_context(name, list(given), parent=context) as own:
        assert not own.args, where


@pytest.mark.parametrize("verb", ["status", "tables", "lineage"])
def test_what_reads_only_logs_runs_as_the_pages_say(tmp_path, verb):
    (tmp_path / "warehouse").mkdir()

    assert pipe(verb, "--format", "json", cwd=tmp_path).code == 0
