"""Lowers nodes that call users' functions: generators, UDFs, functions over groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trickle.algebra.plan import GroupMap, RowWise
from trickle.catalyst.jvm import items
from trickle.catalyst.lowered import Lowered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trickle.algebra.plan import Plan
    from trickle.catalyst.lower import Lower


def _lower_row_wise(lower: Lower, plan: RowWise) -> Lowered:
    """Build a generator, or the evaluation of UDFs."""
    child = lower.lower(plan.child)
    fresh = {c.id: c.handle.newInstance() for c in plan.made}
    renaming = [(lower.handles[r], child.attributes[r]) for r in sorted(plan.refs)]
    node = plan.handle
    if lower.jvm.name(node) == "Generate" or lower.jvm.name(node).endswith("UDTF"):
        # A UDTF goes back to the generator it was: the analyser refuses one that is extracted already.
        is_generate = lower.jvm.name(node) == "Generate"
        (generator,) = lower.jvm.rename([node.generator() if is_generate else node.udtf()], renaming)
        made = lower.jvm.seq(fresh.values())
        outer = node.outer() if is_generate else False
        node = lower.jvm.plan("Generate", generator, lower.jvm.nil, outer, lower.jvm.none, made, child.plan)
    else:
        renaming += [(c.handle, fresh[c.id]) for c in plan.made]
        node = node.rewriteAttrs(lower.jvm.attribute_map(renaming)).withNewChildren(lower.jvm.seq([child.plan]))
    return Lowered(node, {**child.attributes, **fresh})


def _lower_group_map(lower: Lower, plan: GroupMap) -> Lowered:
    """Build the call of a function for groups."""
    jvm = lower.jvm
    node, below = plan.handle.node, plan.handle.below
    renaming: list[tuple[Any, Any]] = []
    children = []
    for child, nodes in zip(plan.children, below, strict=True):
        lowered = lower.lower(child)
        renaming += [(lower.handles[c.id], lowered.attributes[c.id]) for c in child.columns if c.id in lower.handles]
        over = jvm.project(lowered.named(child.columns), lowered.plan)
        for one in reversed(nodes):
            over = one.rewriteAttrs(jvm.attribute_map(renaming)).withNewChildren(jvm.seq([over]))
        children.append(over)
    if jvm.name(node).endswith("UDTF"):
        made = [c.handle.newInstance() for c in plan.made]
        called = jvm.plan("Generate", node.udtf(), jvm.nil, False, jvm.none, jvm.seq(made), children[0])
    else:
        called = node.rewriteAttrs(jvm.attribute_map(renaming)).withNewChildren(jvm.seq(children))
        made = list(items(called.output()))
    named = [jvm.alias(a, a.name()) for a in made]
    attributes = {c.id: n.toAttribute() for c, n in zip(plan.made, named, strict=True)}
    return Lowered(jvm.project(named, called), attributes)


FUNCTIONS: Final[Mapping[type[Plan], Callable[..., Lowered]]] = {
    RowWise: _lower_row_wise,
    GroupMap: _lower_group_map,
}
