"""What a stream table reads: whether it is up to date, and how to bring it up first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final

from trickle.engine.suspend import SuspendedNowError
from trickle.errors import ConflictError, TrickleError
from trickle.model.cache import Cache
from trickle.model.definition import RefreshRecord, read_definition
from trickle.model.names import is_state_table
from trickle.model.reason import STALE_UPSTREAM, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trickle.engine.engine import Engine
    from trickle.model.report import RefreshReport, RunReport
    from trickle.refresh.request import Request
    from trickle.tables.catalog import Catalog
    from trickle.tables.contract import SourceTable

_DEPTH: Final = 50
"""How far upstream is looked: a circle of stream tables has no end."""


class Upstream:
    """The stream tables that others read."""

    def __init__(self, catalog: Catalog, kept: int) -> None:
        """Bind to a catalog; remember what so many tables read."""
        self._catalog = catalog
        self._sources: Cache[tuple[str, str], dict[str, SourceTable]] = Cache("upstream sources", kept)
        self._records: Cache[str, RefreshRecord] = Cache("upstream records", kept)

    def warnings(self, sources: Mapping[str, SourceTable]) -> tuple[Reason, ...]:
        """Say which of a table's sources are stream tables that are behind what they read."""
        stale = [
            name for name, source in sources.items() if not is_state_table(name) and self._is_stale(source, _DEPTH)
        ]
        if not stale:
            return ()
        said = "is behind what it reads" if len(stale) == 1 else "are behind what they read"
        text = f"{', '.join(stale)} {said}"
        return (Reason(STALE_UPSTREAM, text, "refresh(name, upstream=True) refreshes them first."),)

    def _is_stale(self, source: SourceTable, depth: int) -> bool:
        try:
            text = source.record(source.head())
            if text is None or depth == 0:
                return False
            record = self._records.get(text, lambda: RefreshRecord.model_validate_json(text))
            for name, below in self._below(source).items():
                if _has_news(below, record, name) or self._is_stale(below, depth - 1):
                    return True
        except (TrickleError, ValueError):
            return False  # a warning is no reason to fail: its own refresh says what is wrong
        return False

    def _below(self, source: SourceTable) -> dict[str, SourceTable]:
        """Return the sources of a stream table by the names that its frontier uses."""
        marks = self._catalog.marks(source.path)
        if marks is None:
            return {}
        return self._sources.get((source.path, marks.definition), lambda: dict(self._find(source, marks.definition)))

    def _find(self, source: SourceTable, text: str) -> Iterator[tuple[str, SourceTable]]:
        definition = read_definition(source.name, text)
        record = source.record(source.head())
        for name in () if record is None else RefreshRecord.model_validate_json(record).frontier:
            if not is_state_table(name):
                found = self._catalog.source_by_name(name, catalog=definition.catalog, schema=definition.schema_name)
                yield name, found


def _has_news(source: SourceTable, record: RefreshRecord, name: str) -> bool:
    """Return whether rows of a source changed since a refresh saw it, as far as its query reads them."""
    seen, head = record.frontier.get(name), source.head()
    if seen is None or seen.version == head:
        return seen is None
    columns = (record.columns or {}).get(name) or tuple(source.columns(head))
    versions = source.classify(seen.version, head, columns)
    return versions.broken is not None or versions.kind != "none"


def refresh_with_upstream(engine: Engine, name: str, request: Request, workers: int = 1) -> RefreshReport:
    """Bring a stream table up to date, after the stream tables that it reads."""
    report = engine.refresh_all([name], request.at, full=request.full, workers=workers, timeout=request.timeout)
    _raise_first(report)
    full_name = engine.qualify(name)
    if full_name in report.skipped:
        raise SuspendedNowError(full_name, report.skipped[full_name])
    return report.tables[full_name]


def write_and_refresh(
    engine: Engine, write: Callable[[], object], names: Collection[str], workers: int = 1
) -> RunReport:
    """Call a function that writes to sources, then refresh until stream tables have what it committed."""
    members = engine.members()
    asked = [engine.known(members, name) for name in names]
    for name, suspension in engine.suspended(members, members.graph.upstream(asked)).items():
        raise SuspendedNowError(name, suspension)
    write()
    for _ in range(engine.options.attempts):
        report = engine.refresh_all(asked, None, workers=workers)
        if not any(isinstance(error, ConflictError) for error in report.errors.values()):
            break
    _raise_first(report)
    for name, suspension in report.skipped.items():  # since it was written
        raise SuspendedNowError(name, suspension)
    return report


def _raise_first(report: RunReport) -> None:
    """Raise what went wrong first: the others failed for it."""
    for error in report.errors.values():
        if error.code != "UPSTREAM_FAILED":
            raise error
