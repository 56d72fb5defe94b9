"""Which errors pass by themselves: conflicts, storage that did not answer, executors that were lost."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

from trickle.errors import ConflictError, SessionError, SparkError, StorageError, TrickleError

_PASSING: Final = frozenset(
    {
        *(errno.EIO, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.ENOSPC, errno.EDQUOT),
        *(errno.EMFILE, errno.ENFILE, errno.ETIMEDOUT, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH),
    }
)
"""Of the operating system: a disk that is full or busy, a network that is gone. A file that is missing stays missing."""

_UNNAMED: Final = ("SPARK_ERROR", "UNREADABLE_FILE", "FAILED_READ_FILE", "TASK_WRITE_FAILED")
"""Codes that say nothing of the cause. Spark names what is wrong with a query or its data, and then text may be the user's."""

_TEXTS: Final = re.compile(
    r"ExecutorLostFailure|executor (?:loss|lost|heartbeat timed out)|FetchFailed|MetadataFetchFailed|RpcTimeout"
    r"|SocketTimeout|TimeoutException|ConnectException|NoHttpResponse|SSLException|UnknownHost"
    r"|connection (?:reset|refused|timed out|closed)|read timed out|broken pipe|no space left"
    r"|slow ?down|too many requests|service unavailable|temporarily unavailable|throttl|status code:? (?:429|500|502|503)",
    re.IGNORECASE,
)


def is_transient(error: BaseException) -> bool:
    """Return whether a refresh that failed so may end well if it is tried again, with nothing changed.

    >>> is_transient(ConflictError("CONCURRENT_REFRESH", "another one committed"))
    True
    >>> is_transient(SparkError("DIVIDE_BY_ZERO", "division by zero: connection reset"))
    False
    """
    return any(_is_transient(cause) for cause in _causes(error))


def _is_transient(error: BaseException) -> bool:
    match error:
        case ConflictError():
            return True
        case SessionError():
            return True  # the table is not to blame for the session
        case SparkError():
            return error.code.startswith(_UNNAMED) and _TEXTS.search(error.message) is not None
        case StorageError():
            return error.code == "STORAGE_FAILED"
        case TrickleError():
            return False
        case TimeoutError() | ConnectionError() | BlockingIOError() | InterruptedError():
            return True
        case OSError():
            return error.errno in _PASSING
        case _:
            return False


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and what caused it."""
    found: BaseException | None = error
    for _ in range(10):  # a cause may be its own
        if found is None:
            return
        yield found
        found = found.__cause__
