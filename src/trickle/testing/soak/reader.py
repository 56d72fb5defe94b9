"""A reader that polls stream tables at one cut while they are written, redeployed and their runners killed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from trickle.testing.soak.tables import COUNTED, QUERIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.api import Trickle

_MAX_SHOWN: Final = 10
"""Failures that are shown."""


@dataclass(slots=True)
class Reader:
    """Reads until it is stopped; what it finds wrong is a failure.

    Attributes:
        reads: How many cuts it read.
        longest: The seconds of the longest wait for one.
    """

    trickle: Trickle
    reads: int = 0
    longest: float = 0.0
    failures: list[str] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to poll."""
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        names = sorted(QUERIES)
        while not self._stopped.wait(0.2):
            begun = time.perf_counter()
            try:
                self.look()
                name = names[self.reads % len(names)]
                if not self.trickle.spark.table(name).take(1) and name != "not_open":
                    self._fail(f"{name} had no rows")
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}")
            self.reads += 1
            self.longest = max(self.longest, time.perf_counter() - begun)

    def look(self) -> None:
        """Read one cut, and see that its tables agree."""
        days, customers, all_, both, products, orders = self.trickle.read(COUNTED)
        counts = fn.sum("n").alias("n"), fn.sum("total").alias("total")
        one = [_one(frame.agg(*counts)) for frame in (days, customers, all_)]
        if not one[0] == one[1] == one[2]:
            self._fail(f"of one cut, orders by day are {one[0]}, by customer {one[1]}, by way of regions {one[2]}")
        if not _one(both.agg(fn.sum("n"))) > one[0][:1]:
            self._fail("of one cut, fewer orders and customers than orders")
        sold = [_one(frame.agg(fn.sum("n"))) for frame in (products, orders)]
        if sold[0] != sold[1]:
            self._fail(f"of one cut, items by product are {sold[0]}, by order {sold[1]}")

    def _fail(self, text: str) -> None:
        if len(self.failures) < _MAX_SHOWN:
            self.failures.append(f"at {time.strftime('%H:%M:%S')} a reader saw: {text}")


def _one(frame: DataFrame) -> tuple[Any, ...]:
    row = frame.first()
    assert row is not None
    return tuple(row)
