"""Two refreshers in two processes on one bucket while a third writes: nothing is lost or doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from trickle.testing.s3 import s3_server

PROGRAM = Path(__file__).with_name("on_one_bucket.py")
REFRESHES = 500


def _start(settings, *words):
    command = [sys.executable, str(PROGRAM), "s3a://shared/shop", json.dumps(settings), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _end(process, seconds=1800):
    shown, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors[-4000:]
    return json.loads(shown.splitlines()[-1])


def _write(server, done):
    """Append rows, change some and delete some, until it is enough; return how many commits that were."""
    table = DeltaTable("s3://shared/shop/orders", storage_options=server.client_options)
    for number in count():
        if done.wait(0.5):
            return number
        ids = range(1000 + 10 * number, 1010 + 10 * number)
        if number % 10 == 9:
            table.update({"k": "k + 1"}, predicate=f"id = {ids[0] - 20}")
        elif number % 10 == 4:
            table.delete(f"id = {ids[0] - 30}")
        else:
            write_deltalake(table, pa.table({"id": ids, "k": [id_ % 7 for id_ in ids]}), mode="append")
    return 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_refreshes_of_two_processes_lose_and_double_nothing():
    done = Event()
    with s3_server() as server, ThreadPoolExecutor(1) as pool:
        server.make_bucket("shared")
        _end(_start(server.settings, "make"))
        started = [_start(server.settings, "refresh", REFRESHES // 2) for _ in range(2)]
        writing = pool.submit(_write, server, done)
        try:
            found = [_end(process) for process in started]
        finally:
            done.set()
            for process in started:
                process.kill()
        written = writing.result()
        checked = _end(_start(server.settings, "check"))

    assert [one["others"] for one in found] == [[], []]
    assert sum(one["differential"] for one in found) >= REFRESHES
    assert sum(checked["refreshes"].values()) >= REFRESHES
    assert written > 100
    assert checked["verified"] == [True, True]
    assert checked["rows"][0] == checked["rows"][1] == checked["distinct"]
    assert checked["counted"][0] == checked["counted"][1]
