"""From a definition to something that can be refreshed: analysed, optimised, lifted, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trickle.catalyst.determinism import fix_order
from trickle.catalyst.jvm import items
from trickle.catalyst.lift import Lift
from trickle.compile.program import Program, compile_plan
from trickle.errors import DefinitionError

if TYPE_CHECKING:
    from trickle.catalyst.frontend import Frontend
    from trickle.catalyst.jvm import Jvm
    from trickle.model.reason import Reason
    from trickle.tables.contract import SourceTable


@dataclass(frozen=True, slots=True)
class Prepared:
    """A definition made ready.

    Attributes:
        program: The compiled plan.
        sources: The tables read, by the names the frontier uses.
        obstacles: Why the query cannot be maintained by its changes; empty if it can.
        is_time_dependent: True if the result may change though no source does.
        names: The result's column names, as the query gives them.
        fingerprint: Of the query and the views it reads; another one means another result.
        analysed: The query as Spark analysed it, to be run as it is if there are obstacles.
    """

    program: Program
    sources: Mapping[str, SourceTable]
    obstacles: tuple[Reason, ...]
    is_time_dependent: bool
    names: tuple[str, ...]
    fingerprint: str
    analysed: Any


def prepare(
    jvm: Jvm,
    frontend: Frontend,
    session: Any,
    analysed: Any,
    resolve_leaf: Callable[[Any], SourceTable | None],
    disable: frozenset[str] = frozenset(),
    fingerprint: str = "",
) -> Prepared:
    """Optimise, lift and compile an analysed query; without a session it is taken as optimised already."""
    obstacles = frontend.obstacles(analysed)
    for obstacle in obstacles:
        if obstacle.code == "STREAMING_SOURCE":
            raise DefinitionError(obstacle.code, obstacle.text, hint=obstacle.hint)
    lift = Lift(jvm, resolve_leaf, frontend.recursion_limit(session))
    plan = lift.plan(analysed if session is None else frontend.optimise(session, analysed))
    plan = fix_order(plan, jvm, lift)
    return Prepared(
        compile_plan(plan, disable),
        lift.sources,
        (*obstacles, *lift.obstacles),
        frontend.is_time_dependent(obstacles),
        tuple(a.name() for a in items(analysed.output())),
        fingerprint,
        analysed,
    )
