"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own, for tests."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from trickle.jars import delta_jars
from trickle.java import find_java

_SECONDS: Final = 60.0
"""How long the cluster may take to start."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        master: Its address, as sessions name it.
        log: Where its processes write.
    """

    master: str
    log: Path

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of a session that uses it; only the driver has Trickle."""
        return {
            "spark.master": self.master,
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.executor.extraClassPath": os.pathsep.join(map(str, delta_jars())),
            "spark.task.maxFailures": "8",
        }

    def executors(self) -> Mapping[str, int]:
        """Return the processes of the executors, children of the workers, by the names that Spark gives them."""
        shown = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        lines = [line.split(None, 2) for line in shown.splitlines()]
        workers = {pid for pid, _, text in lines if "deploy.worker.Worker" in text and self.master in text}
        own = [(pid, text) for pid, parent, text in lines if parent in workers]
        named = [(re.search(r"--executor-id (\d+)", text), pid) for pid, text in own]
        return {found[1]: int(pid) for found, pid in named if found}


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Run a master and workers of one core each; they end with the context."""
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as free:
        page = free.getsockname()[1]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    cluster = Cluster(f"spark://127.0.0.1:{port}", folder)
    addresses = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    of_worker = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", cluster.master]
    with ExitStack() as stack:
        for name, words in (("Master", addresses), *[("Worker", of_worker)] * workers):
            output = stack.enter_context((folder / "cluster.log").open("a"))
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name.lower()}.{name}", *words]
            started = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
            stack.callback(_end, started)
        _wait(f"http://127.0.0.1:{page}/json/", workers)
        yield cluster


def _wait(page: str, workers: int) -> None:
    end = time.monotonic() + _SECONDS
    alive = 0
    while alive < workers:
        if time.monotonic() > end:
            message = f"{alive} of {workers} workers came in {_SECONDS:g} s"
            raise TimeoutError(message)
        time.sleep(0.3)
        with suppress(OSError), urlopen(page) as answer:
            alive = len(re.findall(r'"state"\s*:\s*"ALIVE"', answer.read().decode()))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
