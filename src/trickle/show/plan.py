"""How a stream table is maintained, as HTML: the tree of operators with the law and the cost of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trickle.show.html import Html, badge, card, code, grid, join, tag

if TYPE_CHECKING:
    from trickle.model.explanation import Explanation, PlanNode


def explanation(explained: Explanation) -> Html:
    """Return the next refresh, what is stored with its operators, and the whole text folded away."""
    parts: list[object] = []
    if (foreseen := explained.next_refresh) is not None:
        steps = tag("ol", *(tag("li", step) for step in foreseen.steps), style="margin: 2px 0 6px 0;")
        parts += ["Next refresh, as things are now: ", badge(foreseen.mode), steps]
    if explained.obstacles:
        parts += ["Refreshed in full, because"]
        parts += [tag("div", tag("b", reason.code), f": {reason.text} {reason.hint}") for reason in explained.obstacles]
    for part in explained.parts:
        rows = [
            (
                tag("div", node.text, style=f"padding-left: {16 * depth}px; font-family: monospace;"),
                node.law,
                tag("span", node.cost, style="opacity: 0.75;"),
            )
            for node, depth in _walk(part.plan, 0)
        ]
        parts += [tag("div", part.title, style="font-weight: 600; margin-top: 6px;")]
        parts += [grid(("operator", "law", "cost besides the change"), rows)]
    parts += [tag("details", tag("summary", "As text, with the change plans"), code(str(explained)))]
    return card(f"How {explained.table} is maintained", join(parts))


def _walk(node: PlanNode, depth: int) -> Iterator[tuple[PlanNode, int]]:
    yield node, depth
    for child in node.inputs:
        yield from _walk(child, depth + 1)
