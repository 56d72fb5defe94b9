"""Fixtures and markers shared by all tests."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from trickle.testing.s3 import S3Server

# On a busy machine an example takes as long as it takes: that tells nothing of what is tested.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

#: Tests in these folders carry the marker of the folder.
MARKED_FOLDERS = {"spark", "slow"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folders = Path(item.path).parent.parts[len(Path(__file__).parent.parts) :]
        for folder in MARKED_FOLDERS & set(folders):
            item.add_marker(folder)
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def warehouse_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables that `spark` sees."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session", autouse=True)
def cache_of_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep files of object stores in a folder of the test run, not in the user's."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRICKLE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def s3_place() -> S3Server:
    """Where a server of S3 will be, if a test asks for one: Spark must know it from its start."""
    from trickle.testing.s3 import S3Server

    with socket.create_server(("127.0.0.1", 0)) as free:
        return S3Server(f"http://127.0.0.1:{free.getsockname()[1]}")


@pytest.fixture(scope="session")
def spark(warehouse_folder: Path, s3_place: S3Server) -> Iterator[SparkSession]:
    """The one Spark session of a test run."""
    from trickle.session import JAVA_OPTIONS, local_session
    from trickle.testing.jvm import QUICK_START, SMALL_TABLES

    # Side by side, one core for each of them is all there is.
    cores = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
    config = {JAVA_OPTIONS: QUICK_START, **SMALL_TABLES, **s3_place.settings}
    session = local_session(warehouse_folder, cores=cores, memory="3g", config=config)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3(s3_place: S3Server) -> Iterator[S3Server]:
    """A server of S3 with the bucket `lake`, which Spark knows."""
    from trickle.testing.s3 import s3_server

    with s3_server(port=int(s3_place.endpoint.rpartition(":")[2])) as server:
        server.make_bucket("lake")
        yield server


@pytest.fixture(scope="session")
def hdfs() -> Iterator[str]:
    """The URI of an HDFS in a process of its own."""
    from trickle.testing.hadoop import hdfs_server

    with hdfs_server() as root:
        yield root


@pytest.fixture(scope="module", autouse=True)
def empty_warehouse(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave nothing to the next file: which files share a session depends on how many workers there are."""
    on_spark = any(item.get_closest_marker("spark") for item in request.session.items if item.parent is request.node)
    session = request.getfixturevalue("spark") if on_spark else None
    yield
    if session is not None:
        _empty(session)


def _empty(spark: SparkSession) -> None:
    from trickle.tables.delta.checkpoints import CHECKPOINTS

    CHECKPOINTS.finish()
    spark.sql("USE default")
    for database in spark.catalog.listDatabases():
        if database.name != "default":
            spark.sql(f"DROP DATABASE `{database.name}` CASCADE")
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
        else:
            spark.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} `{table.name}`")
