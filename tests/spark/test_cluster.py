"""Every way of refreshing on a real cluster: a master, two workers, no cores in the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trickle.testing.cluster import standalone_cluster
from trickle.testing.s3 import s3_server

PROGRAM = Path(__file__).with_name("on_a_cluster.py")


def _run(cluster, warehouse, settings, *words):
    """Run the program with a driver of its own; return what it found."""
    given = json.dumps({"master": cluster.master, "log": str(cluster.log), "settings": settings})
    command = [sys.executable, str(PROGRAM), given, str(warehouse), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_refreshes_on_a_shared_folder(tmp_path):
    with standalone_cluster(tmp_path) as cluster:
        found = _run(cluster, tmp_path / "warehouse", {}, "driver", "spark", "killed executor", "small driver")

    for way in ("driver", "spark", "killed executor", "small driver"):
        assert found[way] == {"modes": ["differential"], "verified": True, "executors_ran": True}, way


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_refreshes_on_an_object_store(tmp_path):
    with s3_server() as server, standalone_cluster(tmp_path) as cluster:
        server.make_bucket("lake")
        found = _run(cluster, "s3a://lake/warehouse", server.settings, "driver", "spark")

    for way in ("driver", "spark"):
        assert found[way] == {"modes": ["differential"], "verified": True, "executors_ran": True}, way
