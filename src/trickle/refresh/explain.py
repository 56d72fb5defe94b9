"""How a stream table is maintained, as text: the plan with each node's law, the change plan, the steps of the next refresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from trickle.algebra.plan import Shared
from trickle.algebra.render import describe as describe_node
from trickle.algebra.render import render
from trickle.compile.change_plan import AddToState, ApplyBag, ReplaceKeys
from trickle.compute.inputs import fan_out_of
from trickle.errors import TrickleError
from trickle.model.explanation import Explanation, Foreseen, PlanNode, StoredPart
from trickle.model.options import OPTIMISATIONS
from trickle.refresh.decide import decide
from trickle.refresh.look import look
from trickle.refresh.steps import AdvanceFrontier, ApplyChange, Fail, NoData, Recompute, Step, describe
from trickle.rules import CHANGE_RULES

if TYPE_CHECKING:
    from trickle.algebra.plan import Plan
    from trickle.compile.program import Program
    from trickle.model.definition import Mode
    from trickle.refresh.prepare import Prepared
    from trickle.refresh.request import Request
    from trickle.refresh.tables import RefreshTables
    from trickle.tables.contract import SourceTable


def _law(node: Plan) -> str:
    rule = CHANGE_RULES.get(type(node))
    return "" if rule is None else rule.law_of(node)


def _cost(node: Plan) -> str:
    rule = CHANGE_RULES.get(type(node))
    return "" if rule is None or not rule.law_of(node) else rule.cost


def _tree(node: Plan, seen: set[str]) -> PlanNode:
    """Return a plan as a tree of texts; what a shared result is made of is told once."""
    is_told = isinstance(node, Shared) and node.name in seen
    if isinstance(node, Shared):
        seen.add(node.name)
    inputs = () if is_told else tuple(_tree(child, seen) for child in node.inputs)
    return PlanNode(describe_node(node), _law(node), _cost(node), inputs)


def _next(foreseen: Foreseen) -> str:
    return "\n".join([f"Next refresh, as things are now: {foreseen.mode}", *(f"  {step}" for step in foreseen.steps)])


def foresee(tables: RefreshTables, request: Request) -> Foreseen:
    """Return the steps that ``decide`` returns for the current situation; changes nothing."""
    try:
        now = look(tables, tables.target.state(), request)
        steps = decide(now)
    except TrickleError as error:
        steps = (Fail(error),)
    return Foreseen(foreseen_mode(steps), tuple(map(describe, steps)))


def foreseen_mode(steps: Sequence[Step]) -> str:
    """Name the mode of a refresh by its steps."""
    for step in steps:
        match step:
            case NoData():
                return "no_data"
            case Recompute():
                return "full"
            case ApplyChange() | AdvanceFrontier():
                return "differential"
            case Fail():
                return "an error"
    return "nothing"


def explain_text(tables: RefreshTables, request: Request) -> Explanation:
    """Return the whole explanation: what the next refresh would do, and how the table is maintained."""
    name, prepared = tables.target.name, tables.prepared
    foreseen = foresee(tables, request)
    text = "\n".join([f"Stream table {name} (mode {tables.mode})", *_plans(prepared), "", _next(foreseen)])
    return Explanation(text, name, _parts(prepared), prepared.obstacles, foreseen)


def explain_prepared(prepared: Prepared, mode: Mode = "auto") -> Explanation:
    """Return how a query would be maintained if it were a stream table."""
    can = "recomputed at each refresh" if prepared.obstacles or mode == "full" else "maintained by its changes"
    can += f" (mode {mode})" if mode != "auto" else ""
    text = "\n".join([f"As a stream table, this query is {can}", *_plans(prepared)])
    return Explanation(text, "this query", _parts(prepared), prepared.obstacles)


def _parts(prepared: Prepared) -> tuple[StoredPart, ...]:
    stored = [] if prepared.obstacles else [p for p in prepared.state_tables if p.state_table is not None]
    parts = [StoredPart(f"State table {p.state_table.name}", _tree(p.plan, set())) for p in stored if p.state_table]
    return (*parts, StoredPart("Stream table", _tree(prepared.program.plan, set())))


def _plans(prepared: Prepared) -> list[str]:
    """Show the columns read, the plans with their laws, and the change plans."""
    lines = []
    for source, columns in sorted(prepared.used.items()):
        lines += [f"  reads {source}: {', '.join(columns)}", *_ties(prepared.sources[source], columns)]
        lines += _keys(prepared.sources[source])
    if prepared.obstacles:
        lines += ["", "Plan, and the law of each node", render(prepared.program.plan, _law, 1)]
        lines += ["", "Refreshed in full, because"]
        lines += [f"  {o}" + (f" {o.hint}" if o.hint else "") for o in prepared.obstacles]
        return lines
    for part in prepared.state_tables:
        state_table = part.state_table
        if state_table is None:
            continue
        kind = "a result that others read"
        if state_table.state is not None:
            additive = "an additive" if state_table.state.is_additive else "an"
            kind = f"the state of {additive} aggregate"
        elif state_table.is_required:
            kind = "values that may have other last digits when they are computed again"
        lines += ["", f"State table {state_table.name}, kept in a table of its own: {kind}", render(part.plan, _law, 1)]
        lines += _changes(part, prepared)
    lines += ["", "Plan, and the law of each node", render(prepared.program.plan, _law, 1)]
    off = prepared.program.disable & OPTIMISATIONS
    lines += [*_changes(prepared.program, prepared), "", f"Optimisations: {', '.join(sorted(OPTIMISATIONS - off))}"]
    return [*lines, *([f"  switched off: {', '.join(sorted(off))}"] if off else [])]


def _ties(source: SourceTable, columns: Sequence[str]) -> list[str]:
    """Show what of a source only Spark can read, and why."""
    return [f"    which Spark must read for {why}" for why in source.left_to_spark(source.head(), columns)]


def _keys(source: SourceTable) -> list[str]:
    """Show the declared keys of a source."""
    keys = source.keys(source.head())
    declared = [f"is identified by {', '.join(keys.primary)}"] if keys.primary else []
    declared += [f"refers to {key.name} by {', '.join(key.columns)}" for key in keys.foreign]
    return [f"    which {', '.join(declared)}"] if declared else []


def _changes(program: Program, prepared: Prepared) -> list[str]:
    """Show the change plan for the case that everything changed, and how its result is applied."""

    def fan_out(name: str, column: str) -> float:
        source = prepared.sources.get(name)  # None for a state table and for the stream table itself
        return 1.0 if source is None else fan_out_of(source, source.head(), column)

    plan = program.derive(frozenset(program.used), fan_out)
    head = "Change plan when every source changed; applied"
    match plan:
        case AddToState():
            return ["", f"{head} by adding it to the state", render(plan.change, indent=1)]
        case ReplaceKeys():
            keys = ", ".join(c.name for c in plan.keys)
            how = f"by replacing rows of the touched keys ({keys})" if keys else "by replacing the one row"
            touched = ["", f"{head} {how}", "  touched:", render(plan.touched, indent=2)]
            return [*touched, "  new rows:", render(plan.rows, indent=2)]
        case ApplyBag(change=change, shortcut=shortcut):
            lines = ["", f"{head} as a bag", render(change if shortcut is None else shortcut.change, indent=1)]
            if shortcut is not None and shortcut.unless is not None:
                lines += ["  unless there are rows in", render(shortcut.unless, indent=2)]
            elif shortcut is not None:
                lines += ["  unless the stored rows are too many for the driver"]
            return lines if shortcut is None else [*lines, "  then", render(change, indent=2)]
        case _:
            assert_never(plan)
