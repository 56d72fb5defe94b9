"""From resolved datasets to the stream tables that ``apply`` makes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from trickle.engine.arguments import check_differentiable, check_layout, check_mode, read_options
from trickle.errors import TrickleError
from trickle.model.names import shown_part
from trickle.model.spec import Spec
from trickle.project.places import bad_project, placed
from trickle.project.resolve import Resolver, bad_call, call, set_conf
from trickle.project.texts import with_views
from trickle.sql.names import replace_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.model.report import Validation
    from trickle.model.table_options import TableOptionWords
    from trickle.project.config import Defaults
    from trickle.project.elements import Dataset, Key, Query
    from trickle.project.resolve import Resolved

BY_HAND: Final = "by hand"


@dataclass(frozen=True, slots=True)
class Specs:
    """The stream tables of a resolved project.

    Attributes:
        defaults: What holds for those that say nothing else.
    """

    resolver: Resolver
    defaults: Defaults

    def all(self) -> list[Spec]:
        """Return the stream tables, each after those that it reads."""
        return [self._spec(key, found) for key, found in self._tables().items()]

    def _tables(self) -> Mapping[Key, Resolved]:
        return {key: found for key, found in self.resolver.done.items() if found.dataset.kind == "stream table"}

    def _spec(self, key: Key, found: Resolved) -> Spec:
        words = found.dataset.words
        schedule = words.schedule or self.defaults.schedule
        name = ".".join(map(shown_part, key))
        return Spec(
            name,
            self._query(found),
            words.mode or self.defaults.mode or "auto",
            None if schedule == BY_HAND else schedule,
            self._options(found.dataset),
            tuple(".".join(map(shown_part, read)) for read in self._reads(found.reads, "stream table")),
            awaits=found.frame is None
            or not self.resolver.unmade.isdisjoint(self._reads(found.reads, "streaming table")),
        )

    def _options(self, dataset: Dataset) -> TableOptionWords:
        said: dict[str, Any] = {**self.defaults.options(), **dataset.words.options()}
        if dataset.words.cluster_by:  # the other of the two is no default then
            said.pop("partition_by", None)
        if dataset.words.partition_by:
            said.pop("cluster_by", None)
        words: Any = said
        return words  # type: ignore[no-any-return]

    def _reads(self, keys: Collection[Key], kind: str) -> list[Key]:
        """Return the datasets of a kind among some and the views between, in the order they were resolved in."""
        reached: set[Key] = set()
        waiting = [*keys]
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                if self.resolver.done[key].dataset.kind == "view":
                    waiting += self.resolver.done[key].reads
        return [key for key, found in self.resolver.done.items() if key in reached and found.dataset.kind == kind]

    def _query(self, found: Resolved) -> str | Callable[[], DataFrame]:
        """Return a query as text if it is one, and so are the views that it reads; else what gives its DataFrame."""
        views = {key: self.resolver.done[key] for key in self._reads(found.reads, "view")}
        if found.text is None or found.dataset.conf or any(v.text is None or v.dataset.conf for v in views.values()):
            return lambda: self.frame(found.dataset, found.dataset.query, views)
        short = {key: key[-1] for key in views}
        texts = {key[-1]: replace_names(view.text or "", short) for key, view in views.items()}
        return with_views(replace_names(found.text, short), texts)

    def frame(self, dataset: Dataset, query: Query | None, views: Mapping[Key, Resolved]) -> DataFrame:
        """Return the DataFrame of a query, over the tables as they are now.

        Raises:
            DefinitionError: What is wrong with the query, with its place.
        """
        with self._viewed(views), set_conf(self.resolver.spark, dataset.conf):
            return self._frame(dataset, query)

    def _frame(self, dataset: Dataset, query: Query | None) -> DataFrame:
        try:
            found: Any = query if isinstance(query, str) else call(query, self.resolver.root, dataset.place)
        except AnalysisException as error:
            raise bad_call(error, self.resolver.root, dataset.place) from error
        return self.resolver.analyse_text(found, dataset.place) if isinstance(found, str) else found

    @contextmanager
    def _viewed(self, views: Mapping[Key, Resolved]) -> Iterator[None]:
        """Have the views of the project in the session for a while."""
        try:
            for key, view in views.items():
                with set_conf(self.resolver.spark, view.dataset.conf):
                    self._frame(view.dataset, view.dataset.query).createOrReplaceTempView(key[-1])
            yield
        finally:
            for key in views:
                self.resolver.spark.catalog.dropTempView(key[-1])

    def views_of(self, reads: Collection[Key]) -> Mapping[Key, Resolved]:
        """Return the views among some datasets, and those that these read."""
        return {key: self.resolver.done[key] for key in self._reads(reads, "view")}

    # -- checks

    def check(self, spec: Spec, found: Resolved) -> Validation | None:
        """Check all that can be checked of a table before it is made; None if what it reads has to be made first.

        Raises:
            DefinitionError: What cannot be used, with its place.
        """
        place = found.dataset.place
        try:
            check_mode(spec.mode)
            options = read_options(spec.options)
            if found.frame is None:
                return None
            check_layout(options, found.frame.columns)
            validation = self.resolver.trickle.validate(found.frame)
            mode = "differential" if found.dataset.must_be_incremental else spec.mode
            check_differentiable(spec.name, mode, validation.obstacles)
        except TrickleError as error:
            raise placed(place, error) from error
        if validation.obstacles and not isinstance(spec.query, str):
            first = validation.obstacles[0]
            text = f"a DataFrame that cannot be maintained incrementally cannot be stored: {first.text}"
            raise bad_project(place, text, "Let the function return the query as SQL text.", code=first.code)
        return validation

    def check_deep(self) -> None:
        """Check those that read other tables of the project; ``apply`` itself checks the others before it makes any.

        Raises:
            DefinitionError: What cannot be used, with its place.
        """
        for found, spec in self._with_specs():
            if found.reads or found.dataset.must_be_incremental:
                self.check(spec, found)

    def check_all(self) -> None:
        """Check all, for the place of what is wrong with one of them."""
        for found, spec in self._with_specs():
            self.check(spec, found)

    def checks(self) -> Mapping[str, Validation | TrickleError | None]:
        """Check all, and return what was found by the names of the tables."""
        found: dict[str, Validation | TrickleError | None] = {}
        for resolved, spec in self._with_specs():
            try:
                found[spec.name] = self.check(spec, resolved)
            except TrickleError as error:
                found[spec.name] = error
        return found

    def _with_specs(self) -> Iterator[tuple[Resolved, Spec]]:
        return zip(self._tables().values(), self.all(), strict=True)
