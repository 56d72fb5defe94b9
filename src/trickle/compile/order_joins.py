"""Orders the inner joins of a change plan so that they start from the change.

``(A join B) join change(C) -> (change(C) join B) join A``: each step joins a whole table with the small result so far, and two
whole tables never meet. Joins through projections that only pass columns on count as one tree. If several tables could come
next, the one with the smallest fan-out does, according to the row counts and value ranges in the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trickle.algebra.expr import Call, Col, Expr, KeyPair, passthrough
from trickle.algebra.plan import (
    Aggregate,
    Filter,
    InnerJoin,
    Iterate,
    Plan,
    Project,
    Repeat,
    RowWise,
    Scan,
    SemiJoin,
    Shared,
    TopK,
    Values,
)
from trickle.algebra.walk import rebuild, walk
from trickle.compile.push_keys import is_restriction

if TYPE_CHECKING:
    from trickle.algebra.node import OneInput


def has_few_rows(plan: Plan) -> bool:
    """Return whether a plan's rows are few because they come from a change or are restricted to its keys."""
    known = FEW_ROWS.get(type(plan))
    return plan.is_change if known is None else known(plan)


def _always(_plan: Plan) -> bool:
    return True


def _as_child(plan: OneInput) -> bool:
    return has_few_rows(plan.child)


def _few_groups(plan: Aggregate) -> bool:
    return not plan.keys or has_few_rows(plan.child)


def _few_pairs(plan: InnerJoin) -> bool:
    return has_few_rows(plan.left) or has_few_rows(plan.right)


def _few_with_partner(plan: SemiJoin) -> bool:
    return is_restriction(plan) or has_few_rows(plan.left)


def _is_changed_rows(plan: Scan) -> bool:
    return plan.at == "change"


FEW_ROWS: Final[Mapping[type[Plan], Callable[..., bool]]] = {
    Scan: _is_changed_rows,
    Values: _always,
    Shared: _always,
    Iterate: _always,
    TopK: _always,
    Filter: _as_child,
    Project: _as_child,
    RowWise: _as_child,
    Repeat: _as_child,
    Aggregate: _few_groups,
    InnerJoin: _few_pairs,
    SemiJoin: _few_with_partner,
}
"""Whether a kind of node has few rows; any other kind has few rows if it is a change."""


FanOut = Callable[[str, str], float]
"""The average number of rows of a source with the same value in a column."""


def unit_fan_out(_source: str, _column: str) -> float:
    """Assume one row per value, if nothing is known."""
    return 1.0


def magnitude(count: float) -> int:
    """Return the size of a count; counts of one size differ by less than a factor of four.

    >>> [magnitude(count) for count in (0.5, 1, 3.9, 4, 1_000_000)]
    [0, 0, 0, 1, 9]
    """
    return max(int(count).bit_length() - 1, 0) // 2


def order_joins(plan: Plan, fan_out: FanOut = unit_fan_out) -> Plan:
    """Reorder every tree of inner joins that has a small leaf, whole trees before their parts."""
    memo: dict[int, Plan] = {}

    def visit(node: Plan) -> Plan:
        done = memo.get(id(node))
        if done is None:
            done = memo[id(node)] = (
                _reordered(node, visit, fan_out) if isinstance(node, InnerJoin) else None
            ) or rebuild(node, tuple(visit(p) for p in node.inputs))
        return done

    return visit(plan)


@dataclass(slots=True)
class _Tree:
    """The leaves of a tree of inner joins, and all their conditions."""

    leaves: list[Plan] = field(default_factory=list)
    keys: list[KeyPair] = field(default_factory=list)
    residual: list[Expr] = field(default_factory=list)

    def flatten(self, plan: Plan) -> None:
        if isinstance(plan, InnerJoin):
            self.keys += plan.keys
            self.residual += plan.residual
            self.flatten(plan.left)
            self.flatten(plan.right)
        elif isinstance(plan, Project) and all(o.is_passthrough for o in plan.outputs) and _joins_below(plan):
            self.flatten(plan.child)
        else:
            self.leaves.append(plan)

    def take_conditions(self, left: Plan, right: Plan) -> tuple[tuple[KeyPair, ...], tuple[Expr, ...]]:
        """Remove the conditions that refer only to two plans; return the keys, oriented from left to right, and the rest."""
        turned = [(key, _oriented(key, left, right)) for key in self.keys]
        self.keys = [key for key, now in turned if now is None]
        have = left.ids | right.ids
        decided = tuple(r for r in self.residual if r.refs <= have)
        self.residual = [r for r in self.residual if not r.refs <= have]
        return tuple(now for _, now in turned if now is not None), decided


def _joins_below(plan: Plan) -> bool:
    while isinstance(plan, Project) and all(o.is_passthrough for o in plan.outputs):
        plan = plan.child
    return isinstance(plan, InnerJoin)


def _reordered(join: InnerJoin, visit: Callable[[Plan], Plan], fan_out: FanOut) -> Plan | None:
    tree = _Tree()
    tree.flatten(join)
    leaves = [visit(leaf) for leaf in tree.leaves]
    start = next((leaf for leaf in leaves if leaf.is_change), None) or next(
        (p for p in leaves if has_few_rows(p)), None
    )
    if start is None:
        return None
    done = start
    waiting = [leaf for leaf in leaves if leaf is not start]
    while waiting:
        connected = [w for w in waiting if _connected(done, w, tree.keys)]
        small = [w for w in connected or waiting if has_few_rows(w)]
        following = min(small or connected or waiting, key=lambda w: _expected(done, w, tree.keys, fan_out))
        waiting.remove(following)
        done = _joined(done, following, tree)
    # The remaining equalities have a side that needs several leaves.
    for key in tree.keys:
        done = Filter(Call("<=>" if key.null_safe else "=", (key.left, key.right)), done)
    return Project(passthrough(join.columns), done)


def _expected(left: Plan, right: Plan, keys: list[KeyPair], fan_out: FanOut) -> float:
    """Return the fan-out of a row to the right, by its most selective key."""
    read = {c.id: (p.source, c.name) for p in walk(right) if isinstance(p, Scan) for c in p.base}
    turned = [k.right for key in keys if (k := _oriented(key, left, right)) is not None]
    return min((fan_out(*read[e.column.id]) for e in turned if isinstance(e, Col) and e.column.id in read), default=1.0)


def _connected(left: Plan, right: Plan, keys: list[KeyPair]) -> bool:
    return any(_oriented(k, left, right) is not None for k in keys)


def _oriented(key: KeyPair, left: Plan, right: Plan) -> KeyPair | None:
    if key.left.refs <= left.ids and key.right.refs <= right.ids:
        return key
    if key.right.refs <= left.ids and key.left.refs <= right.ids:
        return KeyPair(key.right, key.left, key.null_safe)
    return None


def _joined(left: Plan, right: Plan, tree: _Tree) -> InnerJoin:
    """Join two plans on all conditions that refer only to them."""
    keys, residual = tree.take_conditions(left, right)
    return InnerJoin(left, right, keys, residual, small="left")
