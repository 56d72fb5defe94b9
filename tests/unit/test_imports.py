"""What importing the package loads: Spark takes a second, and commands that need none must not wait for it."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import trickle

ROOT = Path(__file__).parents[2]
HEAVY = ("pyspark", "py4j", "pyarrow", "polars", "deltalake", "numpy", "pandas")


def heavy_modules_after(code: str) -> list[str]:
    """Name the heavy packages that a fresh interpreter has loaded after running some code."""
    shown = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("code", ["import trickle", "import trickle; trickle.TrickleError; trickle.RefreshReport"])
def test_importing_the_package_loads_nothing_heavy(code):
    assert heavy_modules_after(code) == []


def test_every_public_name_can_be_imported():
    assert [name for name in trickle.__all__ if not hasattr(trickle, name)] == []
    assert set(trickle.__all__) <= set(dir(trickle))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Trickel'"):
        trickle.Trickel  # noqa: B018


@pytest.mark.parametrize("arguments", ["--help", "status --help", "status", "history totals", "tables", "lineage"])
def test_commands_that_only_look_load_nothing_heavy(tmp_path, arguments):
    code = f"""
        import contextlib, sys
        sys.argv = ["trickle", "--warehouse", {str(tmp_path)!r}, *{arguments.split()!r}]
        from trickle.cli.main import main
        with open("/dev/null", "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            with contextlib.suppress(SystemExit):
                main()
    """
    assert heavy_modules_after(textwrap.dedent(code)) == []


def test_every_part_is_under_the_import_rules():
    """A new module or package has its place among the layers, and is named where rules list all."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    files = [f for f in (ROOT / "src/trickle").iterdir() if f.suffix == ".py" or (f / "__init__.py").exists()]
    parts = {f"trickle.{file.stem}" for file in files if not file.stem.startswith("__")}
    layers, *others = rules
    placed = {part.strip() for layer in layers["layers"] for part in layer.split("|")}
    listed = {rule["name"]: set(rule["source_modules"]) for rule in others}

    assert parts - placed == {"trickle.testing"}
    assert parts - listed["Nothing imports what only tests use"] == {"trickle.testing"}
    assert parts - listed["Only catalyst, tables and some named modules import Spark"] == {
        "trickle.catalyst",
        "trickle.tables",
        "trickle.testing",
    }
    for rule in ("Nothing above tables imports Delta Lake", "Only their registry knows the storages"):
        assert parts - listed[rule] == {"trickle.tables", "trickle.testing"}
    inside = {
        f"trickle.tables.{f.stem}" for f in (ROOT / "src/trickle/tables").iterdir() if not f.stem.startswith("__")
    }
    assert inside - listed["Only their registry knows the storages"] == {"trickle.tables.storage"}
    assert inside - listed["Of tables only the registry knows a format"] == {
        "trickle.tables.delta",
        "trickle.tables.formats",
    }


def test_only_catalyst_looks_into_the_plans_of_spark():
    """Tables read leaves and local relations; everything else asks ``catalyst``."""
    inside = ROOT / "src/trickle"
    words = re.compile(r"queryExecution|executedPlan|optimizedPlan|withCachedData|sqlParser|\boptimizer\(\)")
    found = {str(f.relative_to(inside)) for f in inside.rglob("*.py") if words.search(f.read_text())}

    assert {file for file in found if not file.startswith(("catalyst/", "testing/"))} == {
        "tables/arrow/local.py",
        "tables/arrow/spark.py",
        "tables/delta/create.py",  # the parser, for a name
        "tables/delta/jvm.py",
        "tables/delta/leaf.py",
    }


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_packages_are_listed_in_the_order_of_the_layers(page):
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    place = {part.strip().removeprefix("trickle."): at for at, layer in enumerate(layers) for part in layer.split("|")}
    table = (ROOT / page).read_text().partition("| Package")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| ((?:`[a-z.]+/?`(?:, )?)+) \|", table, flags=re.MULTILINE)
    listed = [name.removesuffix("/").removesuffix(".py") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    places = [place[name] for name in listed if name != "testing"]

    assert set(place) - set(listed) == {"_version"}
    assert places == sorted(places)
