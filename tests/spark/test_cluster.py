"""Every way of refreshing on a real cluster: a master, two workers, no cores in the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from trickle.testing.cluster import standalone_cluster
from trickle.testing.s3 import s3_server

PROGRAM = Path(__file__).with_name("on_a_cluster.py")
GIB = 1024**3


@pytest.fixture(scope="module", params=["folder", "s3"])
def run(request, tmp_path_factory):
    """Run the program with a driver of its own; return what it found."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        cluster = stack.enter_context(standalone_cluster(folder))
        settings, place = {}, str(folder)
        if request.param == "s3":
            server = stack.enter_context(s3_server())
            server.make_bucket("lake")
            settings, place = server.settings, "s3a://lake"

        def run(*ways):
            given = json.dumps({"master": cluster.master, "log": str(cluster.log), "settings": settings})
            command = [sys.executable, str(PROGRAM), given, f"{place}/{ways[0].replace(' ', '-')}", *ways]
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
            return json.loads(done.stdout.splitlines()[-1])

        yield run


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_way_of_refreshing(run):
    found = run("driver", "spark", "full")

    for way, mode in (("driver", "differential"), ("spark", "differential"), ("full", "full")):
        assert found[way]["modes"] == [mode], found
        assert found[way]["verified"], found
    assert found["spark"]["tasks elsewhere"] > 0
    assert found["full"]["tasks elsewhere"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_executor_that_dies_at_work_costs_nothing_but_time(run):
    found = run("killed executor")["killed executor"]

    assert len(found["killed"]) == 1
    assert found["lost"] == found["killed"]
    assert found["tasks elsewhere"] > 0
    assert found["modes"] == ["differential"]
    assert found["verified"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_driver_of_two_gibibytes_is_enough(run):
    found = run("small driver")

    assert found["small driver"]["modes"] == ["differential"]
    assert found["small driver"]["verified"]
    assert found["small driver"]["tasks elsewhere"] > 0
    assert found["peak"] < 2 * GIB
