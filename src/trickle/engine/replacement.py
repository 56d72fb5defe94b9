"""Replaces the query of a stream table, or the columns that its query has come to return: rows and definition in one commit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trickle.catalyst.jvm import analysed_plan
from trickle.engine.events import reported
from trickle.engine.open_tables import OpenTable
from trickle.errors import ConflictError, SourceError
from trickle.model.definition import DEFINITION_PROPERTY, Took
from trickle.model.names import is_state_table
from trickle.model.reason import DEFINITION_CHANGED, Reason
from trickle.model.report import RefreshReport
from trickle.refresh.record import new_record, read_record
from trickle.refresh.request import Request
from trickle.tables.redefinition import CONCURRENT_ALTER, Redefinition

if TYPE_CHECKING:
    from trickle.catalyst.reuse import Reuse
    from trickle.engine.compiler import Analysed
    from trickle.engine.engine import Engine
    from trickle.engine.open_tables import FoundTable
    from trickle.model.definition import Definition, RefreshRecord
    from trickle.model.table_options import TableOptions
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import TargetState

_HELD_SECONDS: Final = 600.0
_TIMES: Final = 4
"""How long refreshes stay away at most: so long, or so many times what the last full refresh took."""


def replace_query(
    engine: Engine,
    table: OpenTable | FoundTable,
    after: Definition,
    analysed: Analysed,
    prepared: Prepared,
    reuse: Reuse | None = None,
) -> RefreshReport:
    """Make the rows of another query beside the table, and swap them in by one commit."""
    analysed = replace(analysed, definition=after)
    before = table.definition.options
    if before.cluster_by != after.options.cluster_by:
        engine.catalog.cluster(table.name, after.options.cluster_by)
    engine.catalog.results.set_properties(table.name, comment_change(before, after.options))
    with reported(engine.events, table.name, "creation") as tell:
        report = None
        if reuse is not None and isinstance(table, OpenTable):
            report = _evolve(engine, table, analysed, prepared, reuse)
        report = report or _swap(engine, table, analysed, prepared, Request(trigger="creation"))
        engine.catalog.results.set_column_comments(table.name, column_comments(before, after.options))
        return tell(report)


def find_reusable(table: OpenTable, analysed: Analysed, prepared: Prepared) -> Reuse | None:
    """Say how the rows of another query follow from the stored ones; None if they do not, or not surely."""
    both = (table.prepared, prepared)
    # Where Spark leaves the answer open, the one that Trickle takes depends on all columns.
    if any(p.obstacles or not p.has_one_answer or _remembers(p) for p in both) or _stands_on(table, prepared) is None:
        return None
    return table.workspace.compiler.find_reuse(table.analysed, analysed)


def _remembers(prepared: Prepared) -> bool:
    """Return whether rows were computed from state that a recompute may give other last digits."""
    return any(p.state_table is not None and p.state_table.is_required for p in prepared.state_tables)


def _stands_on(table: OpenTable, prepared: Prepared) -> tuple[TargetState, RefreshRecord] | None:
    """Return the state of a table and its record, if its rows are what its query returned over the sources of another."""
    state = table.target.state()
    record = read_record(table.name, state)
    if record is None or state.external or record.skipped or record.fingerprint != table.prepared.fingerprint:
        return None
    read = {name for name in record.frontier if not is_state_table(name)}
    return (state, record) if read == prepared.sources.keys() else None


def _evolve(
    engine: Engine, table: OpenTable, analysed: Analysed, prepared: Prepared, reuse: Reuse
) -> RefreshReport | None:
    """Make the rows of another query of the stored ones, at the frontier that these stand for; None if others came first."""
    began, found = time.perf_counter(), _stands_on(table, prepared)
    if found is None:
        return None
    state, before = found
    reason = Reason(DEFINITION_CHANGED, "its query was replaced; the rows follow from the stored ones")
    # Without the state tables, which are another query's: the next refresh fills its own at this frontier.
    frontier = {name: seen for name, seen in before.frontier.items() if not is_state_table(name)}
    try:
        record = new_record("full", reason, frontier, prepared, table.workspace.jvm.options)
    except SourceError:
        return None  # the logs of its sources no longer reach back so far
    costs = table.costs or before.costs

    def write(inserted: int, deleted: int) -> str:
        seconds = round(time.perf_counter() - began, 3)
        took = Took(inserted=inserted, deleted=deleted, seconds=seconds, trigger="creation")
        return record.model_copy(update={"took": took, "costs": costs}).model_dump_json()

    new, redefine = _opened(engine, table, analysed, prepared)
    jvm = new.workspace.jvm
    try:
        with new.workspace.active():
            stored = analysed_plan(new.target.frame(state.version))
            rows = jvm.frame(reuse.over(jvm, stored)).toDF(*prepared.names)
            applied = new.target.overwrite(rows, write, new.target.state(), redefine=redefine)
    except ConflictError as error:
        if error.code == CONCURRENT_ALTER:
            raise
        return None
    engine.tables.keep(replace(new, costs=costs))
    new.state_tables.forget_other_generations()
    return RefreshReport(
        table=table.name,
        mode="full",
        reason=reason,
        rows_inserted=applied.rows_inserted,
        rows_deleted=applied.rows_deleted,
        frontier={name: seen.version for name, seen in frontier.items()},
        version=applied.version,
        seconds=time.perf_counter() - began,
    )


def adopt_columns(engine: Engine, table: OpenTable, request: Request) -> RefreshReport:
    """Recompute a table whose query returns other columns than it has, for a source has others: `SELECT *`."""
    after = table.definition.model_copy(update={"generation": table.definition.generation + 1})
    report = _swap(engine, table, replace(table.analysed, definition=after), table.prepared, request)
    engine.catalog.results.set_column_comments(table.name, after.options.column_comments)
    return report


def _swap(
    engine: Engine, table: OpenTable | FoundTable, analysed: Analysed, prepared: Prepared, request: Request
) -> RefreshReport:
    new, redefine = _opened(engine, table, analysed, prepared)
    report, new = _run(engine, new, replace(request, full=True, redefine=redefine), table)
    engine.tables.keep(new)
    new.state_tables.forget_other_generations()
    return report


def _opened(
    engine: Engine, table: OpenTable | FoundTable, analysed: Analysed, prepared: Prepared
) -> tuple[OpenTable, Redefinition]:
    """Return what the table will be, and what the commit changes beside its rows."""
    before, after = table.definition.options, analysed.definition.options
    workspace = engine.workspaces.of(analysed.definition.settings)
    with workspace.active():
        like = workspace.jvm.frame(analysed.plan).toDF(*prepared.names)
        engine.catalog.results.admit_columns(table.name, table.location, like)
        target = workspace.catalog.results.target(table.name, table.location)
        new = engine.tables.open(table.name, target, analysed, prepared)
    properties = {**property_changes(before, after), DEFINITION_PROPERTY: new.text}
    return new, Redefinition(properties, after.partition_by, instead_of=table.text)


def _run(
    engine: Engine, new: OpenTable, request: Request, table: OpenTable | FoundTable
) -> tuple[RefreshReport, OpenTable]:
    """Compute and swap; where refreshes of others come first, they are kept away meanwhile."""
    try:
        return engine.run(new, request, attempts=1)
    except ConflictError as error:
        if error.code == CONCURRENT_ALTER:
            raise
        costs = table.costs if isinstance(table, OpenTable) else None
        seconds = max(_HELD_SECONDS, _TIMES * ((costs and costs.full) or 0.0))
        with engine.suspensions.held_off(table.name, table.location, seconds):
            return engine.run(new, request)


def property_changes(before: TableOptions, after: TableOptions) -> dict[str, str | None]:
    """Return the properties of the user's own that change."""
    gone = dict.fromkeys(before.properties.keys() - after.properties.keys())
    return {**gone, **{k: v for k, v in after.properties.items() if before.properties.get(k) != v}}


def comment_change(before: TableOptions, after: TableOptions) -> dict[str, str | None]:
    """Return the comment, if it changes."""
    return {} if before.comment == after.comment else {"comment": after.comment}


def column_comments(before: TableOptions, after: TableOptions) -> dict[str, str]:
    """Return the comments that columns are to have; an empty one where it is taken away."""
    return {**dict.fromkeys(before.column_comments, ""), **after.column_comments}
