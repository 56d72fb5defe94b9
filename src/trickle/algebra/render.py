"""Plans as indented text: for ``explain``, golden files and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, cast

from trickle.algebra.node import shape_of
from trickle.algebra.plan import (
    Aggregate,
    Empty,
    Expand,
    GroupMap,
    InnerJoin,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OuterJoin,
    Plan,
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
    """Return a plan as a tree, one node per line, each with its note if it has one. A shared result is written once."""
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
    """Return one node as one line."""
    in_words = WORDS.get(type(node))
    return _by_fields(node) if in_words is None else in_words(node)


def _by_fields(node: Plan) -> str:
    """Return a node's name, and its fields other than inputs.

    >>> from trickle.algebra.plan import Empty, TopK
    >>> _by_fields(TopK((), 3, 0, Empty(())))
    'TopK [] 3 0'
    """
    inputs = {name for name, _ in shape_of(type(node)).inputs}
    shown = (f.name for f in fields(cast("Any", node)) if f.repr and f.name not in inputs)
    values = [v for name in shown if (v := getattr(node, name)) is not None and not isinstance(v, Plan)]
    return " ".join((type(node).__name__, *(f"[{_list(v)}]" if isinstance(v, tuple) else str(v) for v in values)))


def _list(parts: Iterable[object]) -> str:
    return ", ".join(str(p) for p in parts)


def _condition(join: Join) -> str:
    parts = [*map(str, join.keys), *map(str, join.residual)]
    hint = f" ({join.small} side is small)" if join.small else ""
    return (" AND ".join(parts) or "always") + hint


def _when(node: When) -> str:
    return f"When {node.trigger.name if isinstance(node.trigger, Shared) else 'never'} has rows"


# What reads better than the names and values of a node's fields.
WORDS: Final[Mapping[type[Plan], Callable[..., str]]] = {
    Scan: lambda n: f"Scan {n.source or 'the stored rows,'} {n.at} [{_list(c.name for c in n.base)}]",
    Values: lambda n: f"Values {n.text}",
    Empty: lambda _: "Empty",
    When: _when,
    InnerJoin: lambda n: f"InnerJoin {_condition(n)}",
    OuterJoin: lambda n: f"OuterJoin {n.kind} {_condition(n)}",
    SemiJoin: lambda n: f"SemiJoin {n.kind} {_condition(n)}",
    Aggregate: lambda n: f"Aggregate by [{_list(n.keys)}] [{_list(n.outputs)}]",
    Window: lambda n: f"Window by [{_list(n.partition)}] [{_list(n.functions)}]",
    RowWise: lambda n: n.label,
    GroupMap: lambda n: f"{n.label} by {', '.join(f'[{_list(k)}]' for k in n.keys)}",
    Expand: lambda n: f"Expand into {len(n.projections)} rows",
    Repeat: lambda _: "Repeat each row as often as its weight says",
    Union: lambda _: "Union",
    TopK: lambda n: f"TopK {n.limit} after {n.offset} by [{_list(n.order)}]",
    Loop: lambda n: f"Loop {n.id}",
    LoopRef: lambda n: f"LoopRef {n.loop} {n.at}",
    Iterate: lambda n: f"Iterate loop {n.loop} from",
}
