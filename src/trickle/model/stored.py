"""What is kept as JSON in a table's log."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Stored(BaseModel):
    """Frozen, and strict about what it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")
