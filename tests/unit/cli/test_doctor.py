"""What the doctor finds without starting Spark."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.command import environment, pipe
from trickle.cli.doctor import PINNED
from trickle.testing.s3 import S3Server, s3_server
from trickle.testing.s3_proxy import s3_proxy

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.make_bucket("lake")
        running.put("lake/shop/orders/_delta_log/00000000000000000000.json", b"{}")
        yield running


def storage(server, location):
    conf = [word for key, value in server.settings.items() for word in ("--conf", f"{key}={value}")]
    found = pipe("doctor", "--quick", "--warehouse", location, *conf, "--format", "json", cwd=ROOT)
    (one,) = [check for check in found.json["checks"] if check["check"] == "storage"]
    return found.code, one


def names(server):
    from trickle.tables.storage.credentials import s3_settings
    from trickle.tables.storage.object_store import ObjectStorage
    from trickle.tables.storage.settings import GivenSettings

    given = {key.removeprefix("spark.hadoop."): text for key, text in server.settings.items()}
    settings = s3_settings("lake", "s3a://lake", GivenSettings(given))
    return ObjectStorage("s3", "s3a://lake", settings).names("s3a://lake/shop")


def test_a_bucket_is_listed_and_written_to_and_left_as_it_was(server):
    code, found = storage(server, "s3a://lake/shop")

    assert (code, found["health"]) == (0, "ok")
    assert found["found"] == "s3a://lake/shop: 1 name, and takes commits"
    assert names(server) == ["orders"]


def test_a_bucket_that_is_not_there_is_told_with_the_fix(server):
    code, found = storage(server, "s3a://nowhere/shop")

    assert (code, found["health"]) == (1, "failed")
    assert "STORAGE_MISSING" in found["found"]
    assert found["fix"]


def test_a_server_that_overlooks_conditions_is_told(server):
    with s3_proxy(server.endpoint) as proxy:
        proxy.hidden = frozenset({"if-none-match"})
        code, found = storage(S3Server(proxy.endpoint), "s3a://lake/shop")

    assert (code, found["health"]) == (1, "failed")
    assert "NO_CONDITIONAL_PUT" in found["found"]
    assert names(server) == ["orders"]


def test_a_storage_that_only_spark_reaches_is_told(server):
    code, found = storage(server, "ofs://host/shop")

    assert (code, found["health"]) == (0, "warning")
    assert found["fix"]


@pytest.mark.parametrize("name", sorted(PINNED))
def test_another_version_of_spark_or_delta_is_wrong(tmp_path, name):
    folder = tmp_path / f"{name.replace('-', '_')}-9.9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9.9\n")
    found = pipe("doctor", "--quick", "--format", "json", cwd=tmp_path, env=environment(PYTHONPATH=_path(tmp_path)))

    (one,) = [check for check in found.json["checks"] if check["check"] == name]
    assert (found.code, one["health"], one["found"]) == (1, "failed", "9.9.9")
    assert one["fix"] == f"pip install '{PINNED[name][1]}'"


def _path(first):
    return f"{first}:{environment().get('PYTHONPATH', '')}"


def test_the_doctor_wants_what_the_package_requires():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]

    assert {requirement for _, requirement in PINNED.values()} <= set(wanted)
