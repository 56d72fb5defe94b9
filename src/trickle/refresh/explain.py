"""How a stream table is maintained, as text: the plan with each node's law, and the change plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from trickle.algebra.plan import (
    Aggregate,
    Expand,
    Filter,
    InnerJoin,
    Loop,
    OuterJoin,
    Plan,
    Project,
    RowWise,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from trickle.algebra.render import render

if TYPE_CHECKING:
    from trickle.refresh.prepare import Prepared

LAWS: Final[Mapping[type[Plan], str]] = {
    Filter: "linear: filter the change",
    Project: "linear: project the change",
    RowWise: "linear: only changed rows are expanded or evaluated",
    Expand: "linear: only changed rows are expanded",
    Union: "linear: the children's changes add up",
    InnerJoin: "bilinear: change(L) with new(R) + old(L) with change(R)",
    OuterJoin: "inner join + padded anti joins",
    SemiJoin: "changed left rows looked up; left rows of changed right keys looked up before and after",
    Aggregate: "by key: groups of changed rows recomputed",
    Window: "by key: partitions of changed rows recomputed",
    TopK: "top before and after",
    Loop: "recursion: the change is followed through the steps",
}


def _law(node: Plan) -> str:
    if isinstance(node, Aggregate) and not node.keys:
        return "one row: recomputed when its input changed"
    if isinstance(node, Window) and not node.partition:
        return "no PARTITION BY: recomputed when its input changed"
    if isinstance(node, SemiJoin) and not node.keys:
        return "no equality to look up by: all left rows looked up before and after when the right side changed"
    return LAWS.get(type(node), "")


def explain_text(name: str, mode: str, prepared: Prepared) -> str:
    """Give the whole explanation."""
    program = prepared.program
    lines = [f"Stream table {name} (mode {mode})"]
    for source, columns in sorted(program.used.items()):
        lines.append(f"  reads {source}: {', '.join(columns)}")
    lines += ["", "Plan, and the law of each node", render(program.plan, _law, 1)]
    if prepared.obstacles:
        lines += ["", "Refreshed in full, because"]
        lines += [f"  {o}" + (f" {o.hint}" if o.hint else "") for o in prepared.obstacles]
        return "\n".join(lines)
    change = program.derive(frozenset(prepared.sources), frozenset())
    if change.change is not None:
        lines += ["", "Change plan when every source changed; applied as a bag", render(change.change, indent=1)]
    elif change.keys is not None and change.rows is not None:
        keys = ", ".join(c.name for c in program.keyed.keys) if program.keyed else ""
        applied = (
            f"applied by replacing rows of the touched keys ({keys})" if keys else "applied by replacing the one row"
        )
        lines += ["", f"Change plan when every source changed; {applied}", "  touched:", render(change.keys, indent=2)]
        lines += ["  new rows:", render(change.rows, indent=2)]
    return "\n".join(lines)
