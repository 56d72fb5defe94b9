"""A project: its file, its folder, and what its files define."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trickle.layout import DEFAULT
from trickle.project.config import Config, read_config, read_text
from trickle.project.elements import Elements
from trickle.project.places import bad_project
from trickle.project.python_files import read_python
from trickle.project.sql_files import read_sql

_SUFFIXES: Final = (".py", ".sql")
_WAREHOUSE: Final = "warehouse"


@dataclass(frozen=True, slots=True)
class Project:
    """A project in one environment.

    Attributes:
        file: Its ``trickle.yml`` or ``spark-pipeline.yml``.
    """

    file: Path
    config: Config

    @property
    def root(self) -> Path:
        """The folder of the project."""
        return self.file.parent

    @property
    def schema(self) -> str:
        """The schema of names without one."""
        return self.config.defaults.schema_name or DEFAULT

    @property
    def warehouse(self) -> str | None:
        """The folder of the tables, or its URI; None if they are in a catalog."""
        if self.config.catalog is not None:
            return None
        named = self.config.warehouse or _WAREHOUSE
        return named if "://" in named else str(self.root / Path(named).expanduser())

    @property
    def storage(self) -> str:
        """Where the checkpoints of streaming tables are kept."""
        given = self.config.storage or ""
        return given if ":" in given else str(self.root / given)

    @property
    def may_stream(self) -> bool:
        """Whether it may have streaming tables: only where checkpoints have a place."""
        return self.config.storage is not None

    def files(self) -> tuple[Path, ...]:
        """Return the files that define tables, in the order of their names.

        Raises:
            DefinitionError: ``NO_FILES``, a pattern of a pipelines project fits none.
        """
        found = sorted({path for pattern in self.config.files for path in self._glob(pattern)})
        if not found:
            text = f"no file fits {', '.join(self.config.files) or 'it: libraries is empty'}."
            hint = "Put .sql or .py files there, or correct the patterns."
            raise bad_project(self.file.name, text, hint, code="NO_FILES")
        return tuple(found)

    def _glob(self, pattern: str) -> Iterator[Path]:
        # ``dir/**`` stands for all files below, in Python from 3.13 on only.
        pattern = f"{pattern}/*" if pattern.endswith("**") else pattern
        try:
            for path in self.root.glob(pattern):
                if path.suffix in _SUFFIXES and path.is_file() and not _is_hidden(path.relative_to(self.root)):
                    yield path
        except (NotImplementedError, ValueError) as error:
            text = f"{pattern!r} is not a pattern of files: {error}."
            raise bad_project(self.file.name, text, "Write it from the folder of the project: tables/**.") from error

    def load(self, spark: Any = None) -> Elements:
        """Read all files and run those of Python, in the folder of the project; ``spark`` is the session that they see.

        Raises:
            DefinitionError: What is wrong with a file, with its place.
        """
        elements = Elements(self.schema)
        with working_in(self.root):
            for file in self.files():
                shown = file.relative_to(self.root).as_posix()
                if file.suffix == ".sql":
                    read_sql(read_text(file, shown), shown, elements)
                else:
                    read_python(file, shown, elements, spark)
        elements.check_flows()
        if elements.flows and not self.may_stream:
            text = "streaming tables need a place for their checkpoints."
            hint = f"Say in {self.file.name} storage: FOLDER."
            raise bad_project(elements.flows[0].place, text, hint, code="NO_STORAGE")
        return elements


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def open_project(file: Path, environment: str | None = None) -> Project:
    """Read the file of a project.

    Raises:
        DefinitionError: ``BAD_PROJECT``, ``UNKNOWN_KEY`` or ``UNKNOWN_ENVIRONMENT``.
    """
    return Project(file.absolute(), read_config(file, environment))


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Make a folder the working one, from which Python files import, for a while."""
    before, paths = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = paths
