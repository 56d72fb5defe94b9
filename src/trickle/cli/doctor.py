"""``trickle doctor``: looks at what Trickle needs, and says what is wrong and how to mend it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from trickle.cli.commands import FAILED, OK
from trickle.cli.output import console, print_json
from trickle.errors import StorageError, TrickleError
from trickle.layout import is_remote
from trickle.show.html import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.cli.settings import Settings

_PYTHONS: Final = ((3, 11), (3, 14))
_PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "pyarrow", "polars", "pandas")
PINNED: Final = {"pyspark": ("4.1.", "pyspark>=4.1,<4.2"), "delta-spark": ("4.4.0", "delta-spark==4.4.0")}
"""How the versions begin that work, and what pip calls them."""
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
    from trickle.cli.spark import quiet_spark, waiting
    from trickle.tables.storage.settings import use_settings

    use_settings(settings.spark_settings)  # for what is looked at without Spark
    if not quick:
        quiet_spark(settings)  # not later: while something is shown, the streams of Python are not its own
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
        if quick:
            found += _safely(lambda: _storage(_remote(settings)), "storage")
        else:
            show("Starting Spark")
            found += _spark(settings, found)
    is_ok = not any(finding.health == "failed" for finding in found)
    if settings.is_json:
        print_json({"ok": is_ok, "checks": found})
    else:
        from trickle.cli.shown import doctor_table

        console().print(doctor_table(found))
    return OK if is_ok else FAILED


def _safely(check: Callable[[], Iterator[Finding]], name: str = "") -> Iterator[Finding]:
    """Return what a check finds; what it raises is a finding too."""
    try:
        yield from check()
    except Exception as error:
        name = name or getattr(check, "__name__", "").strip("_")
        yield _failure(name if name.isidentifier() else "project", error)


def _failure(check: str, error: Exception) -> Finding:
    from trickle.engine.verbs import translate

    known = error if isinstance(error, TrickleError) else translate(error, check)
    if known is None:
        return Finding(check, "failed", f"{type(error).__name__}: {error}", "trickle doctor --debug shows more.")
    return Finding(check, "failed", f"[{known.code}] {known.message}", known.hint)


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
        begins, wanted = PINNED.get(name, ("", ""))
        wrong = not found.startswith(begins)
        yield Finding(name, "failed" if wrong else "ok", found, f"pip install '{wanted}'" if wrong else "")
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
        return  # that it can be used is seen by using it
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


def _remote(settings: Settings, spark: SparkSession | None = None) -> str:
    """Return the URI of the tables; nothing if they are on this machine, or in a place that only a catalog knows."""
    if not settings.has_own_session:
        with suppress(TrickleError):  # told before
            return found if is_remote(found := settings.folder(may_be_new=True)) else ""
        return ""
    key = "spark.sql.warehouse.dir"
    named = settings.spark_settings.get(key, "") if spark is None else str(spark.conf.get(key) or "")
    return named if is_remote(named) else ""


def _storage(location: str) -> Iterator[Finding]:
    """List an object store as a refresh does, and commit to it as a refresh does: a file that must not be there yet."""
    from trickle.tables.storage.schemes import folder_at, why_spark

    if not location:
        return
    folder = folder_at(location)
    if folder is None:
        why = why_spark(location)
        what = f"{location} is reached by Spark alone" + (f": only it knows {why}" if why else "")
        yield Finding("storage", "warning", what, "Small refreshes take seconds there; see how-to/use-object-storage.")
        return
    held = folder.storage.names(folder.address)
    probe = folder / f".trickle-doctor-{uuid.uuid4()}"
    try:
        folder.storage.put_if_absent(probe, b"first")
        with suppress(FileExistsError):
            folder.storage.put_if_absent(probe, b"second")
            fix = "Commits would be lost there: use a newer version of the server."
            yield Finding(
                "storage", "failed", f"{location} overwrites files that are to be written only if absent", fix
            )
            return
    finally:
        with suppress(OSError):
            folder.storage.delete(probe)
    yield Finding("storage", "ok", f"{location}: {counted(len(held), 'name')}, and takes commits")


def _spark(settings: Settings, before: list[Finding]) -> Iterator[Finding]:
    """Start the session that the commands would, and let it work; then look at the storage with its settings."""
    from trickle.cli.spark import start_session

    if any(
        finding.health == "failed" and finding.check in ("java", "pyspark", "delta-spark", "spark")
        for finding in before
    ):
        yield from _safely(lambda: _storage(_remote(settings)), "storage")
        yield Finding("start", "skipped", "Spark was not started", "Mend what is above first.")
        return
    spark = None
    with tempfile.TemporaryDirectory(prefix="trickle-doctor-") as folder:
        # What is tried out is written into a folder of its own, if the tables are in folders of this machine.
        is_ours = not settings.has_own_session and not _remote(settings)
        try:
            spark = start_session(settings, folder if is_ours else None)
            start = Finding("start", "ok", _refreshed(spark) if is_ours else _listed(spark))
        except Exception as error:  # whatever it is, it is what to tell
            start = _failure("start", error)
            is_told = isinstance(error, StorageError)
        else:
            is_told = False
        storage = list(_safely(lambda: _storage(_remote(settings, spark)), "storage"))
        yield from storage
        if is_told and any(finding.health == "failed" for finding in storage):
            start = Finding("start", "skipped", "Spark cannot list the tables", "Mend what is above first.")
        yield start
        if spark is not None:
            with suppress(Exception):
                spark.stop()


def _refreshed(spark: SparkSession) -> str:
    """Make a stream table, and refresh it."""
    from trickle.api import Trickle

    spark.sql("CREATE TABLE numbers USING delta AS SELECT id FROM range(10)")
    trickle = Trickle(spark)
    trickle.create("total", "SELECT sum(id) AS total FROM numbers")
    spark.sql("INSERT INTO numbers VALUES (10)")
    report = trickle.refresh("total")
    return f"Spark starts, and refreshed a stream table in {report.seconds:.2f} s ({report.mode})"


def _listed(spark: SparkSession) -> str:
    """Run a query on the executors, and look into the catalog; write nothing into what belongs to others."""
    from trickle.api import Trickle

    count = len(Trickle(spark).tables())
    spark.range(1000).selectExpr("sum(id)").collect()
    return f"Spark starts at {spark.sparkContext.master}, runs queries, and sees {counted(count, 'stream table')}"
