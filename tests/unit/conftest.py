"""These tests know no Spark, also where another test of the same process has started one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trickle.tables.storage import settings


@pytest.fixture(autouse=True, scope="module")
def no_settings_of_spark() -> Iterator[None]:
    """Leave the settings of object stores to the test."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(settings, "running_spark", lambda: None)
        yield
