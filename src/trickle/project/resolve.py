"""Finds out what the datasets of a project read, and analyses all of them before any table is made.

Each dataset gets a temporary view in the session that stands in for it, with the plan of its query: those that read it
are analysed over that, not over a table that is not there yet, or is still of another query. What a SQL text reads is
parsed. What a Python function reads is found by calling it: until a dataset is resolved, its stand-in is a view of a table
that does not exist, under a name that tells which dataset was asked for; that one is resolved first, and the function
called again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from trickle.catalyst.jvm import analysed_plan, items
from trickle.catalyst.parse import names_read, parse_query
from trickle.errors import DefinitionError, TrickleError, kind_of
from trickle.model.names import quote, shown_part
from trickle.project.places import Place, bad_project, placed
from trickle.project.python_files import BAD_PYTHON, python_failed
from trickle.sql.names import replace_names

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from trickle.api import Trickle
    from trickle.project.elements import Dataset, Elements, Key, Query

_TRAP: Final = "__trickle_unresolved_"
_STAND_IN: Final = "__trickle_"
_NOT_FOUND: Final = "TABLE_OR_VIEW_NOT_FOUND"
_SPARK_PLACE: Final = re.compile(r"[;\s]*\(?\bline (\d+),? pos \d+\)?")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A dataset, analysed.

    Attributes:
        reads: The datasets of the project that it reads.
        frame: Its rows; None if they cannot be told before what it reads has been made.
        text: Its query as SQL text; None if it is a DataFrame.
    """

    dataset: Dataset
    reads: frozenset[Key]
    frame: DataFrame | None
    text: str | None


