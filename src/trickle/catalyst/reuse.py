"""Finds out whether what a query returns follows from the rows that another one returned.

Law    new = f(old), f a chain of projections and filters
How    Catalyst itself says whether what is below the chain gives the same columns: it optimises both, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trickle.catalyst.jvm import items

if TYPE_CHECKING:
    from trickle.catalyst.frontend import Frontend
    from trickle.catalyst.jvm import Jvm

_CHAIN: Final = frozenset({"Project", "Filter", "SubqueryAlias"})


@dataclass(frozen=True, slots=True)
class Reuse:
    """How the rows of a query follow from stored ones.

    Attributes:
        chain: The projections and filters on top, the outermost first.
        columns: What the lowest of these reads: each attribute, and the place of the stored column that it is.
    """

    chain: tuple[Any, ...]
    columns: tuple[tuple[Any, int], ...]

    def over(self, jvm: Jvm, stored: Any) -> Any:
        """Return the plan over a plan of the stored rows."""
        found = list(items(stored.output()))
        plan = jvm.project([jvm.alias_as(found[place], attribute) for attribute, place in self.columns], stored)
        for node in reversed(self.chain):
            plan = node.withNewChildren(jvm.seq([plan]))
        return plan


def find_reuse(jvm: Jvm, frontend: Frontend, session: Any, old: Any, new: Any) -> Reuse | None:
    """Compare two analysed queries; None if the rows of the new one do not follow from those of the old one alone."""
    stored = list(items(old.output()))
    if max(len(stored), new.output().size()) > jvm.options.compared_columns:
        return None

    def optimised(plan: Any, attributes: Sequence[Any]) -> Any:
        named = [jvm.alias(attribute, f"c{place}") for place, attribute in enumerate(attributes)]
        return frontend.optimise(session, jvm.project(named, plan))

    singles = [optimised(old, [attribute]) for attribute in stored]
    chain: list[Any] = []
    wanted, below = list(items(new.output())), new
    needed = {str(attribute.exprId()) for attribute in wanted}
    while True:
        places = [_place(optimised(below, [attribute]), singles) for attribute in wanted]
        known = [place for place in places if place is not None]
        if known and len(known) == len(wanted):
            both = optimised(below, wanted), optimised(old, [stored[place] for place in known])
            if both[0].sameResult(both[1]):
                return Reuse(tuple(chain), tuple(zip(wanted, known, strict=True)))
        if jvm.name(below) not in _CHAIN or (jvm.contains(below, "PLAN_EXPRESSION") and _has_subquery(jvm, below)):
            return None
        chain.append(below)
        read = {str(attribute.exprId()) for attribute in items(below.references().toSeq())}
        # A filter passes on all that is needed above it.
        needed = read if jvm.name(below) == "Project" else needed | read
        below = below.children().apply(0)
        wanted = [attribute for attribute in items(below.output()) if str(attribute.exprId()) in needed]


def _place(single: Any, singles: Sequence[Any]) -> int | None:
    return next((place for place, other in enumerate(singles) if single.sameResult(other)), None)


def _has_subquery(jvm: Jvm, node: Any) -> bool:
    return any(jvm.contains(expr, "PLAN_EXPRESSION") for expr in items(node.expressions()))
