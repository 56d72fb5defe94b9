"""Where commands answer: text for people or JSON for programs on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

    from trickle.errors import TrickleError

SCHEMA: Final = 1
"""The version of the JSON: fields may be added under the same number."""

_PIPE_WIDTH: Final = 1000
"""Where there is no terminal, lines are as long as they are."""


def console(*, stderr: bool = False) -> Console:
    """Return a console; without colours in a pipe, and with NO_COLOR."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, highlight=False, width=width, soft_wrap=not stream.isatty(), markup=False)


def print_json(answer: Mapping[str, Any]) -> None:
    """Write an answer as JSON, on one line in a pipe."""
    text = json.dumps(
        {"schema": SCHEMA, **plain(answer)}, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False
    )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """Return a value as JSON has it: moments in UTC, dataclasses as objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # JSON has no such numbers
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def error_of(error: TrickleError) -> dict[str, str]:
    """Return an error as JSON has it."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def tell(text: str) -> None:
    """Say something beside the answer."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
