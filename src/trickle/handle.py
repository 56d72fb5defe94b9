"""The handle on one stream table, with the verbs of ``Trickle``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from trickle.engine.alter import UNCHANGED, Unchanged
from trickle.engine.verbs import verb
from trickle.errors import TrickleError
from trickle.model.names import sql_name
from trickle.show.tables import stream_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.api import Trickle
    from trickle.model.definition import Definition, Mode
    from trickle.model.explanation import Explanation
    from trickle.model.report import RefreshReport, VerifyReport
    from trickle.model.suspension import Suspension
    from trickle.model.table_options import TableOptions, TableOptionWords


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A handle on one stream table, with the verbs of ``Trickle``."""

    name: str
    definition: Definition
    _trickle: Trickle

    @property
    def query(self) -> str | None:
        """The SQL text; None if it was defined by a DataFrame."""
        return self.definition.query

    @property
    def mode(self) -> Mode:
        """``auto``, ``differential`` or ``full``."""
        return self.definition.mode

    @property
    def options(self) -> TableOptions:
        """What its table is like, and how its refreshes are watched over."""
        return self.definition.options

    @property
    def schedule(self) -> str | None:
        """When the loop refreshes it; None is by hand."""
        return self.definition.schedule

    @property
    def frontier(self) -> Mapping[str, int]:
        """The version of each source that the table equals."""
        return self._trickle._frontier(self.name)

    def refresh(
        self, *, full: bool = False, at: Mapping[str, int] | None = None, timeout: str | float | None = None
    ) -> RefreshReport:
        """Bring the table up to date with its sources; see ``Trickle.refresh``."""
        return self._trickle.refresh(self.name, full=full, at=at, timeout=timeout)

    def explain(self) -> Explanation:
        """Show how it is maintained; see ``Trickle.explain``."""
        return self._trickle.explain(self.name)

    def verify(self) -> VerifyReport:
        """Compare it with a recompute; see ``Trickle.verify``."""
        return self._trickle.verify(self.name)

    def alter(
        self,
        query: str | DataFrame | None = None,
        *,
        mode: Mode | None = None,
        schedule: str | Unchanged | None = UNCHANGED,
        **options: Unpack[TableOptionWords],
    ) -> StreamTable:
        """Change it; see ``Trickle.alter``."""
        return self._trickle.alter(self.name, query, mode=mode, schedule=schedule, **options)

    def suspend(self, *, reason: str | None = None) -> Suspension:
        """Leave it where it is; see ``Trickle.suspend``."""
        return self._trickle.suspend(self.name, reason=reason)

    def resume(self, *, apply: bool = False, full: bool = False, skip: bool = False) -> RefreshReport | None:
        """Let it go on; see ``Trickle.resume``."""
        return self._trickle.resume(self.name, apply=apply, full=full, skip=skip)

    def drop(self, *, cascade: bool = False) -> None:
        """Drop it; see ``Trickle.drop``."""
        self._trickle.drop(self.name, cascade=cascade)

    @verb
    def to_df(self) -> DataFrame:
        """Return its rows."""
        return self._trickle.spark.table(sql_name(self.name))

    def _repr_html_(self) -> str:
        try:
            (status,) = self._trickle.status(self.name)
        except TrickleError as error:  # it may have been dropped: a notebook shows what is known
            return stream_table(self, None, str(error))
        return stream_table(self, status)

    def __repr__(self) -> str:
        """Show name and mode."""
        return f"StreamTable({self.name!r}, mode={self.mode!r})"
