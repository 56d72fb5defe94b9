"""Why a refresh was not differential, or why a query cannot be maintained: stable codes with a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable code, what happened, and what the user can do."""

    code: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        """Read as ``CODE: text``."""
        return f"{self.code}: {self.text}"


# The codes, in one place. Docs and tests name them.
FIRST_REFRESH: Final = "FIRST_REFRESH"
REQUESTED: Final = "REQUESTED"
MODE_FULL: Final = "MODE_FULL"
SOURCE_REPLACED: Final = "SOURCE_REPLACED"
SOURCE_ALTERED: Final = "SOURCE_ALTERED"
SOURCE_REWOUND: Final = "SOURCE_REWOUND"
SOURCE_RESTORED: Final = "SOURCE_RESTORED"
COMMIT_OVERWRITTEN: Final = "COMMIT_OVERWRITTEN"
HISTORY_EXPIRED: Final = "HISTORY_EXPIRED"
STATE_MISMATCH: Final = "STATE_MISMATCH"
SUM_OVERFLOW: Final = "SUM_OVERFLOW"
SCHEMA_MISMATCH: Final = "SCHEMA_MISMATCH"
TABLE_MODIFIED: Final = "TABLE_MODIFIED"
DEFINITION_CHANGED: Final = "DEFINITION_CHANGED"
STATE_MISSING: Final = "STATE_MISSING"
COST: Final = "COST"
KEY_VIOLATED: Final = "KEY_VIOLATED"
CHANGE_SKIPPED: Final = "CHANGE_SKIPPED"
SPARK_STORAGE: Final = "SPARK_STORAGE"
STALE_UPSTREAM: Final = "STALE_UPSTREAM"

OVERWRITTEN_HINT: Final = (
    "Delta Lake on S3 commits without a condition: leave maintenance to Trickle, or set up Delta's log store on "
    "DynamoDB."
)
