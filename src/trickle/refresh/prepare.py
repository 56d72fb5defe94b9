"""From a definition to something that can be refreshed: analysed, optimised, lifted, compiled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trickle.algebra.plan import TopK
from trickle.algebra.walk import walk
from trickle.catalyst.determinism import fix_order, fix_sums
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
        obstacles: Why the query cannot be maintained incrementally; empty if it can.
        is_time_dependent: True if the result may change though no source does.
        names: The result's column names, as the query gives them.
        fingerprint: Of the query, and the views and SQL functions it uses; another one means another result.
        analysed: The query as Spark analysed it, to be run as it is if there are obstacles.
        without: The state tables that were left out because they are too big.
        has_one_answer: False if Spark may answer in several ways (ties in an order), of which Trickle takes one.
    """

    program: Program
    sources: Mapping[str, SourceTable]
    obstacles: tuple[Reason, ...]
    is_time_dependent: bool
    names: tuple[str, ...]
    fingerprint: str
    analysed: Any
    without: tuple[str, ...] = ()
    has_one_answer: bool = True

    @property
    def state_tables(self) -> tuple[Program, ...]:
        """The state tables to refresh first."""
        return self.program.state_tables

    @property
    def used(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that the query reads of each source."""
        return self.program.used_by_query

    def of_state_table(self, program: Program, sources: Mapping[str, SourceTable]) -> Prepared:
        """Return one of its state tables, made ready by itself."""
        read = {name: sources[name] for name in program.used}
        names = tuple(c.name for c in program.plan.columns)
        return replace(self, program=program, sources=read, names=names)


def prepare(
    jvm: Jvm,
    frontend: Frontend,
    session: Any,
    analysed: Any,
    resolve_leaf: Callable[[Any], SourceTable | None],
    disable: frozenset[str] = frozenset(),
    fingerprint: str = "",
    without: Collection[str] = (),
) -> Prepared:
    """Optimise, lift and compile an analysed query; without a session it is taken as optimised already.

    ``disable`` names optimisations, ``without`` names state tables that are not to be.
    """
    obstacles = frontend.obstacles(analysed)
    for obstacle in obstacles:
        if obstacle.code == "STREAMING_SOURCE":
            raise DefinitionError(obstacle.code, obstacle.text, hint=obstacle.hint)
    lift = Lift(jvm, resolve_leaf, frontend.recursion_limit(session))
    plan = lift.plan(analysed if session is None else frontend.optimise(session, analysed))
    ordered = fix_order(plan, jvm, lift)
    summed = fix_sums(ordered, jvm, lift)
    return Prepared(
        compile_plan(
            summed,
            disable,
            without,
            jvm.options.change_plans_kept,
            keeps_state=not (obstacles or lift.obstacles),
        ),
        lift.sources,
        (*obstacles, *lift.obstacles),
        frontend.is_time_dependent(obstacles),
        tuple(a.name() for a in items(analysed.output())),
        fingerprint,
        analysed,
        tuple(without),
        ordered is plan and not any(isinstance(p, TopK) for p in walk(plan)),
    )
