"""Hadoop's file systems for tests: folders that viewfs mounts, and HDFS in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trickle.jars import Package, find_jars, hadoop_version, spark_jars
from trickle.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLUSTER: Final = "org.apache.hadoop.test.MiniDFSClusterManager"
_START_SECONDS: Final = 120.0


def mount(spark: SparkSession, target: str) -> str:
    """Let viewfs mount a folder, given by its URI, in a session; returns its URI there."""
    name = f"mounts-{uuid.uuid4().hex[:12]}"  # Hadoop keeps a file system for each name
    context: Any = spark.sparkContext
    context._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{name}.link./data", target)
    return f"viewfs://{name}/data"


def hdfs_package() -> Package:
    """Return the server of HDFS that fits the installed ``pyspark``: 40 MB."""
    version = hadoop_version()
    hadoop = "org.apache.hadoop:hadoop-client"
    coordinates = (f"{hadoop}-minicluster:{version}", "junit:junit:4.13.2")
    return Package(f"jars-hdfs-{version}", coordinates, without=(f"{hadoop}-api", f"{hadoop}-runtime"))


@contextmanager
def hdfs_server() -> Iterator[str]:
    """Run a name node and a data node; returns the URI of their file system."""
    path = os.pathsep.join([*map(str, find_jars(hdfs_package())), f"{spark_jars()}/*"])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [str(find_java().home / "bin" / "java"), "-Xmx512m", "-cp", path, _CLUSTER, "-format"]
        command += ["-nnport", "0", "-datanodes", "1", "-writeDetails", "details.json"]
        with Path(folder, "log").open("wb") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield f"hdfs://localhost:{_port(server, Path(folder))}"
        finally:
            server.kill()
            server.wait()


def _port(server: subprocess.Popen[bytes], folder: Path) -> int:
    """Wait until the name node tells its port."""
    until = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            return int(json.loads((folder / "details.json").read_text())["namenode_port"])
        except (OSError, ValueError):
            time.sleep(0.1)
    raise RuntimeError((folder / "log").read_text(errors="replace")[-2000:])
