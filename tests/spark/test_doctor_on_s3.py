"""The doctor with Spark on an object store: one clear line for each thing that can be wrong there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.unit.cli.command import pipe
from trickle.testing.s3 import S3Server, s3_server
from trickle.testing.s3_proxy import Proxy, s3_proxy

pytestmark = pytest.mark.slow

TWICE = """
import json, sys
import trickle
from trickle.errors import StorageError
for _ in range(2):
    try:
        trickle.local_session("s3a://nowhere/shop", cores=1, config=json.loads(sys.argv[1]))
    except StorageError as error:
        print(error.code)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.make_bucket("lake")
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[Proxy]:
    with s3_proxy(server.endpoint) as running:
        yield running


def settings(proxy):
    return S3Server(proxy.endpoint).settings


def looked_at(proxy, location):
    conf = [word for key, value in settings(proxy).items() for word in ("--conf", f"{key}={value}")]
    found = pipe("doctor", "--warehouse", location, *conf, "--format", "json")
    return (
        found.code,
        {one["check"]: one for one in found.json["checks"] if one["health"] != "ok"},
        found.json["checks"],
    )


def test_nothing_is_wrong_with_a_bucket_that_takes_commits(proxy):
    code, wrong, checks = looked_at(proxy, "s3a://lake/shop")

    assert (code, wrong) == (0, {})
    assert [one["check"] for one in checks[-2:]] == ["storage", "start"]
    assert "takes commits" in checks[-2]["found"]
    assert "runs queries" in checks[-1]["found"]


@pytest.mark.parametrize(
    ("location", "refused", "code", "health"),
    [
        ("s3a://nowhere/shop", (), "STORAGE_MISSING", "skipped"),
        ("s3a://lake/shop", ("GET", "HEAD", "PUT", "POST", "DELETE"), "STORAGE_REFUSED", "skipped"),
        ("s3a://lake/shop", ("PUT", "POST", "DELETE"), "STORAGE_REFUSED", None),
    ],
    ids=["no bucket", "refused credentials", "a prefix that can only be read"],
)
def test_what_is_wrong_with_a_bucket_is_told_once(proxy, location, refused, code, health):
    proxy.fault = lambda request: "refused" if request.method in refused else None

    ended, wrong, _ = looked_at(proxy, location)

    assert ended == 1
    assert wrong.pop("storage")["found"].startswith(f"[{code}]")
    assert {name: one["health"] for name, one in wrong.items()} == ({"start": health} if health else {})


def test_a_session_over_a_bucket_that_is_not_there_is_refused_each_time(proxy):
    command = [sys.executable, "-c", TWICE, json.dumps(settings(proxy))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    assert done.stdout.split() == ["STORAGE_MISSING"] * 2, done.stderr[-2000:]
