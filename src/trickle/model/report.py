"""What the verbs return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trickle.show.reports import refresh_report, run_report, validation, verify_report

if TYPE_CHECKING:
    from trickle.errors import TrickleError
    from trickle.model.cost import Estimate
    from trickle.model.definition import RefreshMode
    from trickle.model.reason import Reason
    from trickle.model.suspension import Suspension


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did.

    Attributes:
        table: The stream table.
        mode: ``differential``, ``full`` or ``no_data`` (no source had a new version).
        reason: Why the refresh was full; None if it was not.
        rows_inserted: Rows inserted into the stream table.
        rows_deleted: Rows deleted from it.
        frontier: The version of each source that the table now equals.
        version: The stream table's own version.
        seconds: The total time.
        steps: The seconds of each step, in order.
        changed: Change rows that a differential refresh read from each source.
        estimate: The estimated seconds of both modes, ``differential`` and ``full``, by which ``auto`` chose; None if there was
            no choice.
        warnings: What the table lacks though the refresh went well: ``STALE_UPSTREAM``, ``CHANGE_SKIPPED``; or what makes it
            slow: ``SPARK_STORAGE``.
    """

    table: str
    mode: RefreshMode
    reason: Reason | None
    rows_inserted: int
    rows_deleted: int
    frontier: Mapping[str, int]
    version: int
    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    estimate: Estimate | None = None
    warnings: tuple[Reason, ...] = ()

    def _repr_html_(self) -> str:
        return refresh_report(self)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run over a graph of stream tables did.

    Attributes:
        tables: The report of each table that was refreshed, by name, in order.
        errors: Why each other one was not; ``UPSTREAM_FAILED`` if it reads one that failed.
        cut: The version of each base table that all of them now stand for, but for those in ``off_cut``.
        seconds: The whole time.
        skipped: Which tables were left where they are because they are suspended, and why.
        off_cut: The refreshed tables that may not belong to the cut: those that read a skipped one, those that others brought
            further while the run was going on, those that Spark recomputes over the newest versions; and what reads them.
    """

    tables: Mapping[str, RefreshReport]
    errors: Mapping[str, TrickleError]
    cut: Mapping[str, int]
    seconds: float
    skipped: Mapping[str, Suspension] = field(default_factory=dict)
    off_cut: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if no table failed."""
        return not self.errors

    def __bool__(self) -> bool:
        """Read as ``if t.refresh_all()``."""
        return self.ok

    def _repr_html_(self) -> str:
        return run_report(self)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """How a stream table compares with a recompute at the same source versions.

    Attributes:
        table: The stream table.
        ok: True if both are the same multiset of rows and the declared keys of the sources hold.
        rows: Rows of the stream table that were compared.
        missing: Rows of the query that the table lacks.
        extra: Rows of the table that the query does not return.
        missing_sample: The first five missing rows, as tuples.
        extra_sample: The first five extra rows.
        broken_keys: The declared keys of sources that do not hold, each with an example value.
        part: One in so many keys was compared; 1 if all were.
    """

    table: str
    ok: bool
    rows: int
    missing: int
    extra: int
    missing_sample: tuple[tuple[object, ...], ...] = ()
    extra_sample: tuple[tuple[object, ...], ...] = ()
    broken_keys: tuple[str, ...] = ()
    part: int = 1

    def __bool__(self) -> bool:
        """Read as ``if t.verify(name)``."""
        return self.ok

    def _repr_html_(self) -> str:
        return verify_report(self)


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether a query can be maintained incrementally, and every obstacle if not."""

    differentiable: bool
    obstacles: tuple[Reason, ...]
    sources: tuple[str, ...]

    def __bool__(self) -> bool:
        """Read as ``if t.validate(sql)``."""
        return self.differentiable

    def _repr_html_(self) -> str:
        return validation(self)
