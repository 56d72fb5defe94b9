"""Fetches the jars of Delta Lake, and of Hadoop's client of S3, once, and remembers where they are.

Spark itself does the fetching (Ivy, by ``spark-submit --packages``), so proxies, mirrors and repositories set up
for Spark on a machine are honoured. The list of files goes into a small cache file; while the files it names exist,
later sessions start without Ivy.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from trickle.errors import SessionError

#: Run by spark-submit after it resolved the packages: prints the jars it added, and starts no Spark.
_PRINT_JARS: Final = """
import json
from pyspark import SparkConf, SparkContext
SparkContext._ensure_initialized()
print("JARS=" + json.dumps(SparkConf().get("spark.jars", "").split(",")))
"""


_AWS_SDK: Final = {"3.4.2": "2.29.52"}
"""The version of Amazon's SDK that a Hadoop's client of S3 was built with."""

_SDK_PARTS: Final = ("s3", "sts", "s3-transfer-manager")
"""The parts of it that the client uses, 11 MB; the bundle of all parts, which Hadoop names, has 640 MB."""

_SDK: Final = "software.amazon.awssdk"


@dataclass(frozen=True, slots=True)
class Package:
    """Jars that are fetched together.

    Attributes:
        name: What the list of them is remembered by.
        coordinates: Those of Maven.
        without: What they name and is not to be fetched.
    """

    name: str
    coordinates: tuple[str, ...]
    without: tuple[str, ...] = ()


def delta_package() -> Package:
    """Return the Delta Lake that fits the installed ``pyspark`` and ``delta-spark``."""
    spark = ".".join(version("pyspark").split(".")[:2])
    found = f"io.delta:delta-spark_{spark}_2.13:{version('delta-spark')}"
    return Package(f"jars-spark-{version('pyspark')}-delta-{version('delta-spark')}", (found,))


def s3_package() -> Package:
    """Return the client of S3 that fits the Hadoop in the installed ``pyspark``."""
    hadoop = hadoop_version()
    client, sdk = f"org.apache.hadoop:hadoop-aws:{hadoop}", _AWS_SDK.get(hadoop)
    name = f"jars-spark-{version('pyspark')}-s3-{hadoop}"
    if sdk is None:
        return Package(name, (client,))
    return Package(name, (client, *(f"{_SDK}:{part}:{sdk}" for part in _SDK_PARTS)), without=(f"{_SDK}:bundle",))


def hadoop_version() -> str:
    """Return the version of the Hadoop in the installed ``pyspark``."""
    jar = next(spark_jars().glob("hadoop-client-api-*.jar"))
    return jar.name.removeprefix("hadoop-client-api-").removesuffix(".jar")


def spark_jars() -> Path:
    """Return the folder of the jars of the installed ``pyspark``."""
    return _spark_home() / "jars"


def delta_jars() -> tuple[Path, ...]:
    """Return the jars of Delta Lake to put on Spark's class path, fetching them if this machine has not yet."""
    return find_jars(delta_package())


def s3_jars() -> tuple[Path, ...]:
    """Return the jars of the client of S3, fetching them if this machine has not yet."""
    return find_jars(s3_package())


def find_jars(package: Package) -> tuple[Path, ...]:
    """Return the jars of a package, fetching them if this machine has not yet."""
    return cached_jars(package) or fetch_jars(package)


def cached_jars(package: Package) -> tuple[Path, ...]:
    """Return the remembered jars, or nothing if they were never fetched or have been removed since."""
    try:
        jars = tuple(map(Path, json.loads(_cache_file(package).read_text(encoding="utf-8"))))
    except (OSError, ValueError):
        return ()
    return jars if all(jar.is_file() for jar in jars) else ()


def fetch_jars(package: Package) -> tuple[Path, ...]:
    """Let Spark resolve a package, and remember the files.

    Raises:
        SessionError: JARS_UNAVAILABLE, with the end of what Ivy said.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "print_jars.py")
        script.write_text(_PRINT_JARS, encoding="utf-8")
        command = [str(_spark_home() / "bin" / "spark-submit"), "--packages", ",".join(package.coordinates)]
        command += ["--exclude-packages", ",".join(package.without)] if package.without else []
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        done = subprocess.run([*command, str(script)], capture_output=True, text=True, env=env, check=False)
    listed = re.search(r"^JARS=(.+)$", done.stdout, re.MULTILINE)
    if done.returncode or not listed:
        said = " | ".join(line.strip() for line in done.stderr.splitlines() if _tells_why(line))
        raise SessionError(
            "JARS_UNAVAILABLE",
            f"Spark could not fetch {package.coordinates[0]}: {said[-600:] or done.stderr[-600:]}",
            hint="Check the network; behind a mirror set spark.jars.ivySettings in Spark's spark-defaults.conf.",
        )
    jars = tuple(
        path for path in (Path(item.removeprefix("file:")) for item in json.loads(listed[1])) if not _spark_has(path)
    )
    _remember(package, jars)
    return jars


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _spark_has(jar: Path) -> bool:
    """Spark ships this artifact itself: adding Delta's idea of its version would only be shadowed, or clash."""
    # Ivy names files <group>_<artifact>-<version>.jar; groups hold no underscore.
    artifact = _artifact(jar.name.partition("_")[2])
    return any(_artifact(own.name) == artifact for own in spark_jars().glob("*.jar"))


def _artifact(file_name: str) -> str:
    return re.sub(r"-\d[\w.\-]*\.jar$", "", file_name)


def _tells_why(line: str) -> bool:
    return any(word in line for word in ("not found", "Exception", "error", "ERROR", "timed out"))


def _cache_file(package: Package) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "spark-trickle" / f"{package.name}.json"


def _remember(package: Package, jars: tuple[Path, ...]) -> None:
    """Write the list in one step, so that a reader in another process never sees half of it."""
    file = _cache_file(package)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        transaction = file.with_name(f"{file.name}.{os.getpid()}")
        transaction.write_text(json.dumps([str(jar) for jar in jars]), encoding="utf-8")
        transaction.replace(file)
    except OSError:
        return  # a read-only home costs the next session a second look-up, nothing else
