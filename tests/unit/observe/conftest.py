from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.observe.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty warehouse."""
    return Lake(tmp_path / "warehouse")
