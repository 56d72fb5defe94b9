"""Spark for a command: started when it is needed, and quiet."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trickle.cli.interrupt import check_interrupts, keeping_interrupts
from trickle.cli.output import console
from trickle.errors import SessionError
from trickle.model.names import quote, split_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.api import Trickle
    from trickle.cli.settings import Settings

_PAIR: Final = 2
_LOOK_SECONDS: Final = 0.3
_QUIET: Final = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}


@contextmanager
def open_trickle(settings: Settings, *, makes_tables: bool = False) -> Iterator[Trickle]:
    """Start a session over the tables that were asked for, and stop it in the end; ``makes_tables`` makes a new warehouse.

    Raises:
        SessionError: ``NO_WAREHOUSE``, or Spark does not start.
    """
    if not settings.has_own_session:
        settings.folder(may_be_new=makes_tables)
    quiet_spark(settings)
    with waiting("Starting Spark"):
        from trickle.api import Trickle

        with keeping_interrupts():
            spark = start_session(settings)
        trickle = Trickle(spark, history=_history(spark, settings), quiet=True)
        _use_schema(trickle, settings)
    try:
        check_interrupts()
        yield trickle
    finally:
        with suppress(Exception):  # a JVM that is gone needs no stopping
            trickle.settle()
            spark.stop()


def _history(spark: SparkSession, settings: Settings) -> str | None:
    """Return the table that the project wants its refreshes in; its schema is made if it is not there."""
    name = None if settings.project is None else settings.project.config.history
    if name is not None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(map(quote, split_name(name)[:-1]))}")
    return name


def _use_schema(trickle: Trickle, settings: Settings) -> None:
    """Let names without a schema mean those of the project."""
    project = settings.project
    if project is None:
        return
    if settings.has_own_session and project.config.catalog is not None:
        trickle.spark.catalog.setCurrentCatalog(project.config.catalog)
    if trickle.spark.catalog.databaseExists(project.schema):
        trickle.spark.sql(f"USE {quote(project.schema)}")


def start_session(settings: Settings, folder: str | None = None) -> SparkSession:
    """Start the session that was asked for; ``folder`` takes the place of its warehouse.

    Raises:
        SessionError: Spark does not start.
    """
    if folder is None and settings.has_own_session:
        return _own_session(settings)
    from trickle.session import local_session

    config = {**({"spark.master": settings.master} if settings.master else {}), **settings.spark_settings}
    return local_session(settings.folder(may_be_new=True) if folder is None else folder, config=config)


def _own_session(settings: Settings) -> SparkSession:
    """Start a session with the settings of this machine's Spark, ours where these say nothing."""
    from pyspark.sql import SparkSession

    from trickle.jars import delta_jars, s3_jars
    from trickle.java import find_java
    from trickle.session import DELTA_CATALOG, DELTA_EXTENSION, names_s3

    os.environ["JAVA_HOME"] = str(find_java().home)
    builder: Any = SparkSession.builder
    defaults = {
        **_QUIET,
        "spark.app.name": "trickle",
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    }
    own = settings.spark_settings
    given = {**_machine_settings(), **own}
    wanted = {**{key: value for key, value in defaults.items() if key not in given}, **own}
    if not any("delta" in given.get(key, "") for key in ("spark.jars", "spark.jars.packages")):
        jars = (*delta_jars(), *(s3_jars() if names_s3("", settings.conf) else ()))
        wanted["spark.jars"] = ",".join([*filter(None, [given.get("spark.jars")]), *map(str, jars)])
    if settings.master:
        builder = builder.master(settings.master)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        spark: SparkSession = builder.getOrCreate()
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise SessionError(
            "SPARK_FAILED", f"Spark did not start: {said}", hint="--debug shows what it said."
        ) from error
    if not settings.debug:
        spark.sparkContext.setLogLevel("OFF")
    return spark


def _machine_settings() -> dict[str, str]:
    """Read ``spark-defaults.conf``, which Spark itself reads once its JVM runs."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    path = Path(folder or os.devnull) / "spark-defaults.conf"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pairs = (line.replace("=", " ", 1).split(None, 1) for line in lines if line.strip()[:1] not in ("", "#"))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == _PAIR}


def quiet_spark(settings: Settings) -> None:
    """Let Python write to the terminal, and all else that has its file descriptors (the JVM, its children) to nowhere."""
    if settings.debug:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream.fileno() != number:
            continue  # done before, or somebody else's
        kept = os.dup(number)
        os.set_inheritable(kept, False)
        setattr(sys, name, os.fdopen(kept, "w", buffering=1, encoding=stream.encoding, errors=stream.errors))
        os.dup2(nowhere, number)
    os.close(nowhere)


@contextmanager
def waiting(what: str, spark: SparkSession | None = None) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something takes a while, with the tasks of Spark; what this gives shows something else."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(stderr=True).status(f"{what} …") as shown:
        progress = Progress(what, lambda text: shown.update(text), spark)
        with progress:
            yield progress.say


class Progress:
    """Says what is being done, and how many of its tasks Spark has done."""

    def __init__(self, what: str, show: Callable[[str], None], spark: SparkSession | None) -> None:
        """Say the first thing."""
        self._what = what
        self._show = show
        self._tracker: Any = None if spark is None else spark.sparkContext.statusTracker()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trickle-progress", daemon=True)

    def say(self, what: str) -> None:
        """Say what is being done now."""
        self._what = what
        self._show(f"{what} …")

    def __enter__(self) -> Progress:
        if self._tracker is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._tracker is not None:
            self._thread.join(1.0)

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            with suppress(Exception):  # a JVM that is going away has no tasks to tell of
                self._show(f"{self._what} …{self._tasks()}")

    def _tasks(self) -> str:
        stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        done, of = sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
        return f" {done}/{of} tasks" if of else ""
