"""Makes each scan read only the columns that the query uses.

``Scan orders(12 columns) -> Scan orders(3 columns)``: fewer bytes read, and an update of an unused column cancels out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trickle.algebra.plan import Plan, Project, Scan
from trickle.algebra.walk import rebuild, walk

if TYPE_CHECKING:
    from trickle.algebra.expr import Output


def narrow_scans(plan: Plan) -> Plan:
    """Drop the columns of scans and projections that nothing reads; keep at least one, to count rows."""
    used = _used(plan)
    done: dict[int, Plan] = {}

    def narrowed(node: Plan) -> Plan:
        if id(node) not in done:
            inputs = tuple(map(narrowed, node.inputs))
            if isinstance(node, Scan):
                done[id(node)] = replace(node, base=tuple(c for c in node.base if c.id in used) or node.base[:1])
            elif isinstance(node, Project):
                done[id(node)] = replace(node, outputs=_kept_outputs(node, used), child=inputs[0])
            else:
                done[id(node)] = rebuild(node, inputs)
        return done[id(node)]

    return narrowed(plan)


def _used(plan: Plan) -> frozenset[int]:
    """List the columns that the result depends on."""
    nodes = list(walk(plan))
    by_position = (p.ids for node in nodes if node.by_position for p in node.inputs)
    by_name = (node.reads for node in nodes if not isinstance(node, Project))
    used = plan.ids.union(*by_position, *by_name)
    projects = [node for node in nodes if isinstance(node, Project)]
    while True:
        more = used.union(*(o.expr.refs for p in projects for o in _kept_outputs(p, used)))
        if more == used:
            return used
        used = more


def _kept_outputs(project: Project, used: frozenset[int]) -> tuple[Output, ...]:
    return tuple(o for o in project.outputs if o.column.id in used) or project.outputs[:1]
