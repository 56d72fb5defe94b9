"""``trickle.yml`` and ``spark-pipeline.yml``: what they say, and where they are wrong."""

from __future__ import annotations

import pytest

from trickle import DefinitionError
from trickle.project.config import Defaults, read_config
from trickle.project.find import find_project, named_project
from trickle.project.load import open_project

WHOLE = """\
name: shop
warehouse: tables
spark:
  spark.driver.memory: 2g
  spark.sql.ansi.enabled: true
defaults:
  schema: sales
  schedule: 90s
  mode: auto
  tags: {team: sales}
environments:
  prod:
    catalog: unity
    spark: {spark.sql.ansi.enabled: false}
    defaults: {schedule: by hand}
files: [a/**]
"""


def write(folder, text, name="trickle.yml"):
    file = folder / name
    file.write_text(text)
    return file


def test_a_whole_file(tmp_path):
    config = read_config(write(tmp_path, WHOLE))

    assert (config.name, config.warehouse, config.catalog, config.files) == ("shop", "tables", None, ("a/**",))
    assert config.spark == {"spark.driver.memory": "2g", "spark.sql.ansi.enabled": "true"}
    assert (config.defaults.schema_name, config.defaults.schedule) == ("sales", "1m30s")
    assert config.defaults.options() == {"tags": {"team": "sales"}}


def test_an_environment_is_laid_over_the_rest(tmp_path, monkeypatch):
    file = write(tmp_path, WHOLE)
    config = read_config(file, "prod")

    assert (config.warehouse, config.catalog) == (None, "unity")
    assert config.spark == {"spark.driver.memory": "2g", "spark.sql.ansi.enabled": "false"}
    assert (config.defaults.schema_name, config.defaults.schedule) == ("sales", "by hand")

    monkeypatch.setenv("TRICKLE_ENV", "prod")
    assert read_config(file).catalog == "unity"


@pytest.mark.parametrize("key", ["defaults:", "spark:", "environments:", "environments:\n  prod:\n    spark:"])
def test_a_key_whose_lines_are_all_commented_out_says_nothing(tmp_path, key):
    assert read_config(write(tmp_path, f"name: a\n{key}\n#   more: here\n")).defaults == Defaults()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "BAD_PROJECT", "trickle.yml:1: the file is empty."),
        ("- a", "BAD_PROJECT", "trickle.yml:1: this is not a list of NAME: VALUE pairs."),
        ("warehouse: x", "BAD_PROJECT", "trickle.yml:1: name is missing."),
        ("name: [1", "BAD_PROJECT", "trickle.yml:1: this is not YAML"),
        ("name: a\n\tb: c", "BAD_PROJECT", "trickle.yml:2: this is not YAML"),
        ("name: a\ndefaults: &a {tags: *a}", "BAD_PROJECT", "trickle.yml:1: this YAML contains itself"),
        ("name: " + 2000 * "[", "BAD_PROJECT", "trickle.yml:1: this YAML contains itself, or too many brackets"),
        ("name: a\nname: b", "BAD_PROJECT", "trickle.yml:2: 'name' is here twice."),
        ("name: a\n\nwarehose: b", "UNKNOWN_KEY", "trickle.yml:3: there is no key 'warehose' here."),
        (
            "name: a\ndefaults:\n  owner: b\n  shedule: 5m",
            "UNKNOWN_KEY",
            "trickle.yml:4: there is no key 'shedule' here.",
        ),
        (
            "name: a\ndefaults:\n  schedule: often",
            "BAD_PROJECT",
            "trickle.yml:3: defaults.schedule: 'often' is not a schedule",
        ),
        ("name: a\ndefaults:\n  mode: fast", "BAD_PROJECT", "trickle.yml:3: defaults.mode"),
        (
            "name: a\ndefaults:\n  schema: a.b",
            "BAD_PROJECT",
            "trickle.yml:3: defaults.schema: 'a.b' is not the name of a schema",
        ),
        ("name: a\nwarehouse: [b]", "BAD_PROJECT", "trickle.yml:2: warehouse is a text, not ['b']."),
        ("name: a\nhistory: refreshes", "BAD_PROJECT", "trickle.yml:2: history: 'refreshes' has no schema"),
        ("name: a\nspark: yes", "BAD_PROJECT", "trickle.yml:2: spark is a list of NAME: VALUE pairs, not True."),
        ("name: a\nwarehouse: b\ncatalog: c", "BAD_PROJECT", "either in a warehouse or in a catalog"),
        (
            "name: a\nenvironments:\n  prod:\n    place: b",
            "UNKNOWN_KEY",
            "trickle.yml:4: there is no key 'place' here.",
        ),
        ("name: a\ndefaults:\n  max_change_rows: 0", "BAD_PROJECT", "trickle.yml:3: defaults.max_change_rows"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, text, code, message):
    with pytest.raises(DefinitionError) as raised:
        read_config(write(tmp_path, text))

    assert raised.value.code == code
    assert message in raised.value.message
    assert "\n" not in str(raised.value)


