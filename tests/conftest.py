"""Fixtures and markers shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

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


@pytest.fixture(scope="session")
def spark(warehouse_folder: Path) -> Iterator[SparkSession]:
    """The one Spark session of a test run."""
    from trickle.session import JAVA_OPTIONS, local_session
    from trickle.testing.jvm import QUICK_START

    # Side by side, one core for each of them is all there is.
    cores = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
    session = local_session(warehouse_folder, cores=cores, memory="3g", config={JAVA_OPTIONS: QUICK_START})
    yield session
    session.stop()


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
