"""Walking and rebuilding plans: the three functions every pass is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

from trickle.algebra.plan import (
    Empty,
    GroupMap,
    Iterate,
    Join,
    Loop,
    LoopRef,
    OneInput,
    Plan,
    Scan,
    Shared,
    Union,
    Values,
    When,
)


def rebuild(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """Give the node over other inputs; the node itself if they are the same."""
    if all(a is b for a, b in zip(plan.inputs, inputs, strict=True)):
        return plan
    match plan:
        case Join():
            return replace(plan, left=inputs[0], right=inputs[1])
        case Union() | GroupMap():
            return replace(plan, children=inputs)
        case Loop():
            return replace(plan, anchor=inputs[0], step=inputs[1])
        case Iterate():
            return replace(plan, seed=inputs[0])
        case When():
            return replace(plan, trigger=cast("Shared", inputs[0]), child=inputs[1])
        case OneInput():
            return replace(plan, child=inputs[0])  # type: ignore[type-var]  # each kind of it is a dataclass
        case Scan() | Values() | Empty() | LoopRef():
            return plan
    message = f"rebuild does not know {type(plan).__name__}"
    raise TypeError(message)


def transform(plan: Plan, rule: Callable[[Plan], Plan], memo: dict[int, Plan] | None = None) -> Plan:
    """Rebuild a plan bottom-up by a rule; a node that occurs twice is done once and stays shared."""
    memo = {} if memo is None else memo
    done = memo.get(id(plan))
    if done is None:
        done = rule(rebuild(plan, tuple(transform(p, rule, memo) for p in plan.inputs)))
        memo[id(plan)] = done
    return done


def walk(plan: Plan) -> Iterator[Plan]:
    """Give every node once, inputs before their readers."""
    seen: set[int] = set()

    def visit(node: Plan) -> Iterator[Plan]:
        if id(node) in seen:
            return
        seen.add(id(node))
        for child in node.inputs:
            yield from visit(child)
        yield node

    yield from visit(plan)


def sources(plan: Plan) -> frozenset[str]:
    """Name the sources a plan reads."""
    return frozenset(p.source for p in walk(plan) if isinstance(p, Scan))


def often_read(plan: Plan) -> frozenset[int]:
    """Give the identities of the nodes that several others read."""
    readers = Counter(id(child) for node in walk(plan) for child in node.inputs if not isinstance(child, Scan))
    return frozenset(node for node, count in readers.items() if count > 1)
