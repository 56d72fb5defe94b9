"""How long the steps of a refresh take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each step, in order."""

    started: float = field(default_factory=time.perf_counter)
    steps: dict[str, float] = field(default_factory=dict)
    _before_step: Callable[[], None] | None = None

    def check_before_steps(self, check: Callable[[], None]) -> None:
        """Call this before each step from now on; what it raises ends the refresh."""
        self._before_step = check

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; the same name twice adds up."""
        if self._before_step is not None:
            self._before_step()
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.steps[name] = self.steps.get(name, 0.0) + time.perf_counter() - begun

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started
