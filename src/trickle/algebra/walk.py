"""Walking and rebuilding plans: the three functions every pass is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from trickle.algebra.node import Plan, shape_of
from trickle.algebra.plan import Scan


def rebuild(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """Return the node over other inputs; the node itself if they are the same."""
    if all(a is b for a, b in zip(plan.inputs, inputs, strict=True)):
        return plan
    left = iter(inputs)
    values: dict[str, Any] = {}
    for name, is_many in shape_of(type(plan)).inputs:
        values[name] = tuple(next(left) for _ in getattr(plan, name)) if is_many else next(left)
    return replace(cast("Any", plan), **values)  # type: ignore[no-any-return]  # each kind of node is a dataclass


def transform(plan: Plan, rule: Callable[[Plan], Plan], memo: dict[int, Plan] | None = None) -> Plan:
    """Rebuild a plan bottom-up by a rule; a node that occurs twice is done once and stays shared."""
    memo = {} if memo is None else memo
    done = memo.get(id(plan))
    if done is None:
        done = rule(rebuild(plan, tuple(transform(p, rule, memo) for p in plan.inputs)))
        memo[id(plan)] = done
    return done


def walk(plan: Plan) -> Iterator[Plan]:
    """Return every node once, inputs before their readers."""
    seen: set[int] = set()
    found: list[Plan] = []

    def visit(node: Plan) -> None:
        seen.add(id(node))
        for child in node.inputs:
            if id(child) not in seen:
                visit(child)
        found.append(node)

    visit(plan)
    return iter(found)


def sources(plan: Plan) -> frozenset[str]:
    """Name the sources a plan reads."""
    return frozenset(p.source for p in walk(plan) if isinstance(p, Scan))


def often_read(plan: Plan) -> frozenset[int]:
    """Return the identities of the nodes that several others read."""
    readers = Counter(id(child) for node in walk(plan) for child in node.inputs if not isinstance(child, Scan))
    return frozenset(node for node, count in readers.items() if count > 1)
