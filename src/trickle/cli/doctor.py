"""``trickle doctor``: looks at what Trickle needs, and says what is wrong and how to mend it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from trickle.cli.commands import FAILED, OK
from trickle.cli.output import console, print_json
from trickle.errors import TrickleError
from trickle.layout import is_remote

if TYPE_CHECKING:
    from trickle.cli.settings import Settings

_PYTHONS: Final = ((3, 11), (3, 14))
_PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "pyarrow", "polars", "pandas")
_GIB: Final = 1024**3
_ENOUGH_DISK: Final = 1 * _GIB
_ENOUGH_MEMORY: Final = 2 * _GIB


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    Attributes:
        health: ``skipped`` if something before it has to be mended first.
        fix: What to do; empty if nothing is wrong.
    """

    check: str
    health: Literal["ok", "warning", "failed", "skipped"]
    found: str
    fix: str = ""


def doctor(settings: Settings, *, quick: bool) -> int:
    """Look at everything; 1 if something is wrong."""
    from trickle.cli.spark import waiting

    found: list[Finding] = []
    with waiting("Looking") as show:
        for check in (
            _python,
            _packages,
            _java,
            _jars,
            _memory,
            lambda: _project(settings),
            lambda: _warehouse(settings),
        ):
            found += _safely(check)
        if not quick:
            show("Starting Spark")
            found.append(_spark(settings, found))
    is_ok = not any(finding.health == "failed" for finding in found)
    if settings.is_json:
        print_json({"ok": is_ok, "checks": found})
    else:
        from trickle.cli.shown import doctor_table

        console().print(doctor_table(found))
    return OK if is_ok else FAILED


def _safely(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Give what a check finds; what it raises is a finding too."""
    try:
        yield from check()
    except TrickleError as error:
        name = getattr(check, "__name__", "").strip("_")
        yield Finding(
            name if name.isidentifier() else "project", "failed", f"[{error.code}] {error.message}", error.hint
        )


def _python() -> Iterator[Finding]:
    found, (least, over) = sys.version_info[:2], _PYTHONS
    is_ok = least <= found < over
    shown = f"{sys.version.split()[0]} in {sys.executable}"
    yield Finding("python", "ok" if is_ok else "failed", shown, "" if is_ok else "Use Python 3.11 to 3.13.")


def _packages() -> Iterator[Finding]:
    for name in _PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Finding(name, "failed", "is not installed", "pip install --force-reinstall spark-trickle")
            continue
        wrong = name == "pyspark" and not found.startswith("4.1.")
        yield Finding(name, "failed" if wrong else "ok", found, "pip install 'pyspark>=4.1,<4.2'" if wrong else "")
    if remote := next((name for name in ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE") if name in os.environ), None):
        yield Finding("spark", "failed", f"{remote} is set", f"unset {remote}: Spark Connect has no JVM in reach.")


def _java() -> Iterator[Finding]:
    from trickle.java import find_java

    java = find_java()
    yield Finding("java", "ok", f"{java.major} in {java.home}")


def _jars() -> Iterator[Finding]:
    from trickle.jars import cached_jars, delta_package

    package = delta_package()
    name, jars = package.coordinates[0], cached_jars(package)
    if jars:
        yield Finding("jars", "ok", f"{name}: {len(jars)} files in {jars[0].parent}")
    else:
        fix = (
            "The next start of Spark fetches them: it needs the network, or a mirror in Spark's spark.jars.ivySettings."
        )
        yield Finding("jars", "warning", f"{name} is not on this machine yet", fix)


def _memory() -> Iterator[Finding]:
    from trickle.model.options import memory_bytes

    has = memory_bytes()
    fix = "" if has >= _ENOUGH_MEMORY else "Give the machine or the container at least 2 GiB."
    yield Finding("memory", "warning" if fix else "ok", f"{has / _GIB:.1f} GiB, {os.cpu_count()} cores", fix)


def _project(settings: Settings) -> Iterator[Finding]:
    project = settings.project
    if project is None:
        yield Finding("project", "ok", "none here")
        return
    yield Finding("project", "ok", f"{project.config.name} in {project.root}: {len(project.files())} files")


def _warehouse(settings: Settings) -> Iterator[Finding]:
    if settings.has_own_session:
        yield Finding("warehouse", "ok", "none: the tables are those of a Spark session of your own")
        return
    try:
        location = settings.folder(may_be_new=True)
    except TrickleError as error:
        health: Literal["warning", "failed"] = "warning" if error.code == "NO_WAREHOUSE" else "failed"
        yield Finding("warehouse", health, error.message, error.hint)
        return
    if is_remote(location):
        yield Finding("warehouse", "ok", f"{location}, which Spark and the driver reach with the session's settings")
        return
    folder = Path(location)
    place = next(path for path in (folder, *folder.parents) if path.exists())
    shown = str(folder) if folder.exists() else f"{folder}, which is still to be made"
    if not os.access(place, os.W_OK | os.X_OK):
        yield Finding(
            "warehouse",
            "failed",
            f"you may not write to {place}",
            f"sudo chown -R $USER {place}, or name another folder.",
        )
        return
    yield Finding("warehouse", *_written(place, shown))
    free = shutil.disk_usage(place).free
    fix = "" if free >= _ENOUGH_DISK else "Make room: refreshes write new files before old ones are removed."
    yield Finding("disk", "warning" if fix else "ok", f"{free / _GIB:.1f} GiB free", fix)


def _written(place: Path, shown: str) -> tuple[Literal["ok", "failed"], str, str]:
    """Write as a commit does: a file that must not be there yet, and a link that takes its place."""
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".trickle-doctor-") as folder:
            file = Path(folder, "commit")
            file.write_text("", encoding="utf-8")
            os.link(file, Path(folder, "linked"))
    except OSError as error:
        fix = "Use a file system with hard links, with room and without read-only mounts: not all network drives have them."
        return "failed", f"{place} does not take commits: {error.strerror}", fix
    return "ok", shown, ""


def _spark(settings: Settings, before: list[Finding]) -> Finding:
    """Start Spark, make a stream table in a folder of its own, and refresh it."""
    from trickle.api import Trickle
    from trickle.cli.spark import quiet_spark
    from trickle.session import local_session

    if any(
        finding.health == "failed" and finding.check in ("java", "pyspark", "delta-spark", "spark")
        for finding in before
    ):
        return Finding("start", "skipped", "Spark was not started", "Mend what is above first.")
    quiet_spark(settings)
    with tempfile.TemporaryDirectory(prefix="trickle-doctor-") as folder:
        try:
            spark = local_session(folder, config={**settings.spark_settings, "spark.driver.memory": "1g"})
            spark.sql("CREATE TABLE numbers USING delta AS SELECT id FROM range(10)")
            trickle = Trickle(spark)
            trickle.create("total", "SELECT sum(id) AS total FROM numbers")
            spark.sql("INSERT INTO numbers VALUES (10)")
            report = trickle.refresh("total")
            spark.stop()
        except TrickleError as error:
            return Finding("start", "failed", f"[{error.code}] {error.message}", error.hint)
    return Finding(
        "start", "ok", f"Spark starts, and refreshed a stream table in {report.seconds:.2f} s ({report.mode})"
    )
