"""Trickle: stream tables for Apache Spark.

A stream table is a Delta table that stays equal to its query as its sources change, by computing only the change.

    import trickle

    spark = trickle.local_session(warehouse="warehouse")
    t = trickle.Trickle(spark)
    t.create("daily_revenue", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    t.refresh("daily_revenue")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trickle.api import Trickle, enable_sql
    from trickle.errors import (
        CancelledError,
        ConflictError,
        DefinitionError,
        NotDifferentiableError,
        SessionError,
        SourceError,
        SparkError,
        SqlSyntaxError,
        StateError,
        SuspendedError,
        TrickleError,
        UnknownTableError,
    )
    from trickle.handle import StreamTable
    from trickle.model.explanation import Explanation
    from trickle.model.lineage import Lineage
    from trickle.model.observed import PastRefresh, TableStatus
    from trickle.model.options import Options
    from trickle.model.reason import Reason
    from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport
    from trickle.model.spec import ApplyPlan, ApplyStep, Spec
    from trickle.model.table_options import TableOptions
    from trickle.project.decorator import stream_table
    from trickle.session import local_session

__all__ = [
    "ApplyPlan",
    "ApplyStep",
    "CancelledError",
    "ConflictError",
    "DefinitionError",
    "Explanation",
    "Lineage",
    "NotDifferentiableError",
    "Options",
    "PastRefresh",
    "Reason",
    "RefreshReport",
    "RunReport",
    "SessionError",
    "SourceError",
    "SparkError",
    "Spec",
    "SqlSyntaxError",
    "StateError",
    "StreamTable",
    "SuspendedError",
    "TableOptions",
    "TableStatus",
    "Trickle",
    "TrickleError",
    "UnknownTableError",
    "Validation",
    "VerifyReport",
    "enable_sql",
    "local_session",
    "stream_table",
]

# Spark takes a second to import: what needs it is imported when it is first asked for.
_HOMES = {
    "trickle.api": ("Trickle", "enable_sql"),
    "trickle.handle": ("StreamTable",),
    "trickle.errors": (
        "CancelledError",
        "ConflictError",
        "DefinitionError",
        "NotDifferentiableError",
        "SessionError",
        "SourceError",
        "SparkError",
        "SqlSyntaxError",
        "StateError",
        "SuspendedError",
        "TrickleError",
        "UnknownTableError",
    ),
    "trickle.model.explanation": ("Explanation",),
    "trickle.model.lineage": ("Lineage",),
    "trickle.model.observed": ("PastRefresh", "TableStatus"),
    "trickle.model.options": ("Options",),
    "trickle.model.reason": ("Reason",),
    "trickle.model.report": ("RefreshReport", "RunReport", "Validation", "VerifyReport"),
    "trickle.model.spec": ("ApplyPlan", "ApplyStep", "Spec"),
    "trickle.model.table_options": ("TableOptions",),
    "trickle.project.decorator": ("stream_table",),
    "trickle.session": ("local_session",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _HOME_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    """Name what can be asked for."""
    return sorted({*globals(), *__all__})


def load_ipython_extension(ip: Any) -> None:
    """Add ``%%stream_table`` and ``%%trickle`` to a notebook, for ``%load_ext trickle``."""
    from trickle.notebook import register

    register(ip)
