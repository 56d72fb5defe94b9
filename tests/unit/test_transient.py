"""Which errors pass by themselves, and what the loop makes of those that do not."""

from __future__ import annotations

import errno
from datetime import UTC, datetime, timedelta

import pytest

from trickle.engine.transient import is_transient
from trickle.errors import ConflictError, SessionError, SourceError, SparkError, StateError, StorageError, TrickleError
from trickle.schedule.memory import Memory

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOST = "Job aborted due to stage failure: Task 3 failed 4 times: ExecutorLostFailure (executor 2 exited)"


def caused(error: TrickleError, cause: BaseException) -> TrickleError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("CONCURRENT_REFRESH", "another one"),
        SessionError("OUT_OF_MEMORY", "the heap is full"),
        SparkError("SPARK_ERROR", LOST),
        SparkError("SPARK_ERROR", "java.net.SocketTimeoutException: Read timed out"),
        SparkError("FAILED_READ_FILE.NO_HINT", "s3a://b/f: Status Code: 503, SlowDown"),
        caused(SparkError("UNREADABLE_FILE", "OSError: …"), OSError(errno.EIO, "input/output error")),
        caused(SparkError("UNREADABLE_FILE", "OSError: …"), OSError(errno.ENOSPC, "disk full")),
        StorageError("STORAGE_FAILED", "no answer"),
        TimeoutError("no answer"),
        ConnectionResetError(errno.ECONNRESET, "reset"),
    ],
    ids=str,
)
def test_what_passes_by_itself(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        SparkError("CAST_INVALID_INPUT", "the value 'connection reset' cannot be cast"),
        SparkError("SPARK_ERROR", "Job aborted due to stage failure: a UDF raised ValueError"),
        StateError("SUM_OVERFLOW", "a sum does not fit"),
        SourceError("SOURCE_MISSING", "gone"),
        StorageError("STORAGE_REFUSED", "not yours"),
        caused(SparkError("UNREADABLE_FILE", "…"), FileNotFoundError(errno.ENOENT, "gone")),
        caused(SparkError("UNREADABLE_FILE", "…"), PermissionError(errno.EACCES, "not yours")),
        caused(SparkError("UNREADABLE_FILE", "…"), OSError("not a Parquet file")),
        ValueError("a defect"),
    ],
    ids=str,
)
def test_what_stays(error):
    assert not is_transient(error)


def test_failures_that_stay_are_counted_and_wait_ever_longer():
    memory = Memory(None)
    for number in range(1, 12):
        memory = memory.after_failure(SparkError("DIVIDE_BY_ZERO", "zero"), NOW)

        assert memory.failures == number
        assert memory.not_before == NOW + timedelta(seconds=min(2**number, 300))


def test_failures_that_pass_are_tried_again_and_not_counted():
    memory = Memory(None)
    for _ in range(10):
        memory = memory.after_failure(SparkError("SPARK_ERROR", LOST), NOW)

    assert (memory.failures, memory.retries) == (0, 10)
    assert memory.not_before == NOW + timedelta(seconds=60)


@pytest.mark.parametrize("code", ["UPSTREAM_FAILED", "FUSE_BLOWN"])
def test_what_is_not_the_tables_own_failure_is_not_counted(code):
    memory = Memory(None, failures=2).after_failure(SourceError(code, "…"), NOW)

    assert memory.failures == 2
    assert memory.not_before > NOW
