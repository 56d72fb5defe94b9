"""Brings the stream tables of a catalog to a set of definitions: the least that makes them so, in the order of the graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from trickle.catalyst.jvm import items
from trickle.catalyst.parse import names_read
from trickle.engine.alter import Alteration, refuse_move
from trickle.engine.arguments import check_differentiable, check_layout, check_mode, read_options
from trickle.errors import DefinitionError, SparkError, TrickleError
from trickle.model.definition import Definition
from trickle.model.events import ApplyPlanned
from trickle.model.graph import Graph
from trickle.model.names import split_name
from trickle.model.schedule import write_schedule
from trickle.model.spec import ApplyPlan, ApplyStep
from trickle.refresh.checks import check_columns
from trickle.refresh.record import known_costs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.engine.alter import Alter
    from trickle.model.spec import Action, Spec
    from trickle.model.table_options import TableOptions

_WHY: Final[Mapping[str, str]] = {
    "create": "is new",
    "nothing": "is as it should be",
    "options": "mode, schedule or options change in place",
    "evolve": "its query is replaced; the rows follow from the stored ones",
    "query": "its query is replaced, by one commit",
}


@dataclass(frozen=True, slots=True)
class Apply:
    """Applies sets of definitions."""

    alter: Alter

    def apply(self, specs: Sequence[Spec], *, dry_run: bool, prune: bool) -> ApplyPlan:
        """Find out what is to be done, all of it first; then do it.

        Raises:
            DefinitionError: ``CYCLE``, ``DUPLICATE_NAME``; or what ``create`` and ``alter`` raise. Nothing has changed then.
        """
        engine = self.alter.engine
        named = {engine.qualify(spec.name): spec for spec in specs}
        if len(named) < len(specs):
            twice = next(name for name in named if sum(engine.qualify(spec.name) == name for spec in specs) > 1)
            text = f"the set defines stream table '{twice}' twice."
            raise DefinitionError("DUPLICATE_NAME", text, hint="Give each name once, with its schema or without.")
        graph = self._graph(named)
        order = [name for wave in graph.waves(graph.upstream(named)) for name in wave if name in named]
        planning = _Planning(self.alter, graph)
        steps = {name: planning.step(name, named[name]) for name in order}
        others = self._others(named, graph, prune=prune)
        if dry_run:
            return ApplyPlan((*steps.values(), *others))
        engine.events.emit(ApplyPlanned(ApplyPlan((*steps.values(), *others))))
        done = [self._make(steps[name], named[name]) for name in order]
        for step in others:
            if step.action == "drop":
                self.alter.drop(step.name, cascade=False)
        return ApplyPlan((*done, *others), is_applied=True)

    def _graph(self, named: Mapping[str, Spec]) -> Graph:
        """Find out who will read whom: those of the set by their queries, others by what their last refreshes saw."""
        before = self.alter.find_graph().reads
        known = before.keys() | named.keys()
        after = {name: self._reads(spec, known, before.get(name, ())) for name, spec in named.items()}
        return Graph({**before, **after})

    def _reads(self, spec: Spec, known: Collection[str], before: tuple[str, ...]) -> tuple[str, ...]:
        """Name the stream tables that one of the set will read; a DataFrame reads what is there already."""
        engine = self.alter.engine
        if spec.reads:
            return tuple(name for name in map(engine.qualify, spec.reads) if name in known)
        own = spec.query if isinstance(spec.query, Definition) else None
        text = own.query if own is not None else spec.query
        if not isinstance(text, str):
            return before
        # A name without a schema means the one that the definition was made in.
        context = () if own is None else (own.catalog, own.schema_name)
        session = engine.spark._jsparkSession
        names = (engine.catalog.qualify((*context[: 3 - len(n)], *n)) for n in names_read(engine.jvm, session, text))
        return tuple(dict.fromkeys(name for name in names if name in known))

    def _make(self, step: ApplyStep, spec: Spec) -> ApplyStep:
        engine = self.alter.engine
        if step.action == "create":
            options = read_options(spec.options)
            engine.create(step.name, _query(spec), spec.mode, write_schedule(spec.schedule), options)
            return step
        if step.action == "nothing":
            return step
        action, report = self.alter.change(step.name, _alteration(spec))
        return replace(step, action=action, why=_WHY[action], seconds=None if report is None else report.seconds)

    def _others(self, named: Collection[str], graph: Graph, *, prune: bool) -> list[ApplyStep]:
        """Say what becomes of other stream tables in the schemas of the set; what is dropped comes before what it reads."""
        schemas = {_schema(name) for name in named}
        every = [name for name, _ in self.alter.engine.tables.list_all()]
        rest = [name for name in every if name not in named and _schema(name) in schemas]
        if not prune:
            return [ApplyStep(name, "left", "is not in the set, and stays") for name in rest]
        for name in rest:
            if kept := [reader for reader in graph.readers(name) if reader not in rest]:
                text = f"stream table '{name}' is not in the set, but {', '.join(kept)} would read it."
                raise DefinitionError("STILL_READ", text, hint="Put it into the set, or replace what reads it first.")
        readers_first = [name for wave in reversed(graph.waves(rest)) for name in wave]
        return [ApplyStep(name, "drop", "is not in the set") for name in readers_first]


@dataclass(frozen=True, slots=True)
class _Planning:
    """Finds out what becomes of each stream table of a set, one after the other, in the order of the graph.

    Attributes:
        graph: Who will read whom.
        schemas: The columns, as Spark's type, of the tables that will be made or replaced; None where nobody can tell yet.
    """

    alter: Alter
    graph: Graph
    schemas: dict[str, Any] = field(default_factory=dict)

    def step(self, name: str, spec: Spec) -> ApplyStep:
        """Plan one.

        Raises:
            DefinitionError: What cannot be used of it.
        """
        engine = self.alter.engine
        check_mode(spec.mode)
        options, schedule = read_options(spec.options), write_schedule(spec.schedule)
        changing = [read for read in self.graph.reads[name] if read in self.schemas]
        awaits = bool(changing) or spec.awaits
        # What is not there yet, or is still to change, has the columns that are planned for it.
        plan = self._analyse_over(name, spec, options, changing) if awaits else None
        action: Action
        if not engine.is_stream_table(name):
            action = "create"
            if not awaits:
                plan = engine.define(name, _query(spec), spec.mode, schedule, options)[0].plan
        else:
            refuse_move(name, engine.tables.find(name).definition.options, options)
            try:
                found = self.alter.plan(name, _alteration(spec), self.graph)
            except (DefinitionError, SparkError) as error:
                if not awaits or error.code == "CYCLE":
                    raise
                action = "query"
            else:
                action = found.action
                plan = plan if found.analysed is None or plan is not None else found.analysed[0].plan
        if action not in ("nothing", "options"):
            self.schemas[name] = None if plan is None else plan.schema()
        return ApplyStep(name, action, _WHY[action], self._seconds(name) if action == "query" else None)

    def _analyse_over(self, name: str, spec: Spec, options: TableOptions, changing: Collection[str]) -> Any:
        """Check a query over the tables as they will be; return its plan, None if nobody can tell yet."""
        own = spec.query if isinstance(spec.query, Definition) else None
        text = spec.query if own is None else own.query
        schemas = {read: self.schemas[read] for read in changing}
        if spec.awaits or not isinstance(text, str) or None in schemas.values():
            return None
        workspace = self.alter.engine.workspaces.of({} if own is None else own.settings)
        with workspace.active():
            plan = workspace.compiler.analyse_over(own or text, schemas)
            check_columns(plan)
            check_differentiable(name, spec.mode, workspace.compiler.frontend.obstacles(plan))
        check_layout(options, [str(attribute.name()) for attribute in items(plan.output())])
        return plan

    def _seconds(self, name: str) -> float | None:
        """Return what the last full refresh of a table took, None if nobody knows."""
        engine = self.alter.engine
        try:
            table = engine.tables.get(name)
        except TrickleError:
            return None  # its query no longer fits its sources: that is what is to be mended
        costs = table.costs or known_costs(table.target.state())
        return costs.full


def _schema(name: str) -> tuple[str, ...]:
    return split_name(name)[:-1]


def _alteration(spec: Spec) -> Alteration:
    return Alteration(_query(spec), spec.mode, write_schedule(spec.schedule), spec.options, keeps_options=False)


def _query(spec: Spec) -> str | DataFrame | Definition:
    query = spec.query
    return query() if callable(query) else query
