"""Trickle: stream tables for Apache Spark.

A stream table is a Delta table that stays equal to its query as its sources change, by computing only the change.

    import trickle

    spark = trickle.local_session(warehouse="warehouse")
    t = trickle.Trickle(spark)
    t.create("daily_revenue", "SELECT day, sum(amount) AS total FROM orders GROUP BY day")
    t.refresh("daily_revenue")
"""

from trickle.api import StreamTable, Trickle
from trickle.errors import (
    ConflictError,
    DefinitionError,
    NotDifferentiableError,
    SessionError,
    SourceError,
    SparkError,
    StateError,
    TrickleError,
    UnknownTableError,
)
from trickle.model.options import Options
from trickle.model.reason import Reason
from trickle.model.report import RefreshReport, RunReport, Validation, VerifyReport
from trickle.session import local_session

__all__ = [
    "ConflictError",
    "DefinitionError",
    "NotDifferentiableError",
    "Options",
    "Reason",
    "RefreshReport",
    "RunReport",
    "SessionError",
    "SourceError",
    "SparkError",
    "StateError",
    "StreamTable",
    "Trickle",
    "TrickleError",
    "UnknownTableError",
    "Validation",
    "VerifyReport",
    "local_session",
]
