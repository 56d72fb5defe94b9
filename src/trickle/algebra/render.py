"""Plans as indented text: for ``explain``, golden files and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    Filter,
    GroupMap,
    InnerJoin,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Union,
    Values,
    When,
    Window,
)


def render(plan: Plan, note: Callable[[Plan], str] = lambda _: "", indent: int = 0) -> str:
    """Give a plan as a tree, one node a line, each with a note if there is one. A shared result is spelt out once."""
    seen: set[str] = set()
    lines: list[str] = []

    def visit(node: Plan, depth: int) -> None:
        said = note(node)
        lines.append("  " * depth + describe(node) + (f"   -- {said}" if said else ""))
        if isinstance(node, Shared):
            if node.name in seen:
                return
            seen.add(node.name)
        for child in node.inputs:
            visit(child, depth + 1)
        if isinstance(node, Iterate):
            lines.append("  " * depth + "by")
            visit(node.step, depth + 1)

    visit(plan, indent)
    return "\n".join(lines)


def describe(node: Plan) -> str:
    """Give one node as one line."""
    match node:
        case Scan(source=source, at=at):
            return f"Scan {source or 'the stored rows,'} {at} [{_list(c.name for c in node.base)}]"
        case Values():
            return f"Values {node.text}"
        case Empty():
            return "Empty"
        case Shared(name=name):
            return f"Shared {name}"
        case When():
            return f"When {node.trigger.name if isinstance(node.trigger, Shared) else 'never'} has rows"
        case Filter(condition=condition):
            return f"Filter {condition}"
        case Project(outputs=outputs):
            return f"Project [{_list(outputs)}]"
        case InnerJoin():
            return f"InnerJoin {_condition(node)}"
        case OuterJoin(kind=kind):
            return f"OuterJoin {kind} {_condition(node)}"
        case SemiJoin(kind=kind):
            return f"SemiJoin {kind} {_condition(node)}"
        case Aggregate(keys=keys, outputs=outputs):
            return f"Aggregate by [{_list(keys)}] [{_list(outputs)}]"
        case Window(functions=functions, partition=partition):
            return f"Window by [{_list(partition)}] [{_list(functions)}]"
        case RowWise(label=label):
            return label
        case GroupMap(label=label, keys=keys):
            return f"{label} by {', '.join(f'[{_list(k)}]' for k in keys)}"
        case Expand(projections=projections):
            return f"Expand into {len(projections)} rows"
        case Repeat():
            return "Repeat each row as often as its weight says"
        case Union():
            return "Union"
        case TopK(limit=limit, offset=offset, order=order):
            return f"TopK {limit} after {offset} by [{_list(order)}]"
        case Loop(id=id_):
            return f"Loop {id_}"
        case Iterate(loop=loop):
            return f"Iterate loop {loop} from"
        case LoopRef(loop=loop, at=at):
            return f"LoopRef {loop} {at}"
    return type(node).__name__


def _list(parts: Iterable[object]) -> str:
    return ", ".join(str(p) for p in parts)


def _condition(join: Join) -> str:
    parts = [*map(str, join.keys), *map(str, join.residual)]
    hint = f" ({join.small} side is small)" if join.small else ""
    return (" AND ".join(parts) or "always") + hint
