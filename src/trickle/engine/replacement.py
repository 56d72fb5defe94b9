"""Gives a stream table another query, or the columns that its query has come to return: rows and definition in one commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trickle.engine.events import told
from trickle.errors import ConflictError
from trickle.model.definition import DEFINITION_PROPERTY
from trickle.refresh.request import Request
from trickle.tables.contract import Redefinition

if TYPE_CHECKING:
    from trickle.engine.compiler import Analysed
    from trickle.engine.engine import Engine
    from trickle.engine.open_tables import OpenTable
    from trickle.model.definition import Definition
    from trickle.model.report import RefreshReport
    from trickle.model.table_options import TableOptions
    from trickle.refresh.prepare import Prepared

_HELD_SECONDS: Final = 600.0
_TIMES: Final = 4
"""How long refreshes stay away at most: so long, or so many times what the last full refresh took."""


def replace_query(
    engine: Engine, table: OpenTable, after: Definition, analysed: Analysed, prepared: Prepared
) -> RefreshReport:
    """Compute the rows of another query beside the table, and swap them in by one commit."""
    analysed = replace(analysed, definition=after)
    before = table.definition.options
    if before.cluster_by != after.options.cluster_by:
        engine.catalog.cluster(table.name, after.options.cluster_by)
    engine.catalog.results.set_properties(table.name, comment_change(before, after.options))
    with told(engine.events, table.name, "creation") as tell:
        return tell(_swap(engine, table, analysed, prepared, Request(trigger="creation")))


def adopt_columns(engine: Engine, table: OpenTable, request: Request) -> RefreshReport:
    """Recompute a table whose query returns other columns than it has, for a source has others: `SELECT *`."""
    after = table.definition.model_copy(update={"generation": table.definition.generation + 1})
    return _swap(engine, table, replace(table.analysed, definition=after), table.prepared, request)


def _swap(engine: Engine, table: OpenTable, analysed: Analysed, prepared: Prepared, request: Request) -> RefreshReport:
    before, after = table.definition.options, analysed.definition.options
    like = engine.jvm.frame(analysed.plan).toDF(*prepared.names)
    engine.catalog.results.admit_columns(table.name, table.location, like)
    new = engine.tables.open(table.name, table.target, analysed, prepared)
    properties = {**property_changes(before, after), DEFINITION_PROPERTY: new.text}
    redefine = Redefinition(properties, after.partition_by)
    report, new = _run(engine, new, replace(request, full=True, redefine=redefine), table)
    engine.tables.keep(new)
    new.state_tables.forget_other_generations()
    return report


def _run(engine: Engine, new: OpenTable, request: Request, table: OpenTable) -> tuple[RefreshReport, OpenTable]:
    """Compute and swap; where refreshes of others come first, they are kept away meanwhile."""
    try:
        return engine.run(new, request, attempts=1)
    except ConflictError:
        seconds = max(_HELD_SECONDS, _TIMES * ((table.costs and table.costs.full) or 0.0))
        with engine.suspensions.held_off(table.name, table.location, seconds):
            return engine.run(new, request)


def property_changes(before: TableOptions, after: TableOptions) -> dict[str, str | None]:
    """Return the properties of the user's own that change."""
    gone = dict.fromkeys(before.properties.keys() - after.properties.keys())
    return {**gone, **{k: v for k, v in after.properties.items() if before.properties.get(k) != v}}


def comment_change(before: TableOptions, after: TableOptions) -> dict[str, str | None]:
    """Return the comment, if it changes."""
    return {} if before.comment == after.comment else {"comment": after.comment}
