"""Spark sessions: one ready for small Delta commits on this machine, and the check of a session the user brings."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trickle.errors import SessionError, TrickleError, kind_of
from trickle.jars import delta_jars, s3_jars
from trickle.java import find_java
from trickle.layout import WAREHOUSE_CONF, is_remote, warehouse_location
from trickle.model.options import memory_bytes
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_HEAP_FROM: Final = 2 * 1024**3
_HEAP_TO: Final = 16 * 1024**3
_RETAINED: Final = "100"
_POOLS: Final = (
    "spark.sql.broadcastExchange.maxThreadThreshold",
    "spark.sql.shuffleExchange.maxThreadThreshold",
    "spark.sql.resultQueryStage.maxThreadThreshold",
)

#: Lines every JVM of Spark prints at start, which tell a user nothing.
_STARTUP_NOISE: Final = (
    b"WARNING: Using incubator modules",
    b"Picked up JAVA_TOOL_OPTIONS",
    b"Picked up _JAVA_OPTIONS",
)


def local_session(
    warehouse: str | os.PathLike[str] = "warehouse",
    *,
    cores: int | None = None,
    memory: str | None = None,
    config: Mapping[str, str | int | bool] | None = None,
) -> SparkSession:
    """Start Spark with Delta Lake in this process, tuned for small commits, with its tables in a folder.

    The folder is the catalog: a later process, or another one at the same time, that opens the same folder sees the
    same tables. Asking again for the same folder gives the running session.

    Args:
        warehouse: Folder of the tables, made if it does not exist; or a URI on an object store, ``s3a://bucket/path``, for
            which Hadoop's client of S3 is fetched.
        cores: Threads to run tasks on; all of the machine's by default.
        memory: Heap of the JVM, as Spark writes sizes, ``4g`` for one. By default a quarter of what the machine, or the
            container, has: at least 2 GiB and at most 16. Fixed by the first session of a process.
        config: More Spark settings, stronger than ours; options for the JVM come after ours.

    Raises:
        SessionError: JAVA_MISSING, JAVA_UNSUPPORTED, JARS_UNAVAILABLE, CONNECT_SESSION, SESSION_ACTIVE (another
            session runs in this process), SPARK_FAILED (the JVM did not start, or Spark cannot use the warehouse).
        StorageError: The warehouse is in a bucket that is not there, or refuses what was asked.

    Example:
        >>> spark = local_session("/tmp/shop")  # doctest: +SKIP
        >>> spark.sql("CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) USING delta")  # doctest: +SKIP
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from trickle.warehouse import sync

    folder = warehouse_location(warehouse)
    _refuse_connect_mode()
    running = SparkSession.getActiveSession() if SparkContext._active_spark_context else None
    if SparkContext._active_spark_context:
        if running is None or running.conf.get(WAREHOUSE_CONF, None) != folder:
            raise SessionError(
                "SESSION_ACTIVE",
                "Another Spark session is running in this process.",
                hint="Stop it with spark.stop() first, or give it to trickle.Trickle() as it is.",
            )
        sync(running)
        return running

    if not is_remote(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    jars = (*delta_jars(), *(s3_jars() if names_s3(folder, config or {}) else ()))
    settings = _settings(folder, jars, cores or os.cpu_count() or 1, memory or _default_memory())
    for key, value in (config or {}).items():
        # The JVM's options are a list: the user's come after ours.
        settings[key] = f"{settings[key]} {value}" if key == JAVA_OPTIONS else _text(value)
    spark = _start(settings)
    try:
        sync(spark, is_new=True)
    except Exception as error:
        try:
            raise _unusable(folder, error) from error
        finally:
            spark.stop()  # one whose tables cannot be listed is of no use, and in the way of the next
    return spark


def _unusable(folder: str, error: Exception) -> TrickleError:
    """Return the error of a warehouse that Spark cannot list: the storage says best what is wrong there."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, TrickleError):
        return error
    try:
        place = folder_at(folder)
        if place is not None:
            place.storage.names(place.address)
    except TrickleError as told:
        return told
    thrown = error.java_exception if isinstance(error, Py4JJavaError) else None
    while thrown is not None and thrown.getCause() is not None and thrown.getCause() != thrown:
        thrown = thrown.getCause()
    said = _first_line(error) if thrown is None else str(thrown.getMessage() or thrown.toString()).partition("\n")[0]
    return SessionError(
        "SPARK_FAILED",
        f"Spark cannot use the warehouse {folder}: {said}",
        hint="Check the jars of its file system, and the settings of it.",
    )


def check_session(spark: SparkSession) -> None:
    """Refuse a session Trickle cannot work with.

    Raises:
        SessionError: NOT_A_SESSION, CONNECT_SESSION (no JVM behind it), SESSION_STOPPED, DELTA_MISSING (Delta Lake is
            not configured).
    """
    from pyspark.sql import SparkSession

    if "connect" in type(spark).__module__.split("."):
        raise _connect_error()
    given: Any = spark
    if not isinstance(given, SparkSession):
        text = f"{kind_of(spark)} is not a Spark session."
        raise SessionError("NOT_A_SESSION", text, hint="Give a SparkSession, for instance trickle.local_session().")
    if spark._jsparkSession is None or spark.sparkContext._jsc is None:
        raise SessionError("SESSION_STOPPED", "This Spark session was stopped.", hint="Start a new one.")
    extensions = str(spark.conf.get("spark.sql.extensions", "") or "")
    if DELTA_EXTENSION not in extensions:
        raise SessionError(
            "DELTA_MISSING",
            "This Spark session has no Delta Lake.",
            hint=f"Set spark.sql.extensions={DELTA_EXTENSION} and spark.sql.catalog.spark_catalog={DELTA_CATALOG} "
            "and add the delta-spark jars, or use trickle.local_session().",
        )


@contextmanager
def exhaustion_told() -> Iterator[None]:
    """Say what to do where Spark's JVM ran out of memory, or is no longer there.

    Raises:
        SessionError: OUT_OF_MEMORY, JVM_GONE.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    more = 'Give it more: trickle.local_session(memory="8g"), or spark.driver.memory of your own session, in a new process.'
    try:
        yield
    except (Py4JNetworkError, ConnectionRefusedError) as error:
        text = "The JVM of Spark is gone. It may have run out of memory; what it last printed says why."
        raise SessionError("JVM_GONE", text, hint=more) from error
    except (Py4JError, PySparkException) as error:
        if "OutOfMemoryError" not in str(error):
            raise
        text = "The JVM of Spark ran out of memory; nothing was committed."
        raise SessionError("OUT_OF_MEMORY", text, hint=more) from error


def prefetch() -> None:
    """Do the part of a first session that needs the network: find Java, fetch the Delta Lake jars."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    delta_jars()


def _default_memory() -> str:
    return f"{min(max(memory_bytes() // 4, _HEAP_FROM), _HEAP_TO) // 1024**2}m"


def names_s3(warehouse: str, config: Mapping[str, str | int | bool]) -> bool:
    """Return whether a session needs Hadoop's client of S3: its warehouse is there, or a setting names it."""
    return warehouse.startswith("s3a:") or any(".s3a." in key for key in config)


def _settings(folder: str, jars: Sequence[Path], cores: int, memory: str) -> dict[str, str]:
    log4j = Path(__file__).with_name("quiet.log4j2.properties")
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "trickle",
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # On the class path rather than in spark.jars, which Spark copies to its own folder at each start.
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        JAVA_OPTIONS: f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Nobody looks at queries of long ago, and each one kept holds its plan.
        "spark.ui.retainedJobs": _RETAINED,
        "spark.ui.retainedStages": _RETAINED,
        "spark.sql.ui.retainedExecutions": _RETAINED,
        # Spark starts a thread for each exchange and result until a pool is full, and ends it after an idle minute. Its
        # own bounds are 1024: refreshes that follow each other would fill them with threads that do nothing.
        **dict.fromkeys(_POOLS, str(max(16, 2 * cores))),
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": folder if is_remote(folder) else Path(folder).as_uri(),
        WAREHOUSE_CONF: folder,
        # A change is small: more partitions than cores is only overhead.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # VACUUM lists folders in as many tasks as this, and by default in 10,000, which takes a minute for any table.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * cores),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # In other zones Delta verifies the checksum of its file list at each commit.
        "spark.sql.session.timeZone": "UTC",
        # Delta's parser does not hand the parameters of spark.sql(query, args=…) on; the older way to bind them needs none.
        "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
        # One task rebuilds a small log faster than fifty.
        "spark.databricks.delta.snapshotPartitions": "2",
        # An empty commit carries the frontier.
        "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    }


def _start(settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway = SparkContext._gateway or _launch(conf)
    try:
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        raise SessionError("SPARK_FAILED", f"Spark did not start: {_first_line(error)}") from error
    if "PYSPARK_PYTHON" not in os.environ:
        # User-defined functions run in this Python, with its packages, not in whichever comes first on the PATH.
        context.pythonExec = sys.executable
    # It prints each query error, Java stack trace included, before the exception with the same text is raised.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    return SparkSession(context)


def _launch(conf: Any) -> Any:
    """Start the JVM, with its standard error passed on line by line, less the noise of starting."""
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java().home)
    read_end, write_end = os.pipe()
    last_lines: deque[bytes] = deque(maxlen=5)
    reader = threading.Thread(target=_pass_on, args=(read_end, last_lines), name="trickle-jvm-stderr", daemon=True)
    reader.start()
    try:
        return launch_gateway(conf, popen_kwargs={"stderr": write_end})
    except Exception as error:
        said = b" | ".join(last_lines).decode(errors="replace")
        raise SessionError("SPARK_FAILED", f"The JVM of Spark did not start: {said or _first_line(error)}") from error
    finally:
        os.close(write_end)


def _pass_on(read_end: int, last_lines: deque[bytes]) -> None:
    with os.fdopen(read_end, "rb") as lines:
        for line in lines:
            if not line.startswith(_STARTUP_NOISE):
                last_lines.append(line.strip())
                os.write(2, line)


def _refuse_connect_mode() -> None:
    if "SPARK_REMOTE" in os.environ or "SPARK_LOCAL_REMOTE" in os.environ:
        raise _connect_error()


def _connect_error() -> SessionError:
    return SessionError(
        "CONNECT_SESSION",
        "Spark Connect sessions have no JVM in reach, and Trickle reads query plans from it.",
        hint="Use a classic session: unset SPARK_REMOTE, and build it with .master(...) instead of .remote(...).",
    )


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
