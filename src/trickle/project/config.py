"""``trickle.yml``: what a project is called, where its tables are, and what its stream tables have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from trickle.errors import DefinitionError
from trickle.model.definition import Mode  # noqa: TC001 - a field of a model that is checked at run time
from trickle.model.names import split_name
from trickle.model.schedule import write_schedule
from trickle.model.stored import Stored
from trickle.model.table_options import Columns, Duration, TableOptions, TableOptionWords
from trickle.project.find import PIPELINE_FILES
from trickle.project.places import Place, bad_project
from trickle.project.yaml_lines import Yaml, read_yaml, validate

ENVIRONMENT_VARIABLE: Final = "TRICKLE_ENV"


def _schedule(text: str | None) -> str | None:
    try:
        return write_schedule(text)
    except DefinitionError as error:
        raise ValueError(f"{error.message} {error.hint}") from error


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _said_nothing(value: Any) -> Any:
    """Read a key with nothing below it, for all of that is commented out, as an empty mapping."""
    return {} if value is None else value


def _schema(name: str | None) -> str | None:
    if name is not None and len(_split(name)) != 1:
        raise ValueError(f"{name!r} is not the name of a schema")
    return name


def _table(name: str | None) -> str | None:
    if name is not None and len(_split(name)) == 1:
        raise ValueError(f"{name!r} has no schema: give it as schema.table")
    return name


def _split(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except DefinitionError as error:
        raise ValueError(f"{error.message} {error.hint}") from error


Texts = dict[str, Annotated[str, BeforeValidator(_text)]]


class TableWords(Stored):
    """What may be said of a stream table beside its query; None is what is not said.

    Attributes:
        schedule: When the loop refreshes it; ``by hand`` for never.
    """

    schedule: Annotated[str | None, AfterValidator(lambda text: text if text == "by hand" else _schedule(text))] = None
    mode: Mode | None = None
    comment: str | None = None
    column_comments: Texts | None = None
    partition_by: Columns | None = None
    cluster_by: Columns | None = None
    properties: Texts | None = None
    tags: Texts | None = None
    owner: str | None = None
    timeout: Duration | None = None
    max_change_rows: int | None = Field(default=None, ge=1)
    max_change_ratio: float | None = Field(default=None, gt=0)
    verify_every: Duration | None = None
    suspend_after: int | None = Field(default=None, ge=1)

    def options(self) -> TableOptionWords:
        """Return the options as the verbs take them."""
        words: Any = {n: v for n, v in self.model_dump(include=set(TableOptions.model_fields)).items() if v is not None}
        return words  # type: ignore[no-any-return]


class Defaults(TableWords):
    """What holds for each stream table that says nothing else.

    Attributes:
        schema_name: The schema of tables that are named without one.
    """

    schema_name: Annotated[str | None, AfterValidator(_schema)] = Field(default=None, alias="schema")


_MAY_BE_EMPTY: Final = BeforeValidator(_said_nothing)


class Environment(Stored):
    """What is otherwise in one environment."""

    warehouse: str | None = None
    catalog: str | None = None
    spark: Annotated[Texts, _MAY_BE_EMPTY] = Field(default_factory=dict)
    defaults: Annotated[Defaults, _MAY_BE_EMPTY] = Defaults()


class Config(Stored):
    """A ``trickle.yml``.

    Attributes:
        warehouse: The folder of the tables, from the folder of the project, or its URI on an object store.
        catalog: The catalog of a Spark session of one's own, in place of a warehouse.
        spark: Settings of Spark.
        files: Which SQL and Python files define tables, from the folder of the project.
        storage: Where the checkpoints of streaming tables are kept.
        history: The Delta table that every refresh by the command is appended to.
    """

    name: str = Field(min_length=1)
    warehouse: str | None = None
    catalog: str | None = None
    spark: Annotated[Texts, _MAY_BE_EMPTY] = Field(default_factory=dict)
    defaults: Annotated[Defaults, _MAY_BE_EMPTY] = Defaults()
    environments: Annotated[dict[str, Annotated[Environment, _MAY_BE_EMPTY]], _MAY_BE_EMPTY] = Field(
        default_factory=dict
    )
    files: tuple[str, ...] = ("*.sql", "*.py", "tables/**")
    storage: str | None = None
    history: Annotated[str | None, AfterValidator(_table)] = None

    @model_validator(mode="after")
    def _one_place(self) -> Config:
        if self.warehouse is not None and self.catalog is not None:
            raise ValueError("the tables are either in a warehouse or in a catalog, not in both")
        return self

    def in_environment(self, name: str) -> Config:
        """Return the project as it is in an environment."""
        own = self.environments[name]
        place = {"warehouse": own.warehouse, "catalog": own.catalog} if own.warehouse or own.catalog else {}
        said = {**_said(self.defaults), **_said(own.defaults)}
        changes = {**place, "spark": {**self.spark, **own.spark}, "defaults": Defaults.model_validate(said)}
        return self.model_copy(update=changes)


def _said(defaults: Defaults) -> Mapping[str, Any]:
    return defaults.model_dump(by_alias=True, exclude_unset=True)


class _Glob(Stored):
    include: str


class _Library(Stored):
    glob: _Glob


class _Pipeline(Stored):
    """A ``spark-pipeline.yml``."""

    name: str
    storage: str
    catalog: str | None = None
    database: str | None = None
    schema_name: str | None = Field(default=None, alias="schema")
    configuration: Texts = Field(default_factory=dict)
    libraries: tuple[_Library, ...] = ()

    @model_validator(mode="after")
    def _one_schema(self) -> _Pipeline:
        if self.database is not None and self.schema_name is not None:
            raise ValueError("database and schema mean the same: give one of them")
        return self

    def config(self) -> Config:
        """Return the same as a project of ours; its tables are where Spark puts them by default."""
        schema = self.database or self.schema_name
        defaults = Defaults.model_validate({} if schema is None else {"schema": schema})
        is_own = self.catalog is not None and self.catalog != "spark_catalog"
        warehouse = self.configuration.get("spark.sql.warehouse.dir", "spark-warehouse").removeprefix("file:")
        return Config(
            name=self.name,
            storage=self.storage,
            catalog=self.catalog if is_own else None,
            warehouse=None if is_own else warehouse,
            defaults=defaults,
            spark={k: v for k, v in self.configuration.items() if k != "spark.sql.warehouse.dir"},
            files=tuple(library.glob.include for library in self.libraries),
        )


def read_config(file: Path, environment: str | None = None) -> Config:
    """Read the file of a project, as it is in an environment; None for that of TRICKLE_ENV, if it is set.

    Raises:
        DefinitionError: ``BAD_PROJECT``, ``UNKNOWN_KEY`` or ``UNKNOWN_ENVIRONMENT``.
    """
    environment = environment or os.environ.get(ENVIRONMENT_VARIABLE) or None
    found = read_yaml(read_text(file, file.name), file.name)
    if found.value is None:
        raise bad_project(Place(file.name), "the file is empty.", "Say at least name: NAME.")
    config = validate(found, _Pipeline).config() if file.name in PIPELINE_FILES else validate(found, Config)
    return config if environment is None else _in_environment(found, config, environment)


def _in_environment(found: Yaml, config: Config, name: str) -> Config:
    if name not in config.environments:
        names = ", ".join(config.environments) or "none"
        place = found.place(["environments"])
        raise bad_project(
            place, f"there is no environment {name!r}.", f"There are: {names}.", code="UNKNOWN_ENVIRONMENT"
        )
    return config.in_environment(name)


def read_text(file: Path, shown: str) -> str:
    """Read a file of a project.

    Raises:
        DefinitionError: ``BAD_PROJECT``, it cannot be read, or is not text.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise bad_project(Place(shown, line), "this is not UTF-8 text.", "Save the file as UTF-8.") from error
    except OSError as error:
        raise bad_project(shown, f"the file cannot be read: {error.strerror}.") from error