def test_a_warehouse_may_be_on_an_object_store(tmp_path):
    project = open_project(write(tmp_path, "name: a\nwarehouse: s3a://b/c\n"))

    assert project.warehouse == "s3a://b/c"
    assert open_project(write(tmp_path, "name: a\nwarehouse: here\n")).warehouse == str(tmp_path / "here")


def test_an_unknown_environment_is_refused(tmp_path):
    with pytest.raises(DefinitionError, match="UNKNOWN_ENVIRONMENT") as raised:
        read_config(write(tmp_path, WHOLE), "test")

    assert "There are: prod." in raised.value.hint


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "trickle.yml").write_bytes(b"name: a\nowner: \xff\n")

    with pytest.raises(DefinitionError, match=r"trickle.yml:2: this is not UTF-8 text"):
        read_config(tmp_path / "trickle.yml")


def test_a_pipeline_spec_is_a_project(tmp_path):
    text = "name: p\nstorage: file:///s\ndatabase: d\nlibraries:\n  - glob:\n      include: transformations/**\n"
    project = open_project(write(tmp_path, text, "spark-pipeline.yml"))

    assert (project.config.name, project.schema, project.storage) == ("p", "d", "file:///s")
    assert project.warehouse == str(tmp_path / "spark-warehouse")
    assert project.config.files == ("transformations/**",)

    text = "name: p\nstorage: s\nconfiguration:\n  spark.sql.warehouse.dir: file:/w\n  a: 1\ncatalog: spark_catalog\n"
    project = open_project(write(tmp_path, text, "spark-pipeline.yml"))
    assert (str(project.warehouse), project.config.spark, project.storage) == ("/w", {"a": "1"}, f"{tmp_path}/s")
    project = open_project(write(tmp_path, text.replace("spark_catalog", "unity"), "spark-pipeline.yml"))
    assert (project.warehouse, project.config.catalog) == (None, "unity")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name: p\nstorage: s\nlibrary: x", "UNKNOWN_KEY"),
        ("name: p", "BAD_PROJECT"),
        ("name: p\nstorage: s\ndatabase: a\nschema: b", "BAD_PROJECT"),
        ("name: p\nstorage: s\nlibraries:\n  - file: x", "BAD_PROJECT"),
    ],
)
def test_a_wrong_pipeline_spec_is_refused(tmp_path, text, code):
    with pytest.raises(DefinitionError, match=code):
        read_config(write(tmp_path, text, "spark-pipeline.yml"))


def test_a_project_is_found_in_the_folders_above(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project(inner) is None

    file = write(tmp_path, "name: a")
    assert find_project(inner) == file
    assert named_project(tmp_path) == named_project(file) == file
    with pytest.raises(DefinitionError, match="NO_PROJECT"):
        named_project(inner)

    write(inner, "", "spark-pipeline.yml")
    assert find_project(inner) == inner / "spark-pipeline.yml"
    write(inner, "", "spark-pipeline.yaml")
    with pytest.raises(DefinitionError, match="there are both"):
        find_project(inner)


def test_files_are_found_by_patterns_and_hidden_ones_are_not(tmp_path):
    for name in (
        "one.sql",
        "tables/a.sql",
        "tables/b/c.py",
        "tables/notes.md",
        "tables/.x/d.sql",
        "tables/__pycache__/e.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    project = open_project(write(tmp_path, "name: a\nfiles: [tables/**, one.sql]"))

    assert [path.relative_to(tmp_path).as_posix() for path in project.files()] == [
        "one.sql",
        "tables/a.sql",
        "tables/b/c.py",
    ]

    with pytest.raises(DefinitionError, match="NO_FILES"):
        open_project(write(tmp_path, "name: a\nfiles: [none/**]")).files()
    with pytest.raises(DefinitionError, match="is not a pattern of files"):
        open_project(write(tmp_path, "name: a\nfiles: [/etc/**]")).files()
