"""What is done with a project: plan, apply, validate, fill its streaming tables, select some of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trickle.engine.verbs import verb
from trickle.errors import DefinitionError, SparkError
from trickle.model.names import quote
from trickle.project.load import working_in
from trickle.project.resolve import Resolver
from trickle.project.specs import Specs
from trickle.project.streams import Streams

if TYPE_CHECKING:
    from trickle.api import Trickle
    from trickle.errors import TrickleError
    from trickle.model.report import Validation
    from trickle.model.spec import ApplyPlan
    from trickle.project.elements import Elements
    from trickle.project.load import Project

Show = Callable[[str], None]


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Work:
    """A project over a session."""

    trickle: Trickle
    project: Project

    @verb
    def enter(self) -> bool:
        """Make the schema of the project the current one of the session; return whether it was not there, and was made."""
        spark = self.trickle.spark
        if self.project.config.catalog is not None:
            spark.catalog.setCurrentCatalog(self.project.config.catalog)
        schema = quote(self.project.schema)
        is_new = not spark.catalog.databaseExists(self.project.schema)
        if is_new:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        spark.sql(f"USE {schema}")
        return is_new

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Do the same; a schema that was made for it, and is empty in the end, is dropped."""
        is_new = self.enter()
        try:
            yield
        finally:
            if is_new:
                with suppress(SparkError):  # it has tables now
                    self._drop_schema()

    @verb
    def _drop_schema(self) -> None:
        self.trickle.spark.sql(f"DROP SCHEMA {quote(self.project.schema)}")

    def load(self) -> Elements:
        """Read the files of the project."""
        return self.project.load(self.trickle.spark)

    @verb
    def plan(self, *, prune: bool = False, show: Show = _silent) -> ApplyPlan:
        """Say what ``apply`` would do; changes nothing.

        Raises:
            DefinitionError: What is wrong with the project, with its place.
        """
        with working_in(self.project.root):
            return self._apply(self._specs(show), prune=prune, dry_run=True)

    @verb
    def apply(self, *, prune: bool = False, show: Show = _silent) -> ApplyPlan:
        """Bring the stream tables to what the project says: all is checked first, then streaming tables are filled.

        Raises:
            DefinitionError: What is wrong with the project, with its place. Nothing has changed then.
            SparkError: A table could not be made; those before it stand.
        """
        with working_in(self.project.root):
            specs = self._specs(show)
            if specs.resolver.elements.flows:
                self._apply(specs, prune=prune, dry_run=True)
                self._streams(specs).fill(show)
                if specs.resolver.unmade:
                    specs = self._specs(show)
            return self._apply(specs, prune=prune, dry_run=False)

    def _apply(self, specs: Specs, *, prune: bool, dry_run: bool) -> ApplyPlan:
        specs.check_deep()
        try:
            return self.trickle.apply(specs.all(), dry_run=dry_run, prune=prune)
        except DefinitionError:
            specs.check_all()  # says where
            raise

    @verb
    def fill(self, show: Show = _silent) -> tuple[str, ...]:
        """Let the streaming tables of the project take what is new."""
        # In whatever thread: files that ask for the active session get the one with the project's views.
        with working_in(self.project.root), self.trickle._engine.workspaces.own.active():
            specs = self._specs(show, streams_only=True)
            return self._streams(specs).fill(show)

    @verb
    def validate(self, show: Show = _silent) -> Mapping[str, Validation | TrickleError | None]:
        """Check each stream table of the project: whether it can be maintained, or what is wrong with it."""
        with working_in(self.project.root):
            return self._specs(show).checks()

    def _specs(self, show: Show, *, streams_only: bool = False) -> Specs:
        show("Reading the project")
        resolver = Resolver(self.trickle, self.load(), self.project.root)
        show("Analysing")
        resolver.resolve(streams_only=streams_only)
        return Specs(resolver, self.project.config.defaults)

    def _streams(self, specs: Specs) -> Streams:
        return Streams(specs, self.project.storage)
