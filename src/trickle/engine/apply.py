"""Brings the stream tables of a catalog to a set of definitions: the least that makes them so, in the order of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trickle.catalyst.parse import names_read
from trickle.engine.alter import Alteration
from trickle.engine.arguments import check_mode, read_options
from trickle.errors import DefinitionError, SparkError, TrickleError
from trickle.model.definition import Definition
from trickle.model.events import ApplyPlanned
from trickle.model.graph import Graph
from trickle.model.names import split_name
from trickle.model.schedule import write_schedule
from trickle.model.spec import ApplyPlan, ApplyStep
from trickle.refresh.record import known_costs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.engine.alter import Alter
    from trickle.model.spec import Action, Spec

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
        reads = {name: self._reads(spec, named) for name, spec in named.items()}
        order = [name for wave in Graph(reads).waves() for name in wave]
        steps: dict[str, ApplyStep] = {}
        for name in order:
            is_new_above = any(steps[s].action in ("create", "query") for s in reads[name])
            steps[name] = self._step(name, named[name], is_new_above=is_new_above or named[name].awaits)
        others = self._others(frozenset(named), prune=prune)
        if dry_run:
            return ApplyPlan((*steps.values(), *others))
        engine.events.emit(ApplyPlanned(ApplyPlan((*steps.values(), *others))))
        done = [self._make(steps[name], named[name]) for name in order]
        for step in others:
            if step.action == "drop":
                self.alter.drop(step.name, cascade=False)
        return ApplyPlan((*done, *others), is_applied=True)

    def _reads(self, spec: Spec, named: Mapping[str, Spec]) -> tuple[str, ...]:
        """Name the stream tables of the set that one reads; a DataFrame reads what is there already."""
        engine = self.alter.engine
        if spec.reads:
            return tuple(name for name in map(engine.qualify, spec.reads) if name in named)
        own = spec.query if isinstance(spec.query, Definition) else None
        text = own.query if own is not None else spec.query
        if not isinstance(text, str):
            return ()
        # A name without a schema means the one that the definition was made in.
        context = () if own is None else (own.catalog, own.schema_name)
        session = engine.spark._jsparkSession
        names = (engine.catalog.qualify((*context[: 3 - len(n)], *n)) for n in names_read(engine.jvm, session, text))
        return tuple(dict.fromkeys(name for name in names if name in named))

    def _step(self, name: str, spec: Spec, *, is_new_above: bool) -> ApplyStep:
        check_mode(spec.mode)
        if not self.alter.engine.is_stream_table(name):
            options, schedule = read_options(spec.options), write_schedule(spec.schedule)
            if not is_new_above:
                self.alter.engine.define(name, _query(spec), spec.mode, schedule, options)
            return ApplyStep(name, "create", _WHY["create"])
        try:
            action: Action = self.alter.plan(name, _alteration(spec)).action
        except (DefinitionError, SparkError):
            if not is_new_above:
                raise
            # It reads what is not there yet, or is still to change.
            action = "query"
        return ApplyStep(name, action, _WHY[action], self._seconds(name) if action == "query" else None)

    def _seconds(self, name: str) -> float | None:
        """Return what the last full refresh of a table took, None if nobody knows."""
        engine = self.alter.engine
        try:
            table = engine.tables.get(name)
        except TrickleError:
            return None  # its query no longer fits its sources: that is what is to be mended
        costs = table.costs or known_costs(table.target.state())
        return costs.full

    def _make(self, step: ApplyStep, spec: Spec) -> ApplyStep:
        engine = self.alter.engine
        if step.action == "create":
            options = read_options(spec.options)
            engine.create(step.name, _query(spec), spec.mode, write_schedule(spec.schedule), options)
            return step
        if step.action == "nothing":
            return step
        action, report = self.alter.make(self.alter.plan(step.name, _alteration(spec)))
        return replace(step, action=action, why=_WHY[action], seconds=None if report is None else report.seconds)

    def _others(self, named: frozenset[str], *, prune: bool) -> list[ApplyStep]:
        """Say what becomes of other stream tables in the schemas of the set; what is dropped comes before what it reads."""
        schemas = {_schema(name) for name in named}
        every = [name for name, _ in self.alter.engine.tables.list_all()]
        rest = [name for name in every if name not in named and _schema(name) in schemas]
        if not prune:
            return [ApplyStep(name, "left", "is not in the set, and stays") for name in rest]
        graph = self.alter.find_graph()
        for name in rest:
            if kept := [reader for reader in graph.readers(name) if reader not in rest]:
                text = f"stream table '{name}' is not in the set, but {', '.join(kept)} would read it."
                raise DefinitionError("STILL_READ", text, hint="Put it into the set, or replace what reads it first.")
        return [ApplyStep(name, "drop", "is not in the set") for name in self.alter.readers_first(rest)]


def _schema(name: str) -> tuple[str, ...]:
    return split_name(name)[:-1]


def _alteration(spec: Spec) -> Alteration:
    return Alteration(_query(spec), spec.mode, write_schedule(spec.schedule), spec.options, keeps_options=False)


def _query(spec: Spec) -> str | DataFrame | Definition:
    query = spec.query
    return query() if callable(query) else query
