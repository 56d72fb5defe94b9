"""What of a session can be told without one."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from trickle import SessionError, session
from trickle.session import _default_memory, exhaustion_told

HEAP = PySparkException("Job aborted due to stage failure: … java.lang.OutOfMemoryError: Java heap space")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (HEAP, "OUT_OF_MEMORY"),
        (Py4JNetworkError("Answer from Java side is empty"), "JVM_GONE"),
        (ConnectionRefusedError(111, "Connection refused"), "JVM_GONE"),
    ],
)
def test_a_jvm_without_memory_is_told_with_what_to_do(raised, code):
    with pytest.raises(SessionError, match=code) as caught, exhaustion_told():
        raise raised
    assert caught.value.__cause__ is raised
    assert "memory" in caught.value.hint


def test_other_errors_are_left_as_they_are():
    with pytest.raises(PySparkException, match="other"), exhaustion_told():
        raise PySparkException("other")


@pytest.mark.parametrize(("gigabytes", "heap"), [(1, "2048m"), (8, "2048m"), (24, "6144m"), (512, "16384m")])
def test_the_heap_is_a_quarter_of_the_memory_within_bounds(monkeypatch, gigabytes, heap):
    monkeypatch.setattr(session, "memory_bytes", lambda: gigabytes * 1024**3)

    assert _default_memory() == heap