@dataclass(slots=True)
class Resolver:
    """Resolves the datasets of a project.

    Attributes:
        root: The folder of the project.
        done: What was resolved, each after what it reads.
        unmade: The streaming tables that are not there yet.
    """

    trickle: Trickle
    elements: Elements
    root: Path
    done: dict[Key, Resolved] = field(default_factory=dict)
    unmade: set[Key] = field(default_factory=set)
    _empty: dict[Key, DataFrame] = field(default_factory=dict)
    _viewed: set[Key] = field(default_factory=set)

    def resolve(self, *, streams_only: bool = False) -> Mapping[Key, Resolved]:
        """Analyse all datasets, or streaming tables and what they read; return them, each after what it reads.

        Raises:
            DefinitionError: ``CYCLE``, with the places; or what is wrong with a query.
        """
        with self._stand_ins():
            for key in self.elements.of_kind("streaming table", "sink"):
                self._visit(key, ())
            if streams_only:
                return self.done
            # Flows would take these for streams; what else reads them takes them for tables.
            for key, frame in self._empty.items():
                self._view(key, frame)
            self._empty = {}
            for key in self.elements.datasets:
                self._visit(key, ())
        return self.done

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.trickle.spark

    # -- one after the other

    def _visit(self, key: Key, path: tuple[Key, ...]) -> None:
        if key in self.done:
            return
        dataset = self.elements.datasets[key]
        if key in path:
            raise self._cycle((*path[path.index(key) :], key))
        self._refuse_stream_over_table(dataset, path)
        if dataset.kind in ("streaming table", "sink"):
            resolved = self._visit_flows(key, dataset, (*path, key))
        else:
            resolved = self._analyse(dataset, dataset.query, dataset.place, dataset.conf, (*path, key))
            check_schema(dataset, resolved.frame)
        self.done[key] = resolved
        if resolved.frame is not None:
            self._stand_in(key, dataset, resolved.frame)

    def _visit_flows(self, key: Key, dataset: Dataset, path: tuple[Key, ...]) -> Resolved:
        """Analyse the flows into a streaming table."""
        reads: set[Key] = set()
        frame: DataFrame | None = None
        for flow in self.elements.flows_into(key):
            found = self._analyse(dataset, flow.query, flow.place, flow.conf, path)
            reads |= found.reads
            if found.frame is not None and not found.frame.isStreaming:
                hint = "Read its source with spark.readStream, or STREAM(…) in SQL; or make it a materialized view."
                raise bad_project(flow.place, f"the flow {flow.name!r} reads no stream.", hint, code="NOT_A_STREAM")
            frame = frame if frame is not None else found.frame
        return Resolved(dataset, frozenset(reads), frame, None)

    def _refuse_stream_over_table(self, dataset: Dataset, path: tuple[Key, ...]) -> None:
        reader = self.elements.datasets[path[-1]] if path else None
        if reader is not None and reader.kind in ("streaming table", "sink") and dataset.kind == "stream table":
            text = f"the streaming table {reader.name!r} reads the stream table {dataset.name!r}."
            hint = "Streaming tables are filled before stream tables: read what that one is made from."
            raise bad_project(reader.place, text, hint, code="STREAM_OVER_TABLE")

    def _analyse(
        self, dataset: Dataset, query: Query | None, place: Place, conf: Mapping[str, str], path: tuple[Key, ...]
    ) -> Resolved:
        found: Any = query
        reads: set[Key] = set()
        with set_conf(self.spark, conf):
            if not isinstance(found, str):
                found = self._call(query, place, path, reads)
            text = found if isinstance(found, str) else None
            frame = self._sql(found, place, path, reads) if isinstance(found, str) else found
        return Resolved(dataset, frozenset(reads), frame, text)

    def _sql(self, text: str, place: Place, path: tuple[Key, ...], reads: set[Key]) -> DataFrame | None:
        """Analyse a SQL text over the stand-ins of what it reads; None if one of these has none."""
        engine = self.trickle._engine
        try:
            names = names_read(engine.jvm, self.spark._jsparkSession, text)
        except DefinitionError as error:
            raise self._bad_sql(error, place) from error
        stand_ins = {}
        for name in sorted(names):
            key = self.elements.key(name)
            if key in self.elements.datasets:
                self._visit(key, path)
                reads.add(key)
                if key in self._viewed:
                    stand_ins[name] = self._stand_in_name(key)
        if any(key in self._empty or self.done[key].frame is None for key in reads):
            return None
        return self.analyse_text(replace_names(text, stand_ins), place)

    def analyse_text(self, text: str, place: Place) -> DataFrame:
        """Analyse a SQL text as it stands.

        Raises:
            DefinitionError: ``BAD_SQL``, ``NOT_A_QUERY``.
        """
        engine = self.trickle._engine
        try:
            parse_query(engine.jvm, self.spark._jsparkSession, text)  # Spark would run a command
            return self.spark.sql(text)
        except DefinitionError as error:
            raise self._bad_sql(error, place) from error
        except PySparkException as error:
            raise bad_query(error, place) from error

    @staticmethod
    def _bad_sql(error: DefinitionError, place: Place) -> TrickleError:
        cause = error.__cause__
        return bad_query(cause, place) if isinstance(cause, PySparkException) else placed(place, error)

    def _call(self, query: Any, place: Place, path: tuple[Key, ...], reads: set[Key]) -> DataFrame | str | None:
        """Call a function until all that it reads is resolved; None if that cannot be before it is made."""
        while True:
            try:
                found = call(query, self.root, place)
            except AnalysisException as error:
                missing = self._missing(error)
                if missing is None:
                    raise bad_call(error, self.root, place) from error
                reads.add(missing)
                if missing in self.done:
                    return None
                self._visit(missing, path)
                continue
            if isinstance(found, str):
                return found
            before = len(self.done)
            for key in self._reads_of(found):
                self._visit(key, path)
                reads.add(key)
            if len(self.done) == before:
                return found

    def _missing(self, error: AnalysisException) -> Key | None:
        """Return which dataset of the project was asked for and is not resolved."""
        if error.getCondition() != _NOT_FOUND:
            return None
        name = str((error.getMessageParameters() or {}).get("relationName", ""))
        if _TRAP in name:
            number = int(name.rpartition(_TRAP)[2].strip("`"))
            return [*self.elements.datasets][number]
        try:
            key = self.elements.key(name)
        except DefinitionError:
            return None
        return key if key in self.elements.datasets else None

    def _reads_of(self, frame: DataFrame) -> set[Key]:
        """Name the datasets whose stand-ins or tables a DataFrame reads."""
        names = {self._stand_in_name(key).lower(): key for key in self.elements.datasets}
        found: set[Key] = set()
        for kind, name in read_relations(self.trickle, frame):
            if kind == "view" and name[-1].lower() in names:
                found.add(names[name[-1].lower()])
            elif kind == "table" and self.elements.key(name) in self.elements.datasets:
                found.add(self.elements.key(name))
        return found

    def _cycle(self, path: tuple[Key, ...]) -> DefinitionError:
        datasets = [self.elements.datasets[key] for key in path]
        shown = " reads ".join(f"{dataset.name} ({dataset.place})" for dataset in datasets)
        text = f"tables read each other in a circle: {shown}."
        return bad_project(datasets[0].place, text, "Let one of them read its sources directly.", code="CYCLE")

    # -- stand-ins

    def _stand_in_name(self, key: Key) -> str:
        if key[:-1] == (self.elements.schema.lower(),):
            return key[-1]
        return _STAND_IN + "_".join(key)

    @contextmanager
    def _stand_ins(self) -> Iterator[None]:
        """Set the traps, and leave nothing in the session in the end."""
        try:
            for number, key in enumerate(self.elements.datasets):
                trap, name = f"{_TRAP}{number}", quote(self._stand_in_name(key))
                # Of a stream: a view of a table could not be read as a stream, not even to find that it does not exist.
                self.spark.readStream.format("rate").load().createOrReplaceTempView(trap)
                self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM STREAM {trap}")
                self.spark.catalog.dropTempView(trap)
            yield
        finally:
            for key in self.elements.datasets:
                self.spark.catalog.dropTempView(self._stand_in_name(key))

    def _stand_in(self, key: Key, dataset: Dataset, frame: DataFrame) -> None:
        name = self._stand_in_name(key)
        if dataset.kind == "streaming table":
            if self.spark.catalog.tableExists(".".join(map(shown_part, key))):
                self.spark.catalog.dropTempView(name)  # the table itself is read
            else:
                self.unmade.add(key)
                columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in frame.schema.fields]
                self._empty[key] = self.spark.range(0).select(*columns)
            return
        self._view(key, frame)

    def _view(self, key: Key, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(self._stand_in_name(key))
        self._viewed.add(key)


def read_relations(trickle: Trickle, frame: DataFrame) -> set[tuple[str, tuple[str, ...]]]:
    """Name the temporary views and the tables of the catalog that a DataFrame reads."""
    jvm = trickle._engine.jvm
    found: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [analysed_plan(frame)]
    while waiting:
        node = waiting.pop()
        match jvm.name(node):
            case "View":
                identifier = node.desc().identifier()
                schema = (str(identifier.database().get()),) if identifier.database().isDefined() else ()
                found.add(("view" if node.isTempView() else "table", (*schema, str(identifier.table()))))
            case "DataSourceV2Relation" | "StreamingRelationV2" if node.identifier().isDefined():
                identifier = node.identifier().get()
                found.add(("table", (*map(str, identifier.namespace()), str(identifier.name()))))
            case "LogicalRelation" if node.catalogTable().isDefined():
                identifier = node.catalogTable().get().identifier()
                schema = (str(identifier.database().get()),) if identifier.database().isDefined() else ()
                found.add(("table", (*schema, str(identifier.table()))))
        waiting.extend(items(node.children()))
        waiting.extend(items(node.subqueries()))
    return found


def call(query: Any, root: Path, place: Place) -> DataFrame | str:
    """Call the function of a dataset.

    Raises:
        DefinitionError: ``BAD_PYTHON``, it fails, or gives neither a DataFrame nor a text.
        AnalysisException: Spark cannot analyse what it reads.
    """
    from pyspark.sql import DataFrame

    try:
        found = query()
    except (AnalysisException, TrickleError):
        raise
    except Exception as error:
        raise python_failed(error, root / place.file, place.file, place.line) from error
    if not isinstance(found, (DataFrame, str)):
        text = f"the function gives {kind_of(found)}, not a DataFrame or SQL text."
        raise bad_project(place, text, "Return what it computes.", code=BAD_PYTHON)
    return found


def bad_query(error: PySparkException, place: Place) -> DefinitionError:
    """Build the error for a query that Spark cannot analyse, on one line."""
    said = str(error).partition("\n== SQL ==")[0].partition(";\n")[0]
    at = _SPARK_PLACE.search(str(error))
    line = place.line + (int(at[1]) - 1 if at else 0)
    text = " ".join(_SPARK_PLACE.sub("", said).split())
    return bad_project(
        Place(place.file, line), f"Spark cannot analyse the query: {text}", "Correct the query.", code="BAD_SQL"
    )


def bad_call(error: AnalysisException, root: Path, place: Place) -> TrickleError:
    """Build the error for a function that asked Spark for what it cannot analyse; the line is that of the call."""
    said = bad_query(error, Place(place.file))
    at = python_failed(error, root / place.file, place.file, place.line).message.partition(": ")[0]
    return bad_project(at, said.message.partition(": ")[2], said.hint, code=said.code)


def check_schema(dataset: Dataset, frame: DataFrame | None) -> None:
    """Refuse a query that gives other columns than were said.

    Raises:
        DefinitionError: ``OTHER_COLUMNS``.
    """
    if dataset.schema is None or frame is None or dataset.kind != "stream table":
        return
    wanted = read_schema(dataset)
    given = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    said = [(field.name, field.dataType.simpleString()) for field in wanted.fields]
    if given != said:
        shown, asked = (", ".join(f"{name} {kind}" for name, kind in pairs) for pairs in (given, said))
        text = f"the query of {dataset.name!r} gives ({shown}), and its schema says ({asked})."
        raise bad_project(dataset.place, text, "Correct the schema, or cast in the query.", code="OTHER_COLUMNS")


def read_schema(dataset: Dataset) -> Any:
    """Return the schema that was said, as a type.

    Raises:
        DefinitionError: ``OTHER_COLUMNS``, it is none.
    """
    from pyspark.sql.types import StructType

    if isinstance(dataset.schema, StructType):
        return dataset.schema
    try:
        return StructType.fromDDL(dataset.schema)
    except PySparkException as error:
        text = f"{dataset.schema!r} is not a schema: {' '.join(str(error).split())[:200]}"
        raise bad_project(dataset.place, text, "Write it as id BIGINT, name STRING.", code="OTHER_COLUMNS") from error


@contextmanager
def set_conf(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session for a while.

    Raises:
        DefinitionError: ``BAD_OPTION``, Spark does not take one.
    """
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                text = f"the setting {key} cannot be {value!r} here: {' '.join(str(error).split())}"
                raise DefinitionError(
                    "BAD_OPTION", text, hint="Say it in spark, or configuration, of the project."
                ) from error
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, earlier)
